# Sourced by ./run and ./test: installs Debian packages when, and only when, some are missing. Talks on stderr.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }

# packages_of FILE SECTION...: the names under these headings, one a line, "?" kept.
packages_of() {
  local file=$1
  shift
  awk -v wanted=" $* " '
    /^\[/ { section = substr($0, 2, length($0) - 2); next }
    /^#/ || /^$/ { next }
    index(wanted, " " section " ") { print }' "$file"
}

# missing_packages NAME...: those of the names that dpkg does not know as installed.
missing_packages() {
  local name
  for name in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || printf '%s\n' "$name"
  done
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    say "(as root, by sudo) $*"
    sudo "$@"
  else
    say "gpuwright: this needs root, and there is no sudo. As root, run: $*"
    return 1
  fi
}

# install_missing FILE SECTION...
install_missing() {
  local names name wanted=()
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "gpuwright: this system has no apt. Install yourself what these Debian packages carry, then run again:"
    packages_of "$@" | tr -d '?' | paste -sd' ' >&2
    say "(with all of them in place, set GPUWRIGHT_NO_INSTALL=1 to go on)"
    return 1
  fi
  mapfile -t names < <(packages_of "$@")
  mapfile -t wanted < <(missing_packages "${names[@]%\?}")
  ((${#wanted[@]})) || return 0
  say "Packages to install: ${wanted[*]}"
  as_root apt-get -q update >&2
  for name in "${names[@]}"; do
    [[ $name == *\? ]] || continue
    apt-cache show --no-all-versions "${name%\?}" >/dev/null 2>&1 && continue
    say "This release has no ${name%\?}: what needs it is left out."
    mapfile -t wanted < <(printf '%s\n' "${wanted[@]}" | grep -vxF "${name%\?}")
  done
  ((${#wanted[@]})) || return 0
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${wanted[@]}" >&2 </dev/null
}

# install_or_explain FILE SECTION...: install_missing, unless the user said not to.
install_or_explain() {
  [[ -n ${GPUWRIGHT_NO_INSTALL:-} ]] || install_missing "$@"
}

# changed_since STAMP PATH...: true when the stamp is missing or a file or folder below the paths is newer.
changed_since() {
  local stamp=$1
  shift
  [[ ! -e $stamp ]] || [[ -n $(find "$@" -newer "$stamp" -print -quit) ]]
}
