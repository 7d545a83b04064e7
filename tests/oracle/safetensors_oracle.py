#!/usr/bin/env python3
"""Compares gpuwright's safetensors reader with PyPI safetensors, on files that it writes and on damaged copies.

    safetensors_oracle.py SAFETENSORS_DUMP [FILE...]

Both must find the same tensors; both must refuse the same files, but for dtypes that are not known. Files are made with
safetensors' own writer and, for dtypes that NumPy lacks, by hand; those that the packages of models.txt carry are read
too, once they are in build/models. Damage is random with a fixed seed.
"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import numpy
import safetensors
import safetensors.numpy

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
        "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64,
        "U64": 64}
DAMAGED = 1000
MODELS = pathlib.Path(__file__).resolve().parents[2] / "build/models"


def theirs(path):
    """name -> (dtype, elements), or None when safetensors refuses the file."""
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            found = {}
            for name in file.keys():
                part = file.get_slice(name)
                elements = 1
                for size in part.get_shape():
                    elements *= size
                found[name] = (part.get_dtype(), elements)
            return found
    except Exception:  # safetensors raises its own errors and, from Rust, others
        return None


def ours(program, paths):
    """path -> {name: (dtype, elements, bytes)} or the reason of refusal."""
    result = {}
    for begin in range(0, len(paths), 200):
        done = subprocess.run([program, *map(str, paths[begin:begin + 200])], check=True, capture_output=True)
        for line in done.stdout.decode(errors="surrogateescape").split("\n"):
            kind, *rest = line.split("\t")
            if kind == "file":
                path = rest[0]
                result[path] = {} if rest[1] == "ok" else rest[1]
            elif kind == "tensor":
                result[path][rest[0]] = (rest[1], int(rest[2]), int(rest[3]))
    return result


def written_by_numpy(folder):
    dtypes = ["bool", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32", "uint64", "int64",
              "float64"]
    tensors = {f"layer.{number}.{dtype}": numpy.zeros((3, number + 1, 2), dtype)
               for number, dtype in enumerate(dtypes)}
    tensors["scalar"] = numpy.array(1.0, "float32")
    tensors["empty"] = numpy.zeros((0, 5), "float32")
    path = folder / "numpy.safetensors"
    safetensors.numpy.save_file(tensors, path, metadata={"format": "np"})
    return path


def written_by_hand(folder):
    header, offset = {}, 0
    for dtype, bits in sorted(BITS.items()):
        header["t." + dtype] = {"dtype": dtype, "shape": [4, 8], "data_offsets": [offset, offset + 4 * bits]}
        offset += 4 * bits
    return write(folder / "hand.safetensors", json.dumps(header).encode(), offset)


def write(path, header, data):
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(data))
    return path


def damaged(folder, seed=20240607):
    """Copies of a small header with a few characters or numbers changed; the length field stays true."""
    source = random.Random(seed)
    tensors = {"a": ("BF16", [4, 2], 16), "b": ("F32", [3], 12), "c": ("U8", [], 1), "d": ("F16", [0, 2], 0)}
    header, offset = {"__metadata__": {"k": "v"}}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    sound = json.dumps(header).encode()
    digits = [at for at, byte in enumerate(sound) if chr(byte).isdigit()]
    for number in range(DAMAGED):
        text = bytearray(sound)
        for _ in range(source.choice((1, 1, 2))):
            if source.random() < 0.5:
                text[source.choice(digits)] = source.choice(b"0123456789-.e")
            else:
                at = source.randrange(len(text))
                text[at:at + source.choice((0, 1, 4))] = source.choice((b"", b" ", b"x", b"\"", b"{", b"}", b"]", b"0"))
        yield write(folder / f"damaged-{number}.safetensors", bytes(text), offset)


def check(path, found, want):
    # A dtype that is not known is read by its extent, where safetensors refuses the file.
    if want is None and not isinstance(found, str) and any(row[0] not in BITS for row in found.values()):
        return 0
    if want is None or isinstance(found, str):
        assert want is None and isinstance(found, str), f"{path}: we say {found}, safetensors says {want}"
        return 0
    assert {name: row[:2] for name, row in found.items()} == want, (path, found, want)
    for name, (dtype, elements, size) in found.items():
        assert elements * BITS[dtype] == 8 * size, (path, name)
    return 1


def main(program, files):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        real = sorted(MODELS.rglob("*.safetensors"))
        sound = [written_by_numpy(folder), written_by_hand(folder), *real, *map(pathlib.Path, files)]
        broken = list(damaged(folder))
        found = ours(program, sound + broken)
        for path in sound:
            assert check(path, found[str(path)], theirs(path)) == 1, path
        accepted = sum(check(path, found[str(path)], theirs(path)) for path in broken)
        assert accepted > 10, accepted
        print(f"{len(sound)} files agree; of {len(broken)} damaged ones both accept the same {accepted}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
