#!/usr/bin/env python3
"""Compares gpuwright's ELF and fatbin readers with readelf (binutils) and with NVIDIA's cuobjdump.

    elf_oracle.py ELF_DUMP [FILE...]

Without files: every shared library of this system's library folders, at most 400, and programs of /usr/bin, at most 100.
For files that hold GPU code, cuobjdump (PyPI nvidia-cuda-cuobjdump; not part of ./test, by hand:
`pip download --no-deps nvidia-cuda-cuobjdump nvidia-curand-cu12`, unpack both, and put cuobjdump on the PATH) lists it.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

SYMBOL = re.compile(r"\s*\d+: [0-9a-f]+ +\S+ (\S+) +(\S+|<OS specific>: \d+) +\S+ +(?:\[.*?\] +)?(\S+)(?: (\S+))?")
DYNAMIC = {"NEEDED": "needed", "SONAME": "soname", "RPATH": "rpath", "RUNPATH": "runpath"}


def run(*words):
    return subprocess.run(words, check=False, capture_output=True, text=True, errors="surrogateescape").stdout


def dynamic_facts(path):
    for line in run("readelf", "-Wd", path).splitlines():
        match = re.match(r" 0x[0-9a-f]+ \((\w+)\) .*\[(.*)\]", line)
        if match and match[1] in DYNAMIC:
            values = match[2].split(":") if "PATH" in match[1] else [match[2]]
            for value in values:
                yield f"{DYNAMIC[match[1]]} {value}"


def symbol_facts(path):
    for line in run("readelf", "-W", "--dyn-syms", path).splitlines():
        match = SYMBOL.match(line)
        if not match or match[2] == "LOCAL" or not match[4]:
            continue
        name = match[4].split("@")[0]
        if match[3] != "UND":
            yield f"defined {name}"
        elif match[2] != "WEAK":
            yield f"undefined {name}"


def version_facts(path):
    part, library, base = "", "", False
    for line in run("readelf", "-WV", path).splitlines():
        if line.startswith("Version "):
            part = line.split()[1]
        file = re.search(r"Version: 1  File: (\S+)", line)
        library = file[1] if file else library
        name = re.search(r"Name: (\S+)", line)
        if part == "needs" and name:
            yield f"wants {library} {name[1]}"
        if part == "definition" and name and "Rev: 1" in line and "Flags: BASE" not in line:
            yield f"version {name[1]}"


def image_facts(path, tool):
    counts = collections.Counter()
    for option, prefix in (("--list-elf", "sm"), ("--list-ptx", "compute")):
        done = subprocess.run([tool, option, path], check=False, capture_output=True, text=True)
        if "fatal" in done.stdout + done.stderr:  # it gave up half-way, as on architectures that it has left behind
            return None
        for line in done.stdout.splitlines():
            match = re.search(r"\.sm_(\d+[af]?)\.(?:cubin|ptx)$", line)
            if match:
                counts[f"{prefix}_{match[1]}"] += 1
    return [f"image {name} {count}" for name, count in counts.items()]


def ours(program, paths):
    result, lines = {}, []
    for begin in range(0, len(paths), 50):
        for line in run(program, *paths[begin:begin + 50]).splitlines():
            if line.startswith("file "):
                lines = result.setdefault(line[5:], [])
            else:
                lines.append(line)
    return result


def difference(path, got, tool):
    wanted = collections.Counter([*dynamic_facts(path), *symbol_facts(path), *version_facts(path)])
    found = collections.Counter(line for line in got if not line.startswith(("section ", "machine ")))
    has_code = any(line.startswith(("section .nv_fatbin ", "section __nv_relfatbin ")) for line in got)
    images = image_facts(path, tool) if tool and has_code else None
    wanted.update(images or [])
    for line in list(found):
        if line.startswith("image ") and images is None:
            del found[line]
    return [f"{path}: readelf has, we lack: {line}" for line in sorted(wanted - found)] + [
        f"{path}: we have, readelf lacks: {line}" for line in sorted(found - wanted)]


def system_files():
    libraries, programs = [], []
    for folder in ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/*-linux-gnu/*"):
        libraries += glob.glob(folder + "/*.so*")
    programs += glob.glob("/usr/bin/*")
    real = lambda paths: sorted({os.path.realpath(path) for path in paths if os.path.isfile(path)})
    is_elf = lambda path: open(path, "rb").read(4) == b"\x7fELF"
    return [p for p in real(libraries) if is_elf(p)][:400] + [p for p in real(programs) if is_elf(p)][:100]


def main():
    if not shutil.which("readelf"):
        print("skipped: no readelf")
        return 77
    paths = sys.argv[2:] or system_files()
    tool = shutil.which("cuobjdump")
    faults, facts = [], 0
    for path, lines in ours(sys.argv[1], paths).items():
        facts += len(lines)
        faults += difference(path, lines, tool)
    for fault in faults[:40]:
        print(fault)
    print(f"{len(paths)} files, {facts} facts, {len(faults)} differences")
    return 1 if faults or not facts else 0


sys.exit(main())
