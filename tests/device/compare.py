#!/usr/bin/env python3
"""Compares answers of gpuwright with nvidia-smi's XML; tests/device/compare.sh gathers them.

    tests/device/compare.py BEFORE.xml AFTER.xml STAT.json PS.json
    tests/device/compare.py --self-test

A field agrees when both tell the same, or, of what changes by itself, when ours lies between nvidia-smi's two values
give or take the tolerance; and when neither tells it. What only nvidia-smi tells is a difference, what only we tell
is not.
"""
import json
import sys
import xml.etree.ElementTree as ElementTree

MIB = 1 << 20

# (field of gpuwright, places in the XML, factor to our unit, tolerance in our unit; None: must be the same text)
NUMBERS = [
    ("memory_total_bytes", ["fb_memory_usage/total"], MIB, MIB),
    ("memory_reserved_bytes", ["fb_memory_usage/reserved"], MIB, MIB),
    ("memory_used_bytes", ["fb_memory_usage/used"], MIB, 64 * MIB),
    ("memory_free_bytes", ["fb_memory_usage/free"], MIB, 64 * MIB),
    ("bar1_total_bytes", ["bar1_memory_usage/total"], MIB, MIB),
    ("bar1_used_bytes", ["bar1_memory_usage/used"], MIB, 2 * MIB),
    ("utilization_ratio", ["utilization/gpu_util"], 0.01, 0.25),
    ("memory_utilization_ratio", ["utilization/memory_util"], 0.01, 0.25),
    ("encoder_utilization_ratio", ["utilization/encoder_util"], 0.01, 0.1),
    ("decoder_utilization_ratio", ["utilization/decoder_util"], 0.01, 0.1),
    ("jpeg_utilization_ratio", ["utilization/jpeg_util"], 0.01, 0.1),
    ("ofa_utilization_ratio", ["utilization/ofa_util"], 0.01, 0.1),
    ("temperature_celsius", ["temperature/gpu_temp"], 1, 3),
    ("memory_temperature_celsius", ["temperature/memory_temp"], 1, 3),
    ("power_watts", ["gpu_power_readings/average_power_draw", "gpu_power_readings/power_draw",
                     "power_readings/power_draw"], 1, 40),
    ("power_instant_watts", ["gpu_power_readings/instant_power_draw"], 1, 60),
    ("power_limit_watts", ["gpu_power_readings/current_power_limit", "power_readings/power_limit"], 1, 0.5),
    ("power_limit_default_watts", ["gpu_power_readings/default_power_limit", "power_readings/default_power_limit"],
     1, 0.5),
    ("power_limit_min_watts", ["gpu_power_readings/min_power_limit", "power_readings/min_power_limit"], 1, 0.5),
    ("power_limit_max_watts", ["gpu_power_readings/max_power_limit", "power_readings/max_power_limit"], 1, 0.5),
    ("sm_clock_hertz", ["clocks/sm_clock"], 1e6, 300e6),
    ("graphics_clock_hertz", ["clocks/graphics_clock"], 1e6, 300e6),
    ("memory_clock_hertz", ["clocks/mem_clock"], 1e6, 300e6),
    ("video_clock_hertz", ["clocks/video_clock"], 1e6, 300e6),
    ("sm_clock_max_hertz", ["max_clocks/sm_clock"], 1e6, 1e6),
    ("graphics_clock_max_hertz", ["max_clocks/graphics_clock"], 1e6, 1e6),
    ("memory_clock_max_hertz", ["max_clocks/mem_clock"], 1e6, 1e6),
    ("fan_ratio", ["fan_speed"], 0.01, 0.05),
    ("pcie_generation", ["pci/pci_gpu_link_info/pcie_gen/current_link_gen"], 1, 0),
    ("pcie_generation_max", ["pci/pci_gpu_link_info/pcie_gen/max_link_gen"], 1, 0),
    ("pcie_width", ["pci/pci_gpu_link_info/link_widths/current_link_width"], 1, 0),
    ("pcie_width_max", ["pci/pci_gpu_link_info/link_widths/max_link_width"], 1, 0),
    ("pcie_replays", ["pci/replay_counter"], 1, 0),
    ("device_minor", ["minor_number"], 1, 0),
    ("remapped_rows_corrected", ["remapped_rows/remapped_row_corr"], 1, 0),
    ("remapped_rows_uncorrected", ["remapped_rows/remapped_row_unc"], 1, 0),
]
TEXTS = [
    ("name", ["product_name"]),
    ("uuid", ["uuid"]),
    ("serial", ["serial"]),
    ("vbios", ["vbios_version"]),
    ("performance_state", ["performance_state"]),
    ("mig_mode", ["mig_mode/current_mig"]),
    ("persistence_mode", ["persistence_mode"]),
    ("ecc_enabled", ["ecc_mode/current_ecc"]),
    ("compute_mode", ["compute_mode"]),
    ("remapping_pending", ["remapped_rows/remapped_row_pending"]),
    ("remapping_failed", ["remapped_rows/remapped_row_failure"]),
]
ABSENT = {"", "N/A", "Not Supported", "[N/A]", "Requested functionality has been deprecated"}


def told(gpu, places):
    for place in places:
        text = (gpu.findtext(place) or "").strip()
        if text not in ABSENT and not text.startswith("Unknown"):
            return text
    return None


def number(text):
    """The number at the start of "81559 MiB", "16x", "64 C"."""
    if text is None:
        return None
    try:
        return float(text.split()[0].rstrip("x%"))
    except ValueError:
        return None


def same_text(field, ours, theirs):
    words = {"Enabled": True, "Disabled": False, "Yes": True, "No": False}
    if isinstance(ours, bool):
        return words.get(theirs) == ours
    if field == "performance_state":
        return theirs == "P%d" % ours
    return str(ours).replace("_", " ").lower() == theirs.replace("_", " ").lower()


def same_address(ours, theirs):
    """nvidia-smi writes the domain with eight digits, the kernel with four."""
    return ours.lower().split(":", 1)[-1] == theirs.lower().split(":", 1)[-1] and \
        int(ours.split(":")[0], 16) == int(theirs.split(":")[0], 16)


class Table:
    def __init__(self):
        self.rows, self.differences = [], 0

    def add(self, subject, field, ours, theirs, good):
        self.rows.append((subject, field, "n/a" if ours is None else str(ours), theirs, "ok" if good else "DIFFERS"))
        self.differences += not good

    def show(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(4)]
        for row in self.rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths)), "", row[4])
        print("%d fields compared, %d differ" % (len(self.rows), self.differences))


def compare_gpu(table, subject, ours, before, after):
    for field, places, factor, tolerance in NUMBERS:
        values = [number(told(gpu, places)) for gpu in (before, after)]
        if None in values:
            continue
        low, high = min(values) * factor - tolerance, max(values) * factor + tolerance
        mine = ours.get(field)
        table.add(subject, field, mine, "%g..%g" % (min(values) * factor, max(values) * factor),
                  mine is not None and low - 1e-9 <= mine <= high + 1e-9)
    for field, places in TEXTS:
        texts = [told(gpu, places) for gpu in (before, after)]
        if None in texts:
            continue
        mine = ours.get(field)
        table.add(subject, field, mine, texts[1], mine is not None and any(same_text(field, mine, t) for t in texts))


def processes_of(gpus):
    """{(uuid, pid): [MiB or None]}: one process may stand there more than once (compute and graphics)."""
    found = {}
    for gpu in gpus:
        for process in gpu.iterfind("processes/process_info"):
            key = (told(gpu, ["uuid"]), int(process.findtext("pid")))
            found.setdefault(key, []).append(number(told(process, ["used_memory"])))
    return found


def compare_processes(table, answer, uuid_of, before, after):
    first, last = processes_of(before), processes_of(after)
    ours = {(uuid_of.get(row["gpu"]), row["pid"]): row for row in answer["processes"]}
    for key in sorted(first.keys() & last.keys(), key=str):  # those that lived all the while
        row = ours.get(key)
        subject = "pid %d" % key[1]
        table.add(subject, "on its GPU", row is not None, "yes", row is not None)
        sizes = [size for size in first[key] + last[key] if size is not None]
        if row is None or not sizes:
            continue
        mine = row["memory_bytes"]
        good = mine is not None and min(sizes) * MIB - 64 * MIB <= mine <= max(sizes) * MIB + 64 * MIB
        table.add(subject, "memory_bytes", mine, "%g..%g" % (min(sizes) * MIB, max(sizes) * MIB), good)
    for key in sorted(ours.keys() - (first.keys() | last.keys()), key=str):
        table.add("pid %s" % key[1], "on its GPU", True, "no", False)


def compare(before, after, stat, processes):
    table = Table()
    table.add("driver", "version", stat["drivers"][0]["version"] if stat["drivers"] else None,
              told(before, ["driver_version"]),
              any(driver["version"] == told(before, ["driver_version"]) for driver in stat["drivers"]))
    nvidia = [gpu for gpu in stat["gpus"] if gpu["vendor"] == "NVIDIA"]
    theirs, later = before.findall("gpu"), after.findall("gpu")
    table.add("host", "NVIDIA GPUs", len(nvidia), str(len(theirs)), len(nvidia) == len(theirs))
    for ours in nvidia:
        subject = "GPU %d" % ours["index"]
        pairs = [pair for pair in zip(theirs, later) if told(pair[0], ["uuid"]) == ours["uuid"]]
        if not pairs:
            table.add(subject, "uuid", ours["uuid"], "not there", False)
            continue
        table.add(subject, "pci_address", ours["pci_address"], pairs[0][0].get("id"),
                  same_address(ours["pci_address"], pairs[0][0].get("id")))
        compare_gpu(table, subject, ours, *pairs[0])
    compare_processes(table, processes, {gpu["index"]: gpu["uuid"] for gpu in nvidia}, theirs, later)
    return table


def self_test():
    """That agreement is found, and each kind of difference."""
    xml = ElementTree.fromstring("""<nvidia_smi_log><driver_version>580.95.05</driver_version>
      <gpu id="00000000:1B:00.0"><product_name>NVIDIA H200</product_name><uuid>GPU-1</uuid><serial>N/A</serial>
      <performance_state>P0</performance_state><mig_mode><current_mig>Disabled</current_mig></mig_mode>
      <fb_memory_usage><total>143771 MiB</total><used>4096 MiB</used></fb_memory_usage>
      <processes><process_info><pid>42</pid><type>C</type><used_memory>4000 MiB</used_memory></process_info></processes>
      </gpu></nvidia_smi_log>""")
    gpu = {"index": 0, "vendor": "NVIDIA", "uuid": "GPU-1", "pci_address": "0000:1b:00.0", "name": "NVIDIA H200",
           "performance_state": 0, "mig_mode": False, "memory_total_bytes": 143771 * MIB,
           "memory_used_bytes": 4100 * MIB}
    stat = {"drivers": [{"version": "580.95.05"}], "gpus": [gpu]}
    processes = {"processes": [{"gpu": 0, "pid": 42, "memory_bytes": 4000 * MIB}]}
    assert compare(xml, xml, stat, processes).differences == 0
    for field, wrong in (("memory_total_bytes", 80 << 30), ("mig_mode", True), ("performance_state", 8),
                         ("memory_used_bytes", None), ("pci_address", "0001:1b:00.0")):
        worse = dict(gpu, **{field: wrong})
        assert compare(xml, xml, dict(stat, gpus=[worse]), processes).differences == 1, field
    assert compare(xml, xml, stat, {"processes": []}).differences == 1
    print("self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    before, after = (ElementTree.parse(path).getroot() for path in sys.argv[1:3])
    stat, processes = (json.load(open(path, encoding="utf-8")) for path in sys.argv[3:5])
    table = compare(before, after, stat, processes)
    table.show()
    return sys.exit(1 if table.differences else 0)


main()
