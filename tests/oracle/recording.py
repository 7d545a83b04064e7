#!/usr/bin/env python3
"""Reads a recording by the words of docs/recording.md alone, as a program in another language would.

  recording.py FILE               a JSON object a line for each frame, in the order of the file
  recording.py --check PROGRAM    records simulated hosts by PROGRAM (recording_dump) and compares what it says with
                                  what is in the file
Ends with code 1 when a byte of the file is not accounted for. Names of readings come from src/device/fields.h.
"""
import functools
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

FIELDS = pathlib.Path(__file__).resolve().parents[2] / "src/device/fields.h"
WHY = ["not read", "not supported", "no permission", "needs CAP_PERFMON", "asleep", "in MIG mode", "needs two samples",
       "no data", "lost", "needs a reset", "unresponsive", "unified memory", "implausible", "no driver", "not visible",
       "driver error"]
STATES = ["ok", "asleep", "lost", "needs reset", "unresponsive", "no permission", "no driver", "failed"]
VENDORS = ["unknown", "NVIDIA", "AMD", "Intel", "Huawei"]
TEXTS = {"name", "uuid", "serial", "pci_address", "pci_id", "vbios", "architecture", "compute_capability",
         "compute_mode", "recovery_action", "user", "command", "executable", "container", "container_runtime", "pod",
         "pod_uid", "kubernetes_namespace", "slurm_job", "systemd_unit", "profile"}
FLAGS = {"ecc_enabled", "remapping_pending", "remapping_failed", "retirement_pending", "mig_mode", "persistence_mode",
         "display_active"}
REAL = ("_ratio", "_hertz", "_watts", "_joules", "_celsius", "_per_second")


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    total = 0xFFFFFFFF
    for byte in data:
        total = total >> 8 ^ TABLE[(total ^ byte) & 0xFF]
    return total ^ 0xFFFFFFFF


@functools.cache
def names_of(noun):
    body = re.search(rf"for_each_reading_of_{noun}\(.*?\n}}", FIELDS.read_text(), re.S).group()
    return re.findall(r'visit\("(\w+)"', body)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError("a field ends after its block")
        self.at += count
        return self.data[self.at - count:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def integer(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def text(self):
        return self.take(self.varint()).decode("utf-8", "replace")

    def block(self):
        return Reader(self.take(self.varint()))

    def blocks(self):
        return [self.block() for _ in range(self.varint())]

    def reading(self, name):
        tag = self.byte()
        if tag < 0x80:
            return {"why": WHY[min(tag, 15)]}
        if name in FLAGS:
            return bool(tag & 1)
        if tag == 0x81:
            return self.integer() / 1000
        if name.endswith(REAL):
            return struct.unpack("<d", self.take(8))[0]
        if name in TEXTS:
            return self.text()
        return self.varint() if name == "throttle_reasons" else self.integer()

    def readings(self, names):
        inner = self.block()
        return {name: inner.reading(name) for name in names if inner.at < len(inner.data)}


def gpu_of(reader):
    gpu = {"index": reader.integer(), "vendor_index": reader.integer(), "vendor": VENDORS[reader.byte()],
           "source": reader.text(), "state": STATES[reader.byte()], "state_detail": reader.text(),
           "unified_memory": bool(reader.byte() & 1), "catalog_id": reader.text()}
    gpu.update(reader.readings(names_of("gpu")))
    gpu["xids"] = [{"code": x.integer(), "time": x.integer(), "count": x.integer()} for x in reader.blocks()]
    gpu["mig_instances"] = [{"gpu_instance": m.integer(), "compute_instance": m.integer(),
                             **m.readings(names_of("instance"))} for m in reader.blocks()]
    gpu["links"] = [{"number": k.integer(), "active": k.reading("ecc_enabled"), "remote": k.reading("name")}
                    for k in reader.blocks()]
    return gpu


def snapshot_of(payload, time):
    reader = Reader(payload)
    snapshot = {"time": time, "hostname": reader.text(), "simulated": reader.text(), "monotonic_ns": reader.integer()}
    snapshot["drivers"] = [{"source": d.text(), "version": d.reading("name"), "library_version": d.reading("name"),
                            "cuda_version": d.reading("name")} for d in reader.blocks()]
    snapshot["gpus"] = [gpu_of(g) for g in reader.blocks()]
    snapshot["processes"] = [{"gpu": p.integer(), "pid": p.integer(), "kind": p.byte(),
                              **p.readings(names_of("process"))} for p in reader.blocks()]
    snapshot["sources"] = [{"source": s.text(), "outcome": s.byte(), "text": s.text(), "hint": s.text()}
                           for s in reader.blocks()]
    snapshot["vendor_calls"] = reader.integer()
    return snapshot


def hull(head, payload):
    whole = head[:5] + b"\0" + head[6:16] + struct.pack("<I", len(payload)) + payload
    return whole + struct.pack("<I", crc32c(whole))


def from_difference(payload, before, head):
    reader = Reader(payload)
    if reader.take(4) != before[-4:]:
        raise ValueError("made against another frame")
    total, length, old = reader.take(4), reader.varint(), before[20:-4]
    out, place = b"", 0
    while len(out) < length:
        fresh = reader.take(reader.varint())
        out += fresh
        place += len(fresh)
        if copied := reader.varint():
            place += reader.integer()
            out += old[place:place + copied]
            place += copied
    frame = hull(head, out)
    if frame[-4:] != total:
        raise ValueError("the difference gives another frame")
    return frame


def frames_of(data):
    if data[:9] != b"GWRECORD\1" or crc32c(data[:44]) != struct.unpack("<I", data[44:48])[0]:
        raise ValueError("no head of a recording")
    at, before = 48, b""
    while at < len(data):
        head = data[at:at + 20]
        magic, version, flags, time, length = struct.unpack("<4sBBxxqI", head)
        frame = data[at:at + 24 + length]
        if magic != b"GWFR" or version != 1 or crc32c(frame[:-4]) != struct.unpack("<I", frame[-4:])[0]:
            raise ValueError(f"byte {at}: no whole frame")
        before = from_difference(frame[20:-4], before, head) if flags & 1 else frame
        yield snapshot_of(before[20:-4], time)
        at += len(frame)


# The words of recording_dump.
def words_of(snapshot):
    def readings(thing, noun):
        for name in names_of(noun):
            value = thing.get(name, {})
            if isinstance(value, bool):
                yield f"{name} {str(value).lower()}"
            elif not isinstance(value, dict):
                yield f"{name} {value:.17g}" if isinstance(value, float) else f"{name} {value}"

    yield f"frame {snapshot['time']} {snapshot['vendor_calls']}"
    for gpu in snapshot["gpus"]:
        yield f"gpu {gpu['index']} {gpu['state']} {len(gpu['xids'])}"
        yield from readings(gpu, "gpu")
        for instance in gpu["mig_instances"]:
            yield from readings(instance, "instance")
    for process in snapshot["processes"]:
        yield f"process {process['gpu']} {process['pid']}"
        yield from readings(process, "process")


def check(program):
    for scenario in "8xh100", "a100-mig", "gb10", "wsl2":
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "gpus.gwr")
            dump = subprocess.run([program, file, scenario], check=True, capture_output=True, text=True)
            told = dump.stdout.splitlines()
            read = [word for snapshot in frames_of(file.read_bytes()) for word in words_of(snapshot)]
            size = file.stat().st_size
        for number, (a, b) in enumerate(zip(told, read)):
            if a != b:
                sys.exit(f"{scenario}: line {number + 1}: recorded '{a}', read '{b}'")
        if len(told) != len(read):
            sys.exit(f"{scenario}: {len(told)} values were recorded, {len(read)} read")
        print(f"{scenario}: {len(read)} values in {size} bytes agree")


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--check":
            check(sys.argv[2])
        else:
            for snapshot in frames_of(pathlib.Path(sys.argv[1]).read_bytes()):
                print(json.dumps(snapshot))
    except (ValueError, struct.error) as fault:
        sys.exit(f"{sys.argv[1]}: {fault}")
