#!/usr/bin/env bash
# Builds the Debian package in build/package and looks it over; then installs by `cmake --install` into a folder of its
# own and runs what lies there.   packaging/check-package.sh
set -euo pipefail
cd "$(dirname "$0")/.."

build=$PWD/build/release
mkdir -p "$build"
[[ -e $build/build.ninja ]] || cmake --preset release >"$build/configure.log"
cmake --build "$build" -j "${GPUWRIGHT_JOBS:-$(nproc)}" --target gpuwright gpuwright_docs

rm -rf build/package build/installed
cmake --install "$build" --prefix build/installed >/dev/null
build/installed/bin/gpuwright --version
[[ -s build/installed/share/man/man1/gpuwright.1.gz ]]
[[ -s build/installed/share/bash-completion/completions/gpuwright ]]
[[ -s build/installed/share/zsh/vendor-completions/_gpuwright ]]
[[ -s build/installed/lib/gpuwright/sim/libnvidia-ml.so.1 && -s build/installed/lib/gpuwright/sim/libnvidia-ml.so ]]

(cd "$build" && cpack -G DEB -B "$OLDPWD/build/package" >"$build/cpack.log" 2>&1) || { cat "$build/cpack.log"; exit 1; }
deb=$(echo build/package/gpuwright_*.deb)
dpkg-deb --info "$deb"
dpkg-deb --contents "$deb"
depends=$(dpkg-deb --field "$deb" Depends)
[[ $depends == *libc6* ]] || { echo "the package does not depend on libc6"; exit 1; }
for linked in libstdc++ libfmt libtomlplusplus libutf8proc; do
  [[ $depends != *"$linked"* ]] || { echo "the package depends on $linked, which is to be a part of it"; exit 1; }
done
for needless in libcurl libcuda libnvidia rocm python; do
  [[ $depends != *"$needless"* ]] || { echo "the package depends on $needless: it is to be opened when needed"; exit 1; }
done
size=$(stat -c %s build/installed/bin/gpuwright)
((size <= 15 * 1000 * 1000)) || { echo "the program has $size bytes: more than 15 MB"; exit 1; }
if command -v lintian >/dev/null; then
  # bogus-mail-host: the project has no mail address of its own. initial-upload...: Debian has no bug for us to close.
  lintian --suppress-tags bogus-mail-host,initial-upload-closes-no-bugs,bogus-mail-host-in-debian-changelog "$deb"
fi
echo "the package is sound: $deb, program of $size bytes"
