#!/usr/bin/env python3
"""Completes command lines in real shells: types them into bash and zsh on a pseudo-terminal, presses TAB and Enter, and
looks at the words that `gpuwright` (here a function that prints them) then gets.

    tests/completion.py BINARY [bash|zsh]
"""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# What is typed before TAB -> the words that the command gets.
CASES = {
    "gpuwright vers": "version",
    "gpuwright version --js": "version --json",
    "gpuwright --lang z": "--lang zh",
    "gpuwright --lang zh vers": "--lang zh version",
    "gpuwright version --lang z": "version --lang zh",
    "gpuwright gpus sh": "gpus show",
    "gpuwright gpus --json sh": "gpus --json show",
    "gpuwright model sh": "model show",
    "gpuwright fit only-f": "fit only-file.gguf",
    "gpuwright fit x --expl": "fit x --explain",
    "gpuwright fi": "fit",
}
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SETUP = {
    "bash": "source ./completion; bind 'set bell-style none'",
    "zsh": "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -D -u; unsetopt beep",
}
SECONDS = 20


class Shell:
    def __init__(self, name, folder):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            # A dumb terminal: no colours and no cursor movements between the letters.
            os.execvpe(START[name][0], START[name], {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": folder,
                                                     "LC_ALL": "C.UTF-8", "PS1": "", "INPUTRC": "/dev/null"})
        self.text = ""

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def wait_for(self, pattern):
        """The first match in what the shell printed since the last match."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end():]
                return found
            if select.select([self.terminal], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.terminal, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        return None

    def close(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.terminal)


def complete_all(name, binary, folder):
    script = subprocess.run([binary, "generate", "completion", name], check=True, capture_output=True).stdout
    (folder / "functions").mkdir(exist_ok=True)
    (folder / ("completion" if name == "bash" else "functions/_gpuwright")).write_bytes(script)
    (folder / "only-file.gguf").write_bytes(b"GGUF")
    shell = Shell(name, str(folder))
    failed = 0
    try:
        shell.type(f"{SETUP[name]}; gpuwright() {{ printf 'GO''T<%s>\\n' \"$*\"; }}; echo REA''DY\n")
        if not shell.wait_for("READY"):
            sys.exit(f"{name} did not start: {shell.text}")
        for typed, wanted in CASES.items():
            shell.type(typed + "\t")
            shell.type("\n")
            found = shell.wait_for(r"GOT<([^>]*)>")
            got = found.group(1).rstrip() if found else f"nothing; the shell said: {shell.text!r}"
            if got != wanted:
                failed += 1
                print(f"{name}: '{typed}' TAB gave '{got}', not '{wanted}'")
    finally:
        shell.close()
    return failed


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    failed = 0
    for name in sys.argv[2:] or ["bash", "zsh"]:
        if not shutil.which(name):
            sys.exit(f"tests/completion.py: {name} is not installed")
        with tempfile.TemporaryDirectory() as folder:
            failed += complete_all(name, binary, pathlib.Path(folder))
    print(f"{failed} failed")
    sys.exit(1 if failed else 0)


main()
