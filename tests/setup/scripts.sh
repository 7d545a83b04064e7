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

# The script of a machine without driver, run with commands that only write down what they were asked: it stops for the
# restart, and goes on to its end when the driver is there.
stubs=$folder/stubs
mkdir -p "$stubs" "$folder/home"
cat >"$stubs/stub" <<'EOF'
#!/bin/bash
name=$(basename "$0")
echo "$name $*" >>"$LOG"
case $name in
  cat)
    case ${1:-} in
      /sys/module/nvidia/version) [[ -n $DRIVER ]] && echo "$DRIVER" ;;
      /proc/driver/*) ;;
      *) exec /bin/cat "$@" ;;
    esac ;;
  lspci) echo "01:00.0 VGA compatible controller: NVIDIA Corporation" ;;
  tee) /bin/cat >/dev/null ;;
  python3.*) mkdir -p "$HOME/gpu/bin" && ln -sf "$0" "$HOME/gpu/bin/python" ;;
  g++) printf '#!/bin/sh\n' >"$HOME/gpu_check" && chmod +x "$HOME/gpu_check" ;;
esac
EOF
chmod +x "$stubs/stub"
for name in cat lspci tee curl dpkg apt-get nvidia-smi nvcc python3.12 g++ systemctl python; do ln -s stub "$stubs/$name"; done
"$gpuwright" setup rtx-4090-24gb -d ubuntu-24.04 --script >"$folder/run.sh"
branch=$(sed -nE 's/^driver_ready.* == ([0-9]+)\..*/\1/p' "$folder/run.sh")
run() {  # DRIVER
  : >"$folder/log"
  HOME=$folder/home LOG=$folder/log DRIVER=$1 PATH=$stubs:$PATH bash "$folder/run.sh" >"$folder/out" 2>&1 ||
    { echo "the script fails with driver '$1':"; cat "$folder/out"; exit 1; }
}
expect() {  # WHAT FILE WORDS
  grep -qF -- "$3" "$2" || { echo "$1: no '$3' in:"; cat "$2"; exit 1; }
}
if [[ $(id -u) == 0 ]]; then  # else it would ask for a password
  for driver in "" 470.256.02; do
    run "$driver"
    expect "driver '$driver'" "$folder/out" "Restart now"
    expect "driver '$driver'" "$folder/log" "apt-get install -y nvidia-driver-pinning-$branch"
    if grep -q torch "$folder/log"; then echo "PyTorch is installed before the restart"; exit 1; fi
  done
  run "$branch.10.03"
  expect "with the driver" "$folder/out" "Done."
  expect "with the driver" "$folder/log" "python -m pip install torch=="
  if grep -q nvidia-open "$folder/log"; then echo "the driver is installed again"; exit 1; fi
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
