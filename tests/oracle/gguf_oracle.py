"""Compares what gpuwright reads from GGUF files with PyPI gguf's GGUFReader, tensor by tensor.

Usage: gguf_oracle.py MODEL_DUMP FILE...
"""
import subprocess
import sys

from gguf import GGUFReader

SAME_TYPE = {"F32": "F32"}


def dump(program, path):
    tensors, facts = [], {}
    for line in subprocess.run([program, path], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, *rest = line.split("\t")
        if kind == "tensor":
            tensors.append((rest[0], rest[1], int(rest[2]), int(rest[3]), int(rest[4])))
        elif kind != "assumption":
            facts[kind] = rest[0]
    return tensors, facts


def expected(reader):
    for tensor in reader.tensors:
        shape = [int(extent) for extent in tensor.shape]
        rows = 1
        for extent in shape[1:]:
            rows *= extent
        yield tensor.name, tensor.tensor_type.name, rows, shape[0], int(tensor.n_bytes)


def check(program, path):
    reader = GGUFReader(path)
    tensors, facts = dump(program, path)
    want = list(expected(reader))
    assert len(tensors) == len(want), (len(tensors), len(want))
    for ours, theirs in zip(tensors, want):
        assert ours == theirs, (ours, theirs)
    elements = sum(int(tensor.n_elements) for tensor in reader.tensors)
    assert int(facts["parameters"]) == elements, (facts["parameters"], elements)
    size = sum(1 for _ in [0]) and __import__("os").path.getsize(path)
    assert int(facts["file_bytes"]) == size
    header = reader.data_offset
    padding = size - header - sum(row[4] for row in want)
    assert 0 <= padding < 32 * (len(want) + 1), padding
    architecture = reader.fields["general.architecture"].contents()
    assert facts["architecture"] == architecture
    for ours, key in (("hidden", "embedding_length"), ("context", "context_length"), ("layers", "block_count")):
        assert int(facts[ours]) == int(reader.fields[f"{architecture}.{key}"].contents()), key
    assert int(facts["vocabulary"]) == len(reader.fields["tokenizer.ggml.tokens"].data)
    print(f"{path}: {len(want)} tensors, {elements} parameters, {size} bytes agree")


if __name__ == "__main__":
    for file in sys.argv[2:]:
        check(sys.argv[1], file)
