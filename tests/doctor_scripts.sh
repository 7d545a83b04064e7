#!/usr/bin/env bash
# The scripts of `gpuwright doctor --fix` for every host of tests/hosts pass shellcheck.
#   tests/doctor_scripts.sh GPUWRIGHT
set -euo pipefail

gpuwright=$(realpath "$1")
hosts=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/hosts
folder=$(mktemp -d)
# shellcheck disable=SC2064  # the folder is to be known when the trap runs
trap "rm -rf '$folder'" EXIT

grep -l '^# cause: ' "$hosts"/*.txt | while read -r host; do
  name=$(basename "$host" .txt)
  "$gpuwright" doctor --root "$host" --fix >"$folder/$name.sh"
  "$gpuwright" doctor --root "$host" --perf --fix --lang zh >"$folder/$name-perf.sh"
done
scripts=("$folder"/*.sh)
((${#scripts[@]} > 200)) || { echo "only ${#scripts[@]} scripts"; exit 1; }
if command -v shellcheck >/dev/null; then
  shellcheck "${scripts[@]}"
else
  for script in "${scripts[@]}"; do sh -n "$script"; done
fi
echo "${#scripts[@]} scripts"
