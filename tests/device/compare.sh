#!/usr/bin/env bash
# Compares `gpuwright stat` and `ps` field by field with `nvidia-smi -q -x`, on a machine with a real NVIDIA GPU.
#   tests/device/compare.sh [GPUWRIGHT]     default: build/release/src/gpuwright, else build/dev/src/gpuwright
# Prints a table, and exits 0 when all fields agree, 1 when some do not, 77 where there is no NVIDIA GPU.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
program=${1:-}
if [[ -z $program ]]; then
  program=$root/build/release/src/gpuwright
  [[ -x $program ]] || program=$root/build/dev/src/gpuwright
fi

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  echo "no NVIDIA GPU"
  exit 77
fi
[[ -x $program ]] || { echo "tests/device/compare.sh: there is no program $program; build it, or name it" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Twice, around ours: what changes by itself may lie anywhere between the two.
nvidia-smi -q -x >"$work/before.xml"
"$program" stat --json --interval 1 >"$work/stat.json"
"$program" ps --json >"$work/ps.json"
nvidia-smi -q -x >"$work/after.xml"
exec python3 "$root/tests/device/compare.py" "$work"/{before.xml,after.xml,stat.json,ps.json}
