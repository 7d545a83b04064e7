"""Compares what gpuwright reads from GGUF files with PyPI gguf's GGUFReader, tensor by tensor.

Usage: gguf_oracle.py MODEL_DUMP FILE...
"""
import math
import os
import sys

from dump import dump
from gguf import GGUFReader


def expected(reader):
    for tensor in reader.tensors:
        shape = [int(extent) for extent in tensor.shape]
        yield tensor.name, tensor.tensor_type.name, math.prod(shape[1:]), shape[0], int(tensor.n_bytes)


def check(program, path):
    reader = GGUFReader(path)
    tensors, facts = dump(program, path)
    want = list(expected(reader))
    assert len(tensors) == len(want), (len(tensors), len(want))
    for ours, theirs in zip(tensors, want):
        assert ours == theirs, (ours, theirs)

    elements = sum(int(tensor.n_elements) for tensor in reader.tensors)
    assert int(facts["parameters"]) == elements, (facts["parameters"], elements)
    size = os.path.getsize(path)
    assert int(facts["file_bytes"]) == size
    padding = size - reader.data_offset - sum(row[4] for row in want)
    assert 0 <= padding < reader.alignment * (len(want) + 1), padding

    architecture = reader.fields["general.architecture"].contents()
    assert facts["architecture"] == architecture
    for fact, key in (("hidden", "embedding_length"), ("context", "context_length"), ("layers", "block_count")):
        assert int(facts[fact]) == int(reader.fields[f"{architecture}.{key}"].contents()), key
    assert int(facts["vocabulary"]) == len(reader.fields["tokenizer.ggml.tokens"].data)
    print(f"{os.path.basename(path)}: {len(want)} tensors, {elements} parameters, {size} bytes agree")


if __name__ == "__main__":
    for file in sys.argv[2:]:
        check(sys.argv[1], file)
