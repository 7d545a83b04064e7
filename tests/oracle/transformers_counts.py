#!/usr/bin/env python3
"""Counts the parameters of every preset and test case with Hugging Face transformers on the meta device.

The table it writes (parameter_counts.tsv) is the oracle of src/model/config/*_test.cpp. It is committed, so that
neither torch nor transformers is needed to build or test gpuwright; run this again when presets are added:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch transformers
    /tmp/oracle/bin/python tests/oracle/transformers_counts.py

Counted is every tensor of the state dictionary once: tied weights once, persistent buffers included but for the
constants below. Models that need code from their repository are left out; quantised ones are counted as if they were
not.
"""
import json
import pathlib
import sys
import tomllib

import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
# Buffers that are computed from the config, and single numbers.
CONSTANTS = ("slope_rate", "query_decay", "key_decay", "diagonal_decay", "input_min", "input_max", "output_min",
             "output_max")
AUTO_CLASSES = ("AutoModelForCausalLM", "AutoModelForImageTextToText", "AutoModelForSeq2SeqLM", "AutoModel")


def cases():
    with open(HERE.parent.parent / "data" / "models.toml", "rb") as file:
        for row in tomllib.load(file).get("model", []):
            yield row["id"], row["config"]
    for row in json.loads((HERE / "family_cases.json").read_text()):
        yield row["id"], row["config"]


def build(config):
    config = {key: value for key, value in config.items() if key != "quantization_config"}
    model_type = config["model_type"]
    if config.get("q_lora_rank") == 0:  # TOML has no null
        config["q_lora_rank"] = None
    if isinstance(config.get("sliding_window_pattern"), str):
        config["sliding_window_pattern"] = len(config["sliding_window_pattern"])
    parsed = transformers.AutoConfig.for_model(**config)
    for name in config.get("architectures", []):
        if hasattr(transformers, name):
            return getattr(transformers, name)._from_config(parsed)
    names = AUTO_CLASSES
    if "vision_config" in config:
        names = ("AutoModelForImageTextToText",) + names
    for name in names:
        auto = getattr(transformers, name)
        if type(parsed) in auto._model_mapping:
            return auto.from_config(parsed)
    raise KeyError(f"no model class for {model_type}")


def count(model):
    """Parameters and persistent buffers, each storage once."""
    model.tie_weights()
    seen, total = set(), 0
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) in seen or name.rpartition(".")[2] in CONSTANTS:
            continue
        seen.add(id(tensor))
        total += tensor.numel()
    return total


def main():
    only = sys.argv[1:]
    lines = ["id\tmodel_type\tclass\tparameters\ttied"]
    for name, config in cases():
        if only and name not in only:
            continue
        if config["model_type"] not in transformers.CONFIG_MAPPING:
            continue
        try:
            with torch.device("meta"):
                model = build(config)
        except Exception as error:  # a row that transformers refuses is news, not the end
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        head = model.get_output_embeddings()
        tied = head is not None and head.weight is model.get_input_embeddings().weight
        lines.append(f"{name}\t{config['model_type']}\t{type(model).__name__}\t{count(model)}\t{int(tied)}")
    text = f"# transformers {transformers.__version__}, torch {torch.__version__}, meta device\n" + "\n".join(lines) + "\n"
    if only:
        print(text)
    else:
        (HERE / "parameter_counts.tsv").write_text(text)


if __name__ == "__main__":
    main()
