#!/usr/bin/env python3
"""Runs clang-tidy on the project's sources, several at once, and remembers which were clean: a source is looked at again
only when it, a header of ours that it includes, .clang-tidy or clang-tidy itself has changed.

    tests/tidy.py [--build build/dev] [--jobs N] [FILE...]
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIDY = "clang-tidy-14"


def dependencies(build):
    """object -> the files of ours that it was made from, as ninja knows them."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    result, current = {}, None
    for line in text.splitlines():
        if line and not line.startswith(" "):
            current = result.setdefault(line.split(":")[0], [])
        elif current is not None and line.strip():
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build"):
                current.append(path)
    return result


def made_by(command):
    found = re.search(r" -o (\S+)", command)
    return found.group(1) if found else ""


def fingerprint(command, files, common):
    digest = hashlib.sha256(common)
    digest.update(command.encode())
    for file in sorted(set(files)):
        digest.update(str(file.relative_to(ROOT)).encode())
        digest.update(file.read_bytes() if file.exists() else b"")
    return digest.hexdigest()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("files", nargs="*", type=pathlib.Path)
    given = options.parse_args()
    build = given.build.resolve()
    wanted = {path.resolve() for path in given.files}
    cache = ROOT / "build/tidy-cache"
    cache.mkdir(parents=True, exist_ok=True)

    known = dependencies(build)
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    todo = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        ours = source.is_relative_to(ROOT) and not source.is_relative_to(ROOT / "build")
        if not ours or source.suffix != ".cpp" or (wanted and source not in wanted):
            continue
        key = fingerprint(entry["command"], [source] + known.get(made_by(entry["command"]), []), common)
        if not (cache / key).exists():
            todo.append((source, key))

    lock, faults = threading.Lock(), 0

    def look_at(item):
        nonlocal faults
        source, key = item
        done = subprocess.run([TIDY, "--quiet", f"-p={build}", "--extra-arg=-Wno-unknown-warning-option", str(source)],
                              capture_output=True, text=True, check=False)
        with lock:
            print(f"{source.relative_to(ROOT)}{'' if done.returncode == 0 else ': not clean'}", flush=True)
            if done.returncode == 0:
                (cache / key).touch()
            else:
                faults += 1
                print(done.stdout + done.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(look_at, todo))
    print(f"clang-tidy: {len(todo)} looked at, {faults} not clean")
    sys.exit(1 if faults else 0)


main()
