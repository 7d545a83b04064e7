#!/usr/bin/env python3
"""Looks for rules that know one log by heart: words of a pattern that occur in only one of the logs it was tried on.

    tests/explain/rare_tokens.py [DIR]       a folder of logs; else the cases of tests/explain/cases.txt
    tests/explain/rare_tokens.py --list [DIR]   every such word with its log and patterns, reviewed or not
    tests/explain/rare_tokens.py --self-test

A word that is part of the program's own message (its source prints it whatever the model, path or host) may be rare:
logs are few. Somebody has to look at it once: reviewed_tokens.txt lists the words that were looked at, and one that is
not there fails. So does a word there that no pattern holds any more.
"""
import os
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REVIEWED = ROOT / "tests/explain/reviewed_tokens.txt"


def words_of(regex):
    """The literal words of a regular expression, lower case; of letters in sets and of escapes nothing."""
    regex = re.sub(r"\(\?P<[^>]*>", "(", regex)
    regex = re.sub(r"\[(?:\\.|[^\]\\])*\][*+?]?(?:\{[^}]*\})?", " ", regex)
    regex = re.sub(r"\\[bdswDSWBAzZ]", " ", regex)
    regex = re.sub(r"\\(.)", r"\1", regex)
    regex = re.sub(r"\w\?", " ", regex)
    return {word.lower().strip("._") for word in re.findall(r"[A-Za-z_][A-Za-z0-9_.]{3,}", regex)}


def patterns_in(files):
    patterns = {}
    for file in files:
        for pattern in tomllib.loads(file.read_text(encoding="utf-8")).get("pattern", []):
            words = patterns.setdefault(pattern["id"], set())
            for key in ("regex", "anchors", "unless"):
                texts = pattern.get(key, [])
                for text in [texts] if isinstance(texts, str) else texts:
                    words |= words_of(text)
    return patterns


def logs_in(folder):
    if folder is None:
        text = (ROOT / "tests/explain/cases.txt").read_text(encoding="utf-8")
        return dict(enumerate(case.lower() for case in re.split(r"(?m)^=== ", text)[1:]))
    return {name: (Path(folder) / name).read_text(encoding="utf-8", errors="replace").lower()
            for name in sorted(os.listdir(folder)) if name.endswith((".txt", ".log"))}


def rare(patterns, logs):
    """{word: (log, [pattern])} of the words that one log alone holds."""
    found = {}
    for name, words in patterns.items():
        for word in words:
            holders = [log for log, text in logs.items() if word in text]
            if len(holders) == 1:
                found.setdefault(word, (holders[0], []))[1].append(name)
    return found


def self_test():
    patterns = {"made_up": words_of(r"Trainer of (?P<x>\w+) on host gpu-node-[0-9]+\.example failed at (?:start|stop)")}
    logs = {"a": "trainer of x on host gpu-node-7.example failed at start", "b": "trainer of y failed at stop"}
    wanted = {"host", "node", "start", "stop", "example"}
    found = set(rare(patterns, logs))
    if found != wanted:
        return f"self-test: found {sorted(found)}, wanted {sorted(wanted)}"
    return None


def main():
    words = sys.argv[1:]
    if words == ["--self-test"]:
        fault = self_test()
        print(fault or "self-test passed")
        return 1 if fault else 0
    listing = "--list" in words
    folders = [word for word in words if word != "--list"]
    patterns = patterns_in(sorted((ROOT / "data").glob("errors*.toml")))
    found = rare(patterns, logs_in(folders[0] if folders else None))
    if listing:
        for word, (log, names) in sorted(found.items()):
            print(word, log, ",".join(names), sep="\t")
        return 0
    reviewed = {line for line in REVIEWED.read_text(encoding="utf-8").split("\n") if line and line[0] != "#"}
    known = set().union(*patterns.values())
    faults = [f"'{word}' ({', '.join(found[word][1])}) occurs in one log only: is it part of the program's own message? "
              f"Then add it to {REVIEWED.name}" for word in sorted(set(found) - reviewed)]
    faults += [f"'{word}' of {REVIEWED.name} is in no pattern any more" for word in sorted(reviewed - known)]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} words to look at" if faults else
          f"{len(found)} words occur in one log only, all of them looked at; {len(patterns)} patterns")
    return 1 if faults else 0


sys.exit(main())
