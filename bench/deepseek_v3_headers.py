#!/usr/bin/env python3
"""Writes a folder that has the headers of DeepSeek-V3 and none of its weights.

    deepseek_v3_headers.py FOLDER

Names, shapes, dtypes and the number of shards follow deepseek-ai/DeepSeek-V3 (config.json and
model.safetensors.index.json: 61 layers, the first 3 dense, 256 experts, FP8 weights with a float32 scale a block of
128 x 128, one multi-token prediction block, 163 shards; about 91,000 tensors). The files are sparse: 690 GB long, a
few MB on disk. `single/model.safetensors` has all tensors in one file.
"""
import json
import os
import struct
import sys

HIDDEN, DENSE, MOE, EXPERTS, HEADS, LAYERS, VOCAB, SHARDS = 7168, 18432, 2048, 256, 128, 61, 129280, 163
BYTES = {"F8_E4M3": 1, "BF16": 2, "F32": 4}
CONFIG = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": HIDDEN,
    "intermediate_size": DENSE, "moe_intermediate_size": MOE, "num_hidden_layers": LAYERS, "n_routed_experts": EXPERTS,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "n_group": 8,
    "topk_group": 4, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": VOCAB,
    "max_position_embeddings": 163840, "num_nextn_predict_layers": 1, "tie_word_embeddings": False,
    "hidden_act": "silu", "rms_norm_eps": 1e-06, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
    "routed_scaling_factor": 2.5, "torch_dtype": "bfloat16",
    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                            "weight_block_size": [128, 128]},
}


def linear(name, rows, columns):
    yield name + ".weight", "F8_E4M3", [rows, columns]
    yield name + ".weight_scale_inv", "F32", [-(-rows // 128), -(-columns // 128)]


def mlp(name, width):
    yield from linear(name + ".gate_proj", width, HIDDEN)
    yield from linear(name + ".up_proj", width, HIDDEN)
    yield from linear(name + ".down_proj", HIDDEN, width)


def block(number):
    stem = "model.layers.%d." % number
    yield stem + "input_layernorm.weight", "BF16", [HIDDEN]
    yield stem + "post_attention_layernorm.weight", "BF16", [HIDDEN]
    attention = stem + "self_attn."
    yield from linear(attention + "q_a_proj", 1536, HIDDEN)
    yield attention + "q_a_layernorm.weight", "BF16", [1536]
    yield from linear(attention + "q_b_proj", HEADS * 192, 1536)
    yield from linear(attention + "kv_a_proj_with_mqa", 576, HIDDEN)
    yield attention + "kv_a_layernorm.weight", "BF16", [512]
    yield from linear(attention + "kv_b_proj", HEADS * 256, 512)
    yield from linear(attention + "o_proj", HIDDEN, HEADS * 128)
    if number < 3:
        yield from mlp(stem + "mlp", DENSE)
        return
    yield stem + "mlp.gate.weight", "BF16", [EXPERTS, HIDDEN]
    yield stem + "mlp.gate.e_score_correction_bias", "F32", [EXPERTS]
    yield from mlp(stem + "mlp.shared_experts", MOE)
    for expert in range(EXPERTS):
        yield from mlp(stem + "mlp.experts.%d" % expert, MOE)


def tensors():
    yield "model.embed_tokens.weight", "BF16", [VOCAB, HIDDEN]
    for number in range(LAYERS):
        yield from block(number)
    yield "model.norm.weight", "BF16", [HIDDEN]
    yield "lm_head.weight", "BF16", [VOCAB, HIDDEN]
    stem = "model.layers.%d." % LAYERS
    yield from block(LAYERS)
    yield stem + "embed_tokens.weight", "BF16", [VOCAB, HIDDEN]
    yield stem + "enorm.weight", "BF16", [HIDDEN]
    yield stem + "hnorm.weight", "BF16", [HIDDEN]
    yield stem + "eh_proj.weight", "BF16", [HIDDEN, 2 * HIDDEN]
    yield stem + "shared_head.norm.weight", "BF16", [HIDDEN]
    yield stem + "shared_head.head.weight", "BF16", [VOCAB, HIDDEN]


def size_of(dtype, shape):
    size = BYTES[dtype]
    for dimension in shape:
        size *= dimension
    return size


def write_shard(path, part):
    """In the order of the format's own writer: by dtype, the widest first, then by name."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape in sorted(part, key=lambda tensor: (-BYTES[tensor[1]], tensor[0])):
        end = offset + size_of(dtype, shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    return offset


def main(folder):
    os.makedirs(os.path.join(folder, "single"), exist_ok=True)
    every = list(tensors())
    for where in (folder, os.path.join(folder, "single")):
        with open(os.path.join(where, "config.json"), "w") as file:
            json.dump(CONFIG, file, indent=2)
    weight_map, total, begin = {}, 0, 0
    for shard in range(SHARDS):
        end = len(every) * (shard + 1) // SHARDS
        name = "model-%05d-of-%06d.safetensors" % (shard + 1, SHARDS)
        total += write_shard(os.path.join(folder, name), every[begin:end])
        weight_map.update((tensor[0], name) for tensor in every[begin:end])
        begin = end
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}, file, indent=2)
    write_shard(os.path.join(folder, "single", "model.safetensors"), every)
    print("%d tensors, %d bytes of weights in %d shards" % (len(every), total, SHARDS))


if __name__ == "__main__":
    main(sys.argv[1])
