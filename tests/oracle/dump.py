"""What model_dump prints, as Python values."""
import subprocess


def dump(program, path):
    """(tensors, facts): tensors are (name, type, rows, columns, bytes), facts strings by name."""
    tensors, facts = [], {}
    answer = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    for line in answer.stdout.splitlines():
        kind, *rest = line.split("\t")
        if kind == "tensor":
            tensors.append((rest[0], rest[1], int(rest[2]), int(rest[3]), int(rest[4])))
        elif kind != "assumption":
            facts[kind] = rest[0]
    return tensors, facts
