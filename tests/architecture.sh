#!/usr/bin/env bash
# Checks who includes whom: a room of src/ may include only the rooms that its line below names, and itself.
#   tests/architecture.sh [SOURCE_DIRECTORY]
#   tests/architecture.sh --self-test     proves that a forbidden include is found
set -euo pipefail

# The picture in ARCHITECTURE.md, as a table. A new room gets a line here.
declare -A may_include=(
  [base]=""
  [catalog]="base"
  [model]="base"
  [fit]="base catalog model"
  [sim]="base catalog"
  [device]="base catalog sim"
  [explain]="base catalog fit device"
  [doctor]="base catalog model sim fit device"
  [cli]="base catalog model sim fit device explain doctor"
  [main]="base cli" # src/gpuwright.cpp
)

check_tree() {
  local source=$1 faults=0 file line number included room target
  while IFS=: read -r file number line; do
    room=${file#"$source"/}
    case $room in
      */*) room=${room%%/*} ;;
      *) room=main ;;
    esac
    included=${line#*\"}
    target=${included%%/*}
    if [[ -z ${may_include[$room]+known} ]]; then
      echo "$file:$number: the room '$room' is not in tests/architecture.sh"
      faults=$((faults + 1))
    elif [[ $included != */* ]]; then
      echo "$file:$number: name the room: #include \"$room/${included%\"*}\""
      faults=$((faults + 1))
    elif [[ $target != "$room" && " ${may_include[$room]} " != *" $target "* ]]; then
      echo "$file:$number: '$room' may not know '$target' (it may know: ${may_include[$room]:-nobody})"
      faults=$((faults + 1))
    fi
  done < <(grep -rnE --include='*.h' --include='*.cpp' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$source")
  if ((faults)); then
    echo "$faults includes against the arrows of ARCHITECTURE.md"
    return 1
  fi
}

self_test() {
  local tree
  tree=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder is to be known when the trap runs, after the function ended
  trap "rm -rf '$tree'" EXIT
  mkdir -p "$tree/base" "$tree/model" "$tree/catalog" "$tree/attic"
  echo '#include "base/result.h"' >"$tree/model/good.cpp"
  check_tree "$tree" || { echo "self-test: a good tree is refused"; return 1; }
  local bad=("model:catalog/catalog.h" "base:model/model.h" "catalog:sibling.h" "attic:base/base.h")
  for pair in "${bad[@]}"; do
    echo "#include \"${pair#*:}\"" >"$tree/${pair%%:*}/bad.h"
    if check_tree "$tree" >/dev/null; then
      echo "self-test: '${pair%%:*}' may include ${pair#*:}"
      return 1
    fi
    rm "$tree/${pair%%:*}/bad.h"
  done
  echo "self-test passed"
}

if [[ ${1:-} == --self-test ]]; then
  self_test
else
  check_tree "${1:-$(dirname "$0")/../src}"
fi
