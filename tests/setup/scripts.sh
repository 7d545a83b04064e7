#!/usr/bin/env bash
# What `gpuwright setup` gives people to run: every kind of script passes shellcheck, the check programs compile, and the
# packages said to be of Debian's archive are in main (asked only on Debian, where apt has its lists).
#   tests/setup/scripts.sh GPUWRIGHT
set -euo pipefail

gpuwright=$(realpath "$1")
folder=$(mktemp -d)
# shellcheck disable=SC2064  # the folder is to be known when the trap runs
trap "rm -rf '$folder'" EXIT

distributions=$("$gpuwright" setup rtx-4090-24gb -d nowhere 2>&1 | sed -nE 's/.*it knows ([^)]*)\).*/\1/p' | tr -d ',') || true
[[ -n $distributions ]] || { echo "no distributions are named"; exit 1; }

# write NAME WORDS...: the script of a wish; one that cannot be (1) is left out, anything else is a fault.
write() {
  local name=$1 code=0
  shift
  "$gpuwright" setup "$@" --script >"$folder/$name.sh" 2>/dev/null || code=$?
  case $code in
    0) ;;
    1) rm "$folder/$name.sh" ;;
    *) echo "gpuwright setup $* ended with $code"; exit 1 ;;
  esac
}

for distribution in $distributions; do
  for gpu in rtx-4090-24gb v100-sxm2-32gb mi300x-192gb arc-b580-12gb; do
    write "$distribution-$gpu" "$gpu" -d "$distribution"
    write "$distribution-$gpu-container" "$gpu" -d "$distribution" --container
  done
  write "$distribution-zh" h100-sxm5-80gb -d "$distribution" --lang zh
  write "$distribution-toolkit" rtx-4090-24gb -d "$distribution" --toolkit --torch 2.7
  write "$distribution-frameworks" rtx-4090-24gb -d "$distribution" --tensorflow --jax
  write "$distribution-old" v100-sxm2-32gb -d "$distribution" --toolkit --python 3.9
done
scripts=("$folder"/*.sh)
((${#scripts[@]} > 120)) || { echo "only ${#scripts[@]} scripts"; exit 1; }
# Heads differ by names alone: the same script need not be read twice.
sed -i 2d "${scripts[@]}"
mapfile -t unique < <(md5sum "${scripts[@]}" | sort | awk '!seen[$1]++ { print $2 }')
if command -v shellcheck >/dev/null; then
  shellcheck "${unique[@]}"
else
  echo "shellcheck is not here: only their syntax is checked"
  for script in "${unique[@]}"; do bash -n "$script"; done
fi

"$gpuwright" setup --check python >"$folder/check.py"
python3 -m py_compile "$folder/check.py"
"$gpuwright" setup --check c++ >"$folder/check.cpp"
"${CXX:-g++}" -std=c++17 -O1 -Wall -Wextra -Werror "$folder/check.cpp" -o "$folder/check" -ldl
"$gpuwright" setup --check cuda | grep -q __global__

packages=0
if [[ -e /etc/debian_version ]] && grep -q '^ID=debian$' /etc/os-release && apt-cache show bash >/dev/null 2>&1; then
  for words in "rtx-4090-24gb --toolkit" "rtx-4090-24gb --container" "arc-b580-12gb" "mi300x-192gb"; do
    # shellcheck disable=SC2086  # several words
    for package in $("$gpuwright" setup $words --json 2>/dev/null | python3 -c '
import json, sys
for step in json.load(sys.stdin)["steps"]:
    if step["repository"] == "distribution":
        print(*step["packages"])'); do
      section=$(apt-cache show "$package" 2>/dev/null | sed -n 's/^Section: //p' | head -n 1)
      [[ -n $section ]] || { echo "Debian has no package $package"; exit 1; }
      [[ $section != */* ]] || { echo "$package is in $section, not in main"; exit 1; }
      packages=$((packages + 1))
    done
  done
fi
echo "${#scripts[@]} scripts (${#unique[@]} different) are clean; $packages packages looked up in Debian main"
