#!/usr/bin/env bash
# Writes the man pages and reads them with both man programs that Linux has; a warning of either is a failure.
#   tests/man.sh BINARY
set -euo pipefail

pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
"$1" generate man "$pages" >/dev/null
failed=0
for page in "$pages"/*.1; do
  # groff reads the page as `man` does; the text must say what the page is about.
  complaints=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -l "$page" 2>&1 >"$page.txt" || true)
  complaints+=$(mandoc -T lint -W warning "$page" 2>&1 || true)
  grep -q '^EXIT STATUS' "$page.txt" || complaints+=" the page has no EXIT STATUS"
  if [[ -n $complaints ]]; then
    echo "$(basename "$page"): $complaints"
    failed=$((failed + 1))
  fi
done
echo "$(find "$pages" -name '*.1' | wc -l) pages, $failed failed"
((failed == 0))
