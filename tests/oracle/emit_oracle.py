"""What --emit writes, read by the programs it is written for: deepspeed's DeepSpeedConfig, accelerate's ClusterConfig,
launcher and FSDP plugin, and the argument classes of transformers, TRL and LLaMA-Factory.

    emit_oracle.py EMIT_DUMP

The real parsers are imported and run; only torch, which they import but which decides nothing here, is replaced by an
empty shell, so that the check fits on a machine without it. `deepspeed` and `accelerate` are imported without their
package's own __init__ where that pulls in kernels. Versions are pinned in requirements-emit.txt:

    python3 -m venv build/emit-venv
    build/emit-venv/bin/pip install --no-deps --require-hashes -r requirements-emit.txt
    tests/oracle/run_emit build/dev/tests/oracle/emit_dump
"""

import ast
import enum
import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import types

SITE = pathlib.Path(sysconfig.get_paths()["purelib"])
MODEL = 'org/it\'s a "model": #1'


# ---------------------------------------------------------------- a shell in place of torch


class AnyMeta(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    def __or__(cls, other):
        return cls

    def __ror__(cls, other):
        return cls

    def __getitem__(cls, key):
        return cls

    def __iter__(cls):
        return iter(())


class Anything(metaclass=AnyMeta):
    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else Anything()


class Shell(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name in REAL_ENOUGH:
            return REAL_ENOUGH[name]
        if name in ("is_available", "is_initialized", "is_built"):
            return lambda *args, **kwargs: False
        if name == "device_count":
            return lambda *args, **kwargs: 0
        if name.startswith("__"):
            raise AttributeError(name)
        return AnyMeta(name, (Anything,), {})


# torch/distributed/fsdp/api.py, as far as accelerate looks into it
class ShardingStrategy(enum.Enum):
    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4


class BackwardPrefetch(enum.Enum):
    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class CPUOffload:
    def __init__(self, offload_params=False):
        self.offload_params = offload_params


class OffloadPolicy:
    pass


class CPUOffloadPolicy(OffloadPolicy):
    pass


class dtype:  # noqa: N801, torch's own name
    pass


REAL_ENOUGH = {kind.__name__: kind for kind in (ShardingStrategy, BackwardPrefetch, CPUOffload, OffloadPolicy,
                                                CPUOffloadPolicy, dtype)}
REAL_ENOUGH.update({name: dtype() for name in ("float16", "bfloat16", "float32", "int8", "uint8")})


class ShellFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    # Kernels and what needs them; the parsers name them in imports only.
    roots = ("torch", "cpuinfo", "ninja", "msgpack", "einops", "deepspeed.ops", "deepspeed.module_inject",
             "deepspeed.moe", "deepspeed.model_implementations")

    def find_spec(self, name, path=None, target=None):
        if any(name == root or name.startswith(root + ".") for root in self.roots):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Shell(spec.name)

    def exec_module(self, module):
        if module.__name__ == "torch":
            module.__version__ = "2.9.0"
            module.version = types.SimpleNamespace(cuda=None, hip=None, xpu=None)


def install_shell():
    sys.meta_path.insert(0, ShellFinder())
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "2.9.0" if name == "torch" else version(name)


def bare_package(name):
    """The package's modules without its __init__."""
    package = Shell(name)
    package.__path__ = [str(SITE / name.replace(".", "/"))]
    sys.modules[name] = package
    return package


# ---------------------------------------------------------------- the parsers


class DeepSpeed:
    def __init__(self):
        package = bare_package("deepspeed")
        self.comm = package.comm = bare_package("deepspeed.comm")
        bare_package("deepspeed.runtime.zero")
        self.comm.is_initialized = lambda: True
        self.comm.get_rank = lambda *args, **kwargs: 0
        import deepspeed.runtime.config as config

        self.config = config

    def read(self, path, gpus):
        self.comm.get_world_size = lambda *args, **kwargs: gpus
        return self.config.DeepSpeedConfig(str(path))


def check_deepspeed(deepspeed, path, job):
    config = deepspeed.read(path, job["gpus"])
    assert config.train_micro_batch_size_per_gpu == job["micro_batch"]
    assert config.gradient_accumulation_steps == job["accumulation"]
    assert config.train_batch_size == job["micro_batch"] * job["accumulation"] * job["gpus"]
    zero = config.zero_config
    assert int(zero.stage) == job["zero"], zero.stage
    assert zero.reduce_bucket_size == zero.allgather_bucket_size == job["bucket"]
    for key, section in (("offload_optimizer", zero.offload_optimizer), ("offload_parameters", zero.offload_param)):
        assert (section is not None) == job[key]
        assert section is None or section.device == "cpu"
    assert config.bfloat16_config.enabled and not config.float16_config.enabled
    assert config.bfloat16_config.bf16_optimizer_states == (job["pure"] and job["method"] == "full")
    assert "auto" not in path.read_text()
    try:
        deepspeed.read(path, job["gpus"] + 1)
    except AssertionError:
        return
    raise AssertionError("DeepSpeed takes the file for a wrong number of GPUs, so that its check proves nothing")


class Accelerate:
    def __init__(self):
        from accelerate.commands.config import config_args
        from accelerate.commands.launch import _validate_launch_command, launch_command_parser
        from accelerate.utils import dataclasses, launch

        self.load = config_args.load_config_from_file
        self.parser = launch_command_parser()
        self.validate = _validate_launch_command
        self.environment = launch.prepare_multi_gpu_env
        self.plugin = dataclasses.FullyShardedDataParallelPlugin


def check_accelerate(accelerate, path, job):
    config = accelerate.load(str(path))  # refuses keys that it does not know
    assert config.num_processes == job["gpus"]
    assert config.num_machines == max(1, job["gpus"] // job["gpus_per_node"])
    wanted = "FSDP" if job["fsdp"] else "DEEPSPEED" if job["zero"] else "MULTI_GPU" if job["gpus"] > 1 else "NO"
    assert config.distributed_type == wanted, config.distributed_type
    if job["zero"]:
        assert (path.parent / config.deepspeed_config["deepspeed_config_file"]).is_file()
    if job["fsdp"]:
        check_fsdp(accelerate, path, job)


def check_fsdp(accelerate, path, job):
    arguments = accelerate.parser.parse_args(["--config_file", str(path), "train.py"])
    arguments, _, _ = accelerate.validate(arguments)
    environment = accelerate.environment(arguments)
    kept = dict(os.environ)
    os.environ.update({key: str(value) for key, value in environment.items()})
    try:
        plugin = accelerate.plugin()
    finally:
        os.environ.clear()
        os.environ.update(kept)
    assert plugin.fsdp_version == job["fsdp_version"]
    grad_only = plugin.reshard_after_forward in (False, ShardingStrategy.SHARD_GRAD_OP)
    if job["fsdp_version"] == 1 and plugin.sharding_strategy is not None:
        grad_only = plugin.sharding_strategy == ShardingStrategy.SHARD_GRAD_OP
    assert grad_only == job["grad_only"], (plugin.reshard_after_forward, plugin.sharding_strategy)
    offloads = isinstance(plugin.cpu_offload, CPUOffloadPolicy) or getattr(plugin.cpu_offload, "offload_params", False)
    assert offloads == job["offload_parameters"], plugin.cpu_offload


def fields_of(*files):
    """Names of the dataclass fields in the files, without importing them."""
    names = set()
    for file in files:
        for node in ast.walk(ast.parse((SITE / file).read_text())):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return names


class Arguments:
    def __init__(self):
        trainer = fields_of("transformers/training_args.py")
        self.sft_config = trainer | fields_of("trl/trainer/sft_config.py", "trl/trainer/base_config.py")
        self.trl = self.sft_config | fields_of("trl/trainer/model_config.py", "trl/scripts/utils.py")
        hparams = [f"llamafactory/hparams/{name}_args.py" for name in ("model", "data", "finetuning", "training")]
        self.llama_factory = trainer | fields_of(*hparams)
        optimizers = ast.parse((SITE / "transformers/training_args.py").read_text())
        self.optimizers = {
            item.value.value
            for node in ast.walk(optimizers)
            if isinstance(node, ast.ClassDef) and node.name == "OptimizerNames"
            for item in node.body
            if isinstance(item, ast.Assign)
        }


def check_arguments(known, arguments, yaml_path, job):
    import yaml

    values = yaml.safe_load(yaml_path.read_text())
    assert set(values) <= known, set(values) - known
    assert values["model_name_or_path"] == MODEL
    assert values["per_device_train_batch_size"] == job["micro_batch"]
    assert values["gradient_accumulation_steps"] == job["accumulation"]
    assert values.get("max_length", values.get("cutoff_len")) == job["sequence"]
    assert values["optim"] in arguments.optimizers
    assert isinstance(values["learning_rate"], float)
    assert bool(values.get("use_peft") or values.get("finetuning_type") == "lora") == (job["method"] != "full")
    assert "auto" not in values.values()


def check_program(arguments, path, job):
    """Each keyword of the program is one that the class it is given to has."""
    known = {
        "SFTConfig": arguments.sft_config,
        "LoraConfig": fields_of("peft/tuners/lora/config.py", "peft/config.py"),
        "BitsAndBytesConfig": {
            argument.arg
            for node in ast.walk(ast.parse((SITE / "transformers/utils/quantization_config.py").read_text()))
            if isinstance(node, ast.ClassDef) and node.name == "BitsAndBytesConfig"
            for method in node.body
            if isinstance(method, ast.FunctionDef) and method.name == "__init__"
            for argument in method.args.args + method.args.kwonlyargs
        },
    }
    program = ast.parse(path.read_text())
    calls = {}
    for node in ast.walk(program):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            calls[node.func.id] = {keyword.arg: keyword.value for keyword in node.keywords}
            assert set(calls[node.func.id]) <= known[node.func.id], set(calls[node.func.id]) - known[node.func.id]
    assert ("BitsAndBytesConfig" in calls) == (job["method"] == "qlora")
    assert ("LoraConfig" in calls) == (job["method"] != "full")
    assert calls["SFTConfig"]["per_device_train_batch_size"].value == job["micro_batch"]
    names = {node.targets[0].id: node.value for node in program.body if isinstance(node, ast.Assign)}
    assert names["MODEL"].value == MODEL


def check_shell(path):
    subprocess.run(["bash", "-n", str(path)], check=True)


def check_case(folder, deepspeed, accelerate, arguments):
    job = json.loads((folder / "job.json").read_text())
    checks = {
        "ds_config.json": lambda path: check_deepspeed(deepspeed, path, job),
        "accelerate.yaml": lambda path: check_accelerate(accelerate, path, job),
        "sft.yaml": lambda path: check_arguments(arguments.trl, arguments, path, job),
        "llamafactory.yaml": lambda path: check_arguments(arguments.llama_factory, arguments, path, job),
        "train.py": lambda path: check_program(arguments, path, job),
        "command.sh": check_shell,
        "job.json": lambda path: None,
    }
    for path in sorted(folder.iterdir()):
        checks[path.name](path)


def main():
    install_shell()
    accelerate, deepspeed, arguments = Accelerate(), DeepSpeed(), Arguments()  # it looks for an untouched deepspeed
    faults = 0
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.argv[1], directory], check=True)
        cases = sorted(pathlib.Path(directory).iterdir())
        for folder in cases:
            os.chdir(folder)
            try:
                check_case(folder, deepspeed, accelerate, arguments)
            except Exception as fault:  # any refusal of a parser is a finding
                faults += 1
                print(f"{folder.name}: {type(fault).__name__}: {fault}")
                if os.environ.get("EMIT_ORACLE_TRACE"):
                    import traceback

                    traceback.print_exc()
        os.chdir("/")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in
                         ("deepspeed", "accelerate", "transformers", "trl", "peft", "llamafactory"))
    print(f"{len(cases) - faults} of {len(cases)} cases read by {versions}")
    return 1 if faults or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
