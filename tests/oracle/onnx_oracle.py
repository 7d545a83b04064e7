"""Compares what gpuwright reads from ONNX files with PyPI onnx: every tensor in initialisers, sparse initialisers, node
attributes, subgraphs and functions, in the order in which the file has them.

Usage: onnx_oracle.py MODEL_DUMP FILE...
"""
import math
import os
import sys

import onnx
from dump import dump
from onnx import TensorProto, external_data_helper

BITS = {"FLOAT": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64, "BOOL": 8,
        "FLOAT16": 16, "DOUBLE": 64, "UINT32": 32, "UINT64": 64, "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16,
        "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "UINT4": 4, "INT4": 4,
        "FLOAT4E2M1": 4, "FLOAT8E8M0": 8, "UINT2": 2, "INT2": 2}


def tensors_of_graph(graph):
    for node in graph.node:
        yield from tensors_of_node(node)
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices


def tensors_of_node(node):
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for sparse in ([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []):
            yield sparse.values
            yield sparse.indices
        if attribute.HasField("g"):
            yield from tensors_of_graph(attribute.g)
        for graph in attribute.graphs:
            yield from tensors_of_graph(graph)


def stored_bytes(tensor, folder):
    if external_data_helper.uses_external_data(tensor):
        info = external_data_helper.ExternalDataInfo(tensor)
        if info.length:
            return info.length
    kind = TensorProto.DataType.Name(tensor.data_type)
    if kind == "STRING":
        return sum(len(text) for text in tensor.string_data)
    return (math.prod(tensor.dims) * BITS.get(kind, 0) + 7) // 8


def check(program, path):
    model = onnx.load(path, load_external_data=False)
    if not model.HasField("graph"):
        return 0
    tensors = list(tensors_of_graph(model.graph))
    for function in model.functions:
        for node in function.node:
            tensors.extend(tensors_of_node(node))
    ours, facts = dump(program, path)
    folder = os.path.dirname(path)
    want = sorted((math.prod(t.dims[:-1]) if t.dims else 1, t.dims[-1] if t.dims else 1, stored_bytes(t, folder))
                  for t in tensors)
    assert sorted((rows, columns, size) for _, _, rows, columns, size in ours) == want, path
    assert {t.name for t in model.graph.initializer} <= {row[0] for row in ours}, path
    assert int(facts["weight_bytes"]) == sum(row[2] for row in want), path
    assert int(facts["file_bytes"]) >= os.path.getsize(path), path
    return len(tensors)


if __name__ == "__main__":
    total = sum(check(sys.argv[1], file) for file in sys.argv[2:])
    print(f"{len(sys.argv) - 2} files, {total} tensors agree")
