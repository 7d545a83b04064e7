#!/usr/bin/env python3
"""Programs that were written for NVIDIA's library, on the simulated one: gpustat, nvitop and nvidia-ml-py from PyPI.

    nvml_tools.py LIBRARY_FOLDER GPUWRIGHT     e.g. build/dev/sim build/dev/src/gpuwright

`gpuwright stat` opens the same library as a driver's, and has to agree with gpustat and nvitop on each field that they
have in common. The right values are the ones that the scenario states; the processes are real ones, since the programs look them up.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

KIND = 1 << 20
GPUS = 8
SECONDS = 30  # the clock stands there
FOLDER = os.path.abspath(sys.argv[1])
GPUWRIGHT = os.path.abspath(sys.argv[2])
failures = []


def check(what, got, want):
    if got != want:
        failures.append(f"{what}: {got!r}, the scenario says {want!r}")


def scenario(pids):
    return f"""
summary = "eight GPUs under constant load"
hostname = "oracle"
[driver]
version = "580.95.05"
cuda = "13.0"
[[gpu]]
id = "h100-sxm5-80gb"
count = 8
memory_total_mib = 81559
memory_other_mib = 3
load = 0.73
memory_load = 0.31
encoder = 0.04
decoder = 0.05
idle_watts = 100
busy_watts = 600
idle_celsius = 30
busy_celsius = 70
graphics_mhz = [345, 1980]
memory_mhz = [2619, 2619]
video_mhz = [345, 1545]
pcie_sent_mb = 100
pcie_received_mb = 200
[[process]]
pid = {json.dumps(pids[:GPUS])}
memory_mib = 12345
sm = 0.6
memory_load = 0.2
[[process]]
pid = {pids[GPUS]}
gpus = [2]
kind = "graphics"
memory_mib = 77
sm = 0.01
"""


def run(command, environment, code=0):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode != code:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def simulated(name, **more):
    library = FOLDER + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    return dict(os.environ, LD_LIBRARY_PATH=library, GPUWRIGHT_SIMULATE=name, TERM="dumb", COLUMNS="140", **more)


def check_gpustat(environment, pids):
    answer = json.loads(run([sys.executable, "-m", "gpustat", "--json"], environment))
    check("gpustat: driver", answer["driver_version"], "580.95.05")
    check("gpustat: GPUs", len(answer["gpus"]), GPUS)
    for index, gpu in enumerate(answer["gpus"]):
        used = 3 + 12345 + (77 if index == 2 else 0)
        want = {"index": index, "name": "NVIDIA H100 80GB HBM3", "utilization.gpu": 73, "utilization.enc": 4,
                "utilization.dec": 5, "memory.used": used, "memory.total": 81559, "power.draw": 465,
                "enforced.power.limit": 700, "temperature.gpu": 59, "fan.speed": None}
        for key, value in want.items():
            check(f"gpustat: GPU {index} {key}", gpu[key], value)
        here = [(p["pid"], p["gpu_memory_usage"], p["command"]) for p in gpu["processes"]]
        want = [(pids[index], 12345, "sleep")] + ([(pids[GPUS], 77, "sleep")] if index == 2 else [])
        check(f"gpustat: GPU {index} processes", sorted(here), sorted(want))
    return answer


NVITOP = """
import json
from nvitop import Device
print(json.dumps([{
  "name": d.name(), "uuid": d.uuid(), "bus": d.bus_id(), "gpu": d.gpu_utilization(), "memory": d.memory_utilization(),
  "used": d.memory_used(), "total": d.memory_total(), "free": d.memory_free(), "power": d.power_usage(),
  "limit": d.power_limit(), "celsius": d.temperature(), "sm": d.sm_clock(), "memory clock": d.memory_clock(),
  "max sm": d.max_sm_clock(), "state": d.performance_state(), "mode": d.compute_mode(), "mig": d.mig_mode(),
  "ecc": d.total_volatile_uncorrected_ecc_errors(), "cc": d.cuda_compute_capability(),
  "encoder": d.encoder_utilization(), "decoder": d.decoder_utilization(),
  "sent": d.pcie_tx_throughput(), "received": d.pcie_rx_throughput(),
  "processes": {pid: [p.gpu_memory(), p.gpu_sm_utilization(), p.type] for pid, p in d.processes().items()},
} for d in Device.all()]))
"""


def check_nvitop(environment, pids):
    devices = json.loads(run([sys.executable, "-c", NVITOP], environment))
    check("nvitop: GPUs", len(devices), GPUS)
    for index, device in enumerate(devices):
        used = 3 + 12345 + (77 if index == 2 else 0)
        want = {"name": "NVIDIA H100 80GB HBM3", "gpu": 73, "memory": 31, "used": used * KIND, "total": 81559 * KIND,
                "power": 465000, "limit": 700000, "celsius": 59, "sm": 1980, "memory clock": 2619, "max sm": 1980,
                "state": "P0", "mode": "Default", "mig": "Disabled", "ecc": 0, "cc": [9, 0], "encoder": 4,
                "decoder": 5, "sent": 100000, "received": 200000}
        for key, value in want.items():
            check(f"nvitop: GPU {index} {key}", device[key], value)
        here = {str(pids[index]): [12345 * KIND, 60, "C"]}
        if index == 2:
            here[str(pids[GPUS])] = [77 * KIND, 1, "G"]
        check(f"nvitop: GPU {index} processes", device["processes"], here)
    screen = run([sys.executable, "-m", "nvitop", "-1", "--ascii"], environment)
    for word in ("580.95.05", "13.0", "H100 80GB HBM3", "73%", "465W / 700W", "59C", str(pids[0]), "sleep"):
        if word not in screen:
            failures.append(f"nvitop -1 does not show {word}")
    return devices


def percent(ratio):
    return None if ratio is None else round(ratio * 100)


def of_gpustat(gpu):
    """A row of stat in the words and units of gpustat."""
    return {
        "index": gpu["index"], "uuid": gpu["uuid"], "name": gpu["name"], "temperature.gpu": gpu["temperature_celsius"],
        "fan.speed": percent(gpu["fan_ratio"]), "utilization.gpu": percent(gpu["utilization_ratio"]),
        "utilization.enc": percent(gpu["encoder_utilization_ratio"]),
        "utilization.dec": percent(gpu["decoder_utilization_ratio"]), "power.draw": round(gpu["power_watts"]),
        "enforced.power.limit": round(gpu["power_limit_watts"]), "memory.used": gpu["memory_used_bytes"] // KIND,
        "memory.total": gpu["memory_total_bytes"] // KIND,
    }


def of_nvitop(gpu):
    """A row of stat in the words and units of nvitop."""
    domain, rest = gpu["pci_address"].split(":", 1)
    return {
        "name": gpu["name"], "uuid": gpu["uuid"], "bus": f"{int(domain, 16):08X}:{rest.upper()}",
        "gpu": percent(gpu["utilization_ratio"]), "memory": percent(gpu["memory_utilization_ratio"]),
        "used": gpu["memory_used_bytes"], "total": gpu["memory_total_bytes"], "free": gpu["memory_free_bytes"],
        "power": round(gpu["power_watts"] * 1000), "limit": round(gpu["power_limit_watts"] * 1000),
        "celsius": gpu["temperature_celsius"], "sm": gpu["sm_clock_hertz"] // 10**6,
        "memory clock": gpu["memory_clock_hertz"] // 10**6, "max sm": gpu["sm_clock_max_hertz"] // 10**6,
        "state": f"P{gpu['performance_state']}", "mode": gpu["compute_mode"].capitalize(),
        "mig": "Enabled" if gpu["mig_mode"] else "Disabled", "ecc": gpu["ecc_uncorrected_volatile"],
        "cc": [int(part) for part in gpu["compute_capability"].split(".")],
        "encoder": percent(gpu["encoder_utilization_ratio"]), "decoder": percent(gpu["decoder_utilization_ratio"]),
    }


def check_stat(environment, gpustat, nvitop):
    answer = json.loads(run([GPUWRIGHT, "stat", "--json"], environment))
    check("stat: says what is simulated", answer["simulated"], environment["GPUWRIGHT_SIMULATE"])
    check("stat: GPUs", len(answer["gpus"]), GPUS)
    check("stat: driver", answer["drivers"][0]["version"], gpustat["driver_version"])
    fields = 0
    for index, gpu in enumerate(answer["gpus"]):
        for peer, mine, theirs in (("gpustat", of_gpustat(gpu), gpustat["gpus"][index]),
                                   ("nvitop", of_nvitop(gpu), nvitop[index])):
            for key, value in mine.items():
                fields += 1
                if value != theirs[key]:
                    failures.append(f"stat: GPU {index} {key}: {value!r}, {peer} says {theirs[key]!r}")
        processes = [process for process in answer["processes"] if process["gpu"] == index]
        mine = {p["pid"]: [p["memory_bytes"] // KIND, p["command"].split(), p["user"]] for p in processes}
        check(f"stat: GPU {index} processes as gpustat's", mine, {
            p["pid"]: [p["gpu_memory_usage"], p["full_command"], p["username"]]
            for p in gpustat["gpus"][index]["processes"]})
        mine = {str(p["pid"]): [p["memory_bytes"], percent(p["sm_utilization_ratio"])] for p in processes}
        check(f"stat: GPU {index} processes as nvitop's", mine,
              {pid: values[:2] for pid, values in nvitop[index]["processes"].items()})
        fields += 5 * len(processes)
    return fields


# Every function without arguments beyond the device, on a scenario: an answer or one of the library's own errors.
PYNVML = """
import inspect, sys
import pynvml as n
try:
    n.nvmlInit()
except n.NVMLError as error:
    print("init", error.value)
    sys.exit()
answered = 0
for index in range(n.nvmlDeviceGetCount()):
    try:
        device = n.nvmlDeviceGetHandleByIndex(index)
    except n.NVMLError as error:
        print("handle", index, error.value)
        continue
    for name, function in sorted(vars(n).items()):
        if not name.startswith("nvmlDeviceGet") or list(inspect.signature(function).parameters) not in (
                ["handle"], ["device"]):
            continue
        try:
            function(device)
            answered += 1
        except (n.NVMLError, n.NVMLLibraryMismatchError):
            pass
print("answered", answered)
n.nvmlShutdown()
"""


def check_every_scenario():
    root = os.path.join(os.path.dirname(__file__), "../../data/scenarios")
    init = {"mismatch": "init 18", "not-loaded": "init 9"}
    for file in sorted(os.listdir(root)):
        name = file.removesuffix(".toml")
        if name == "faulty":  # one of its GPUs hangs, as it is to
            continue
        text = run([sys.executable, "-W", "ignore", "-c", PYNVML], simulated(name, GPUWRIGHT_SIMULATE_TIME="1"))
        if name in init:
            check(f"nvidia-ml-py on {name}", text.strip(), init[name])
        elif int(re.search(r"answered (\d+)", text)[1]) < 20:
            failures.append(f"nvidia-ml-py on {name}: {text}")
    text = run([sys.executable, "-c", "import pynvml as n; n.nvmlInit()\nfor i in (1, 3, 5):\n try: "
                "n.nvmlDeviceGetHandleByIndex(i)\n except n.NVMLError as e: print(i, e.value)"],
               simulated("faulty", GPUWRIGHT_SIMULATE_TIME="5"))
    check("nvidia-ml-py on faulty", text.split("\n")[:3], ["1 15", "3 4", "5 16"])


# What nvidia-ml-py tells of a device, in doctor's units.
DEVICE_FACTS = """
import json
import pynvml as n
n.nvmlInit()
def facts(d):
    pci, limits = n.nvmlDeviceGetPciInfo(d), n.nvmlDeviceGetPowerManagementLimitConstraints(d)
    memory = n.nvmlDeviceGetMemoryInfo(d, version=n.nvmlMemory_v2)
    bar1 = n.nvmlDeviceGetBAR1MemoryInfo(d)
    clock = lambda kind: n.nvmlDeviceGetMaxClockInfo(d, kind) * 1000000
    errors = lambda kind, counter: n.nvmlDeviceGetTotalEccErrors(d, kind, counter)
    return {
        "name": n.nvmlDeviceGetName(d), "uuid": n.nvmlDeviceGetUUID(d), "serial": n.nvmlDeviceGetSerial(d),
        "vbios": n.nvmlDeviceGetVbiosVersion(d), "device_minor": n.nvmlDeviceGetMinorNumber(d),
        "pci_address": "%04x:%02x:%02x.0" % (pci.domain, pci.bus, pci.device),
        "pci_id": "%04x:%04x" % (pci.pciDeviceId & 0xFFFF, pci.pciDeviceId >> 16),
        "compute_capability": "%d.%d" % n.nvmlDeviceGetCudaComputeCapability(d),
        "memory_total_bytes": memory.total, "memory_reserved_bytes": memory.reserved, "memory_free_bytes": memory.free,
        "bar1_total_bytes": bar1.bar1Total, "power_limit_watts": n.nvmlDeviceGetEnforcedPowerLimit(d) / 1000,
        "power_limit_default_watts": n.nvmlDeviceGetPowerManagementDefaultLimit(d) / 1000,
        "power_limit_min_watts": limits[0] / 1000, "power_limit_max_watts": limits[1] / 1000,
        "sm_clock_max_hertz": clock(n.NVML_CLOCK_SM), "memory_clock_max_hertz": clock(n.NVML_CLOCK_MEM),
        "temperature_celsius": n.nvmlDeviceGetTemperature(d, n.NVML_TEMPERATURE_GPU),
        "temperature_slowdown_celsius": n.nvmlDeviceGetTemperatureThreshold(d, n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        "pcie_generation": n.nvmlDeviceGetCurrPcieLinkGeneration(d), "pcie_width": n.nvmlDeviceGetCurrPcieLinkWidth(d),
        "pcie_generation_max": n.nvmlDeviceGetMaxPcieLinkGeneration(d),
        "pcie_width_max": n.nvmlDeviceGetMaxPcieLinkWidth(d),
        "ecc_enabled": bool(n.nvmlDeviceGetEccMode(d)[0]),
        "ecc_corrected_volatile": errors(n.NVML_MEMORY_ERROR_TYPE_CORRECTED, n.NVML_VOLATILE_ECC),
        "ecc_uncorrected_aggregate": errors(n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_AGGREGATE_ECC),
        "remapped_rows_corrected": n.nvmlDeviceGetRemappedRows(d)[0],
        "mig_mode": bool(n.nvmlDeviceGetMigMode(d)[0]), "persistence_mode": bool(n.nvmlDeviceGetPersistenceMode(d)),
        "display_active": bool(n.nvmlDeviceGetDisplayActive(d)), "performance_state": n.nvmlDeviceGetPerformanceState(d),
        "compute_mode": {0: "default", 2: "prohibited", 3: "exclusive process"}[n.nvmlDeviceGetComputeMode(d)]}
devices = [facts(n.nvmlDeviceGetHandleByIndex(i)) for i in range(n.nvmlDeviceGetCount())]
print(json.dumps([n.nvmlSystemGetDriverVersion(), n.nvmlSystemGetCudaDriverVersion() / 1000, devices]))
"""


def check_doctor():
    environment = simulated("8xh100", GPUWRIGHT_SIMULATE_TIME="10")
    driver, cuda, devices = json.loads(run([sys.executable, "-W", "ignore", "-c", DEVICE_FACTS], environment))
    answer = json.loads(subprocess.run([GPUWRIGHT, "doctor", "--json"], env=environment, capture_output=True, text=True,
                                       check=False).stdout)["devices"]
    check("doctor: driver", answer["drivers"][0]["version"], driver)
    check("doctor: CUDA", float(answer["drivers"][0]["cuda_version"]), cuda)
    check("doctor: devices", len(answer["gpus"]), len(devices))
    for mine, theirs in zip(answer["gpus"], devices):
        for key, value in theirs.items():
            check(f"doctor: GPU {mine['index']} {key}, as nvidia-ml-py's", mine[key], value)
    return len(devices) * len(devices[0])


def check_exports():
    symbols = run(["nm", "-D", "--defined-only", os.path.join(FOLDER, "libnvidia-ml.so.1")], dict(os.environ))
    foreign = [line for line in symbols.splitlines() if not line.split()[-1].startswith("nvml")]
    check("exports beside nvml*", [line.split()[-1] for line in foreign], ["gpuwright_simulation"])
    check("libnvidia-ml.so", os.path.realpath(os.path.join(FOLDER, "libnvidia-ml.so")),
          os.path.realpath(os.path.join(FOLDER, "libnvidia-ml.so.1")))


def main():
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(GPUS + 1)]
    try:
        pids = [sleeper.pid for sleeper in sleepers]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(scenario(pids))
            file.flush()
            environment = simulated(file.name, GPUWRIGHT_SIMULATE_TIME=str(SECONDS))
            gpustat = check_gpustat(environment, pids)
            nvitop = check_nvitop(environment, pids)
            fields = check_stat(environment, gpustat, nvitop)
        # The pids of a built-in scenario give way to real ones.
        answer = json.loads(run([sys.executable, "-m", "gpustat", "--json"],
                                simulated("8xh100", GPUWRIGHT_SIMULATE_PIDS=",".join(map(str, pids)))))
        check("gpustat on 8xh100: processes", sorted(p["pid"] for g in answer["gpus"] for p in g["processes"]),
              sorted(pids))
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    check_every_scenario()
    covered = check_doctor()
    check_exports()
    for failure in failures:
        print(failure)
    print(f"{len(failures)} differences" if failures else
          f"gpustat, nvitop and nvidia-ml-py read what the scenarios say; stat agrees with them on {fields} values, "
          f"doctor with nvidia-ml-py on {covered}")
    return 1 if failures else 0


sys.exit(main())
