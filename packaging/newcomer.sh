#!/usr/bin/env bash
# Walks a newcomer's path: a bare Debian root with none of the packages, a fresh clone, ./run, and README's commands; then
# a second bare root that gets only the Debian package. Needs root and debootstrap; takes the mirror, the apt and pip
# settings of this machine.
#   packaging/newcomer.sh [SUITE]      bookworm, unless named
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:-bookworm}
work=$PWD/build/newcomer
base=$work/base-$suite.tar
root=$work/root
mkdir -p "$work"

say() { printf '\n== %s\n' "$*"; }

mirror() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]+) .*/\2/p' | head -n 1
}

close_root() {
  local folder
  for folder in proc sys; do
    if mountpoint -q "$root/$folder"; then umount "$root/$folder"; fi
  done
}
trap close_root EXIT

# A bare root at $root with this machine's way to the registries.
open_root() {
  close_root
  rm -rf "$root"
  mkdir -p "$root"
  [[ -e $base ]] || {
    say "debootstrap of $suite"
    debootstrap --variant=minbase "$suite" "$root" "$(mirror)" >"$work/debootstrap.log" 2>&1 ||
      { tail "$work/debootstrap.log"; return 1; }
    tar -C "$root" -cf "$base" .
  }
  [[ -e $root/bin ]] || tar -C "$root" -xpf "$base"
  rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d
  local kept
  for kept in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/apt/keyrings \
    /etc/apt/trusted.gpg.d /etc/pip.conf /etc/resolv.conf /etc/hosts /usr/local/share/ca-certificates \
    /etc/ssl/certs/ca-certificates.crt; do
    [[ -e $kept ]] || continue
    mkdir -p "$root$(dirname "$kept")"
    cp -aL "$kept" "$root$(dirname "$kept")/"
  done
  local here
  here=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  find "$root/etc/apt/sources.list.d" -type f -exec sed -i "s/$here/$suite/g" {} +
  # Nothing but what debootstrap left may help: no settings of this machine's own tools.
  find "$root/etc/apt/sources.list.d" -type f ! -name '*.list' ! -name '*.sources' -delete 2>/dev/null || true
  mount -t proc proc "$root/proc"
  mount --bind -o ro /sys "$root/sys"
}

inside() {
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb \
    PIP_CERT="${PIP_CERT:-}" PIP_DEFAULT_TIMEOUT="${PIP_DEFAULT_TIMEOUT:-60}" bash -c "cd /root/gpuwright 2>/dev/null; $1"
}

# The command lines of README.md that a newcomer types: "$ ./run ..." and "$ gpuwright ...".
readme_commands() { sed -nE 's/^\$ (\.\/run( .*)?)$/\1/p; s/^\$ gpuwright (.*)$/.\/run \1/p' README.md; }

walk_the_path() {
  local begin=$SECONDS line code
  open_root
  git clone -q --no-local . "$root/root/gpuwright"
  say "./run, from nothing"
  inside ./run
  say "./run took $((SECONDS - begin)) s from a bare root; the second start:"
  inside 'time ./run version'
  while read -r line; do
    say "$line"
    code=0
    inside "$line" || code=$?
    ((code <= 1)) || { echo "exit $code"; return 1; }
  done < <(readme_commands)
}

install_the_package() {
  local deb
  deb=$(echo build/package/gpuwright_*.deb)
  [[ -e $deb ]] || packaging/check-package.sh
  deb=$(echo build/package/gpuwright_*.deb)
  open_root
  cp "$deb" "$root/root/"
  say "$(basename "$deb") in a bare root"
  inside "apt-get -q update >/dev/null && apt-get -q install -y --no-install-recommends /root/$(basename "$deb") | tail -n 3"
  inside 'gpuwright --version && gpuwright fit llama-3.1-8b --gpu 4090 --context 8192 && dpkg -L gpuwright | grep bin/'
}

[[ $(id -u) == 0 ]] || { echo "packaging/newcomer.sh: needs root, for chroot"; exit 3; }
command -v debootstrap >/dev/null || { echo "packaging/newcomer.sh: needs debootstrap"; exit 3; }
walk_the_path
install_the_package
say "the newcomer arrived"
