#!/usr/bin/env python3
"""Compares what gpuwright reads of Python environments with what their Pythons say, and its version arithmetic with the
package "packaging" that pip carries.

    python_oracle.py PYTHON_DUMP

Run by some Python of this machine, in an environment of its own besides: one is made in a temporary folder.
"""
import json
import os
import subprocess
import sys
import tempfile
import venv

VERSIONS = ["1.0", "1.12.1", "1.26.4", "2.0.0", "2.0.1", "2.1", "2.7.0", "2.7.0+cu126", "2.10.0", "9.5.1.17", "12.6.77"]
SPECIFIERS = ["==2.7.0", "==2.7.0+cu126", "==2.7.*", "!=2.7.*", ">=1.17,<2", "<2", ">2.0", "<=2.1", "~=1.4.2", "~=2.0",
              "!=2.1,>=2", "==9.5.1.17", ">=12", ""]
LIST = """import importlib.metadata as m, json
print(json.dumps([[str(d._path), d.metadata["Name"], d.version] for d in m.distributions()]))"""


def normalised(name):
    import re
    return re.sub(r"[-_.]+", "-", name).lower()


def check_versions(program):
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        from pip._vendor.packaging.specifiers import SpecifierSet
    pairs = [(version, specifier) for version in VERSIONS for specifier in SPECIFIERS]
    words = [word for pair in pairs for word in pair]
    answers = subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout.split()
    faults = []
    for (version, specifier), answer in zip(pairs, answers, strict=True):
        expected = "yes" if SpecifierSet(specifier, prereleases=True).contains(version) else "no"
        if answer != expected:
            faults.append(f"{version} {specifier}: packaging says {expected}, we say {answer}")
    return len(pairs), faults


def check_environment(program, prefix):
    environment = dict(os.environ, PATH=f"{prefix}/bin:" + os.environ.get("PATH", ""), VIRTUAL_ENV=prefix)
    environment.pop("PYTHONPATH", None)
    lines = subprocess.run([program], check=True, capture_output=True, text=True, env=environment).stdout.splitlines()
    ours, active = set(), False
    for line in lines:
        if line.startswith("environment "):
            active = line.endswith(" active")
            if active and line.split()[1] != prefix:
                return 0, [f"{line}: {prefix} is the active one"]
        elif active:
            _, name, version = line.rsplit(" ", 2)
            ours.add((name, version))
    listed = subprocess.run([f"{prefix}/bin/python3", "-c", LIST], check=True, capture_output=True, text=True,
                            env=environment).stdout
    theirs = {}
    for _, name, version in json.loads(listed):
        theirs.setdefault(normalised(name), version)  # the first of a name counts
    expected = set(theirs.items())
    return len(expected), [f"{prefix}: {'Python has' if pair in expected else 'we have'} {pair}"
                           for pair in sorted(ours ^ expected)]


def main():
    program = sys.argv[1]
    asked, faults = check_versions(program)
    packages = 0
    prefixes = [os.path.realpath(f"{os.path.dirname(__file__)}/../../build/venv")]
    with tempfile.TemporaryDirectory() as folder:
        for system in (False, True):
            prefixes.append(f"{folder}/venv{int(system)}")
            venv.create(prefixes[-1], with_pip=True, system_site_packages=system)
        for prefix in prefixes:
            if not os.path.exists(f"{prefix}/bin/python3"):
                continue
            count, more = check_environment(program, prefix)
            packages += count
            faults += more
    for fault in faults[:40]:
        print(fault)
    print(f"{asked} comparisons of versions, {packages} packages, {len(faults)} differences")
    return 1 if faults else 0


sys.exit(main())
