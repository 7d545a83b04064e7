#!/usr/bin/env python3
"""`gpuwright doctor` on this machine, where it has no GPU: that is the answer, and its only cause.

    tests/doctor_here.py GPUWRIGHT

The other answer, of a Debian root that debootstrap made, is tests/hosts/debian-bootstrap.txt. Skipped (77) where there
is a GPU, or no PCI bus to look at.
"""
import json
import pathlib
import subprocess
import sys
import time

DEVICES = pathlib.Path("/sys/bus/pci/devices")


def word(path):
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def has_gpu():
    drivers = any(pathlib.Path(path).exists() for path in ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd", "/dev/davinci_manager"))
    return drivers or any(word(device / "vendor") in ("0x10de", "0x1002", "0x8086") and
                          word(device / "class")[:4] in ("0x03", "0x12") for device in DEVICES.iterdir())


def main():
    if not DEVICES.is_dir() or not any(DEVICES.iterdir()):
        print("skipped: no PCI bus here")
        return 77
    if has_gpu():
        print("skipped: this machine has a GPU")
        return 77
    begin = time.monotonic()
    ran = subprocess.run([sys.argv[1], "doctor", "--json"], capture_output=True, text=True, check=False)
    answer = json.loads(ran.stdout)
    assert ran.returncode == 1, ran
    assert answer["verdict"] == "pci.present", answer["verdict"]
    causes = [finding["id"] for finding in answer["findings"] if finding["severity"] == "fatal"]
    assert causes == ["pci.present"], causes
    print("no GPU is the one cause, after %.3f s" % (time.monotonic() - begin))
    return 0


sys.exit(main())
