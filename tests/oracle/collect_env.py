#!/usr/bin/env python3
"""Checks that `gpuwright doctor --json` tells every fact of `python -m torch.utils.collect_env`, on a small fake torch.

    collect_env.py GPUWRIGHT [COLLECT_ENV]

COLLECT_ENV is torch/utils/collect_env.py of some PyTorch; without it, that of build/emit-venv or build/torch-venv is
taken, and where there is none the test is skipped. It is run in an environment whose torch is a few lines of Python that
say what a CUDA build on one GPU says; nvidia-smi and nvcc are scripts that print what NVIDIA's print. gpuwright reads the
same environment as a captured host, and this machine for what collect_env asks this machine.
"""
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

DRIVER, GPU = "570.124.06", "NVIDIA GeForce RTX 4090"
SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {"torch": "2.7.1+cu126", "torchvision": "0.22.1+cu126", "numpy": "2.3.1", "triton": "3.3.1",
            "nvidia_cudnn_cu12": "9.5.1.17", "nvidia_nccl_cu12": "2.26.2", "onnx": "1.18.0", "mypy": "1.16.0"}
VERSION = """__version__ = '2.7.1+cu126'
debug = False
cuda = '12.6'
git_version = 'e2d141dbde55c2a4370fac5165b0561b6af4798b'
hip = None
"""
FAKE = """from torch import version, cuda
__version__ = version.__version__
"""
CUDA = """def is_available(): return True
def init(): pass
"""


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def find_collect_env():
    found = [*sys.argv[2:3], *glob.glob(f"{ROOT}/build/*-venv/lib/python3*/site-packages/torch/utils/collect_env.py")]
    return found[0] if found else None


def make_host(folder, collect_env):
    venv.create(folder / "venv", with_pip=True)
    site = folder / "venv" / SITE
    write(site / "torch/__init__.py", FAKE)
    write(site / "torch/version.py", VERSION)
    write(site / "torch/cuda.py", CUDA)
    write(site / "torch/backends/__init__.py", "")
    write(site / "torch/backends/xnnpack.py", "enabled = True\n")
    write(site / "torch/utils/__init__.py", "")
    write(site / "torch/utils/collect_env.py", pathlib.Path(collect_env).read_text())
    for name, version in PACKAGES.items():
        write(site / f"{name}-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write(folder / "bin/nvidia-smi", f"""#!/bin/sh
case "$*" in *-L*) echo 'GPU 0: {GPU} (UUID: GPU-1b0e3d4c-2f6a-4c1d-9d3e-7a5b6c7d8e9f)' ;;
*) echo '| NVIDIA-SMI {DRIVER}   Driver Version: {DRIVER}   CUDA Version: 12.8 |' ;; esac
""", 0o755)
    write(folder / "bin/nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 12.6, V12.6.85'\n", 0o755)
    write(folder / "usr/local/cuda/version.json", '{"cuda": {"name": "CUDA SDK", "version": "12.6.3"}}')
    gpu = folder / "sys/bus/pci/devices/0000:01:00.0"
    for name, text in (("vendor", "0x10de"), ("device", "0x2684"), ("class", "0x030000")):
        write(gpu / name, text + "\n")
    write(folder / "proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Release\n")
    settings = {"PATH": "/venv/bin:/usr/bin", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
                "CUDA_MODULE_LOADING": "LAZY"}
    write(folder / "gpuwright-host.json", json.dumps({"machine": os.uname().machine, "env": settings}))
    return settings


def ask_collect_env(folder, settings):
    environment = dict(os.environ, **settings)
    environment["PATH"] = f"{folder}/venv/bin:{folder}/bin:" + os.environ.get("PATH", "")
    environment.pop("PYTHONPATH", None)
    done = subprocess.run([f"{folder}/venv/bin/python", "-c",
                           "from torch.utils import collect_env as c; import json; e = c.get_env_info();"
                           "print(json.dumps({k: v for k, v in e._asdict().items()}))"],
                          check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def doctor(program, *words):
    return json.loads(subprocess.run([program, "doctor", "--json", *words], check=False, capture_output=True,
                                     text=True).stdout)["host"]


def differences(theirs, captured, here):
    software, live = captured["software"], here["software"]
    python = next(p for p in software["pythons"] if p["active"])

    def number(text):
        found = re.search(r"\d+(?:\.\d+)*", text or "")
        return found[0] if found else ""

    def begins(long, short):  # both absent, or the longer version continues the shorter
        return (not long and not short) or bool(short and (long == short or long.startswith(short + ".")))

    pairs = [
        ("torch_version", theirs["torch_version"], python["torch"]),
        ("cuda_compiled_version", theirs["cuda_compiled_version"], python["torch_cuda"]),
        ("hip_compiled_version", None if theirs["hip_compiled_version"] == "N/A" else theirs["hip_compiled_version"],
         python["torch_hip"]),
        ("nvidia_driver_version", theirs["nvidia_driver_version"], captured["nvidia_driver"]),
        ("nvidia_gpu_models", re.sub(r"GPU \d+: ", "", theirs["nvidia_gpu_models"]).strip(),
         captured["gpus"][0]["name"]),
        ("caching_allocator_config", theirs["caching_allocator_config"],
         software["variables"].get("PYTORCH_CUDA_ALLOC_CONF")),
        ("cuda_module_loading", theirs["cuda_module_loading"], software["variables"].get("CUDA_MODULE_LOADING")),
        ("libc_version", theirs["libc_version"].replace("-", " "), live["libc"]),
        ("os", theirs["os"].rsplit(" (", 1)[0], here["distribution"]),
        ("python_version", number(theirs["python_version"]), python["version"]),
    ]
    faults = [f"{name}: collect_env says {a!r}, doctor {b!r}" for name, a, b in pairs if a != b]
    versions = [
        ("gcc_version", (theirs["gcc_version"] or "").split(" ")[-1], live["gcc"]),
        ("clang_version", number((theirs["clang_version"] or "").split("version ")[-1]), live["clang"]),
        ("cmake_version", number(theirs["cmake_version"]), live["cmake"]),
        # nvcc's own number ("12.6.85") and the release's ("12.6.3") agree up to the minor version.
        ("cuda_runtime_version", software["cuda_toolkits"][0]["version"],
         ".".join(theirs["cuda_runtime_version"].split(".")[:2])),
    ]
    faults += [f"{name}: collect_env says {a!r}, doctor {b!r}" for name, a, b in versions if not begins(a, b)]
    if here["kernel"] not in theirs["python_platform"]:
        faults.append(f"python_platform {theirs['python_platform']}: doctor has kernel {here['kernel']}")
    if live["cpu"] and live["cpu"] not in theirs["cpu_info"]:
        faults.append(f"cpu_info: doctor says {live['cpu']}")
    for line in theirs["pip_packages"].splitlines():
        name, version = line.split("==")
        name = re.sub(r"[-_.]+", "-", name).lower()
        if python["packages"].get(name) != version:
            faults.append(f"pip_packages: {line}, doctor says {python['packages'].get(name)}")
    return len(pairs) + len(versions) + 2 + len(theirs["pip_packages"].splitlines()), faults


def main():
    program, collect_env = os.path.abspath(sys.argv[1]), find_collect_env()
    if not collect_env:
        print("skipped: no torch/utils/collect_env.py (build/emit-venv has one, once made)")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        settings = make_host(folder, collect_env)
        theirs = ask_collect_env(folder, settings)
        compared, faults = differences(theirs, doctor(program, "--root", str(folder)), doctor(program))
    for fault in faults:
        print(fault)
    print(f"{compared} facts of collect_env, {len(faults)} not told by doctor")
    return 1 if faults else 0


sys.exit(main())
