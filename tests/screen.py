#!/usr/bin/env python3
"""Checks that a terminal which `stat --watch` draws on is given back as it was found, whatever ends the program.

    tests/screen.py GPUWRIGHT

Runs it on pseudo-terminals with simulated GPUs: ended by q, Ctrl-C, SIGTERM, SIGHUP and a fault; resized; with a driver
that hangs; with a terminal of unknown kind.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

ENTER, LEAVE = b"\033[?1049h", b"\033[?1049l"
PATIENCE = 60  # seconds; only a machine that is very busy needs more than one


class Terminal:
    def __init__(self, program, words, term="xterm-256color", size=(24, 80)):
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.mode = termios.tcgetattr(slave)
        environment = dict(os.environ, TERM=term, LC_ALL="C.UTF-8")
        self.child = subprocess.Popen([program, *words], stdin=slave, stdout=slave, stderr=slave, env=environment,
                                      start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave, self.output = slave, b""

    def resize(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.output += os.read(self.master, 65536)
            except OSError:
                pass

    def wait_for(self, text, after=0):
        end = time.monotonic() + PATIENCE
        while text not in self.output[after:]:
            if time.monotonic() > end:
                raise AssertionError("never printed %r; there is %r" % (text, self.output[-600:]))
            self.read(0.1)

    def end(self):
        """The exit code, once everything that was printed is read."""
        deadline = time.monotonic() + PATIENCE
        while self.child.poll() is None:
            if time.monotonic() > deadline:
                self.child.kill()
                raise AssertionError("it does not end")
            self.read(0.05)
        self.read(0.05)
        return self.child.returncode

    def is_as_it_was(self):
        assert self.output.rfind(LEAVE) > self.output.rfind(ENTER), "the alternate screen is not left"
        assert b"\033[?25h" in self.output[self.output.rfind(ENTER):], "the cursor stays hidden"
        now = termios.tcgetattr(self.slave)
        assert now[3] == self.mode[3] and now[6] == self.mode[6], "the terminal's mode is not restored"


def watch(program, *words, **more):
    terminal = Terminal(program, ["stat", "--watch", "0.2", *words], **more)
    return terminal


def ends_by(program, act, code):
    terminal = watch(program, "--simulate")
    terminal.wait_for(b"H100")
    act(terminal)
    got = terminal.end()
    assert got == code, "exit %s instead of %s" % (got, code)
    terminal.is_as_it_was()


def write(text):
    return lambda terminal: os.write(terminal.master, text)


def send(number):
    return lambda terminal: terminal.child.send_signal(number)


def check_resize(program):
    terminal = watch(program, "--simulate")
    terminal.wait_for(b"H100")
    assert b"enc/dec" not in terminal.output
    seen = len(terminal.output)
    terminal.resize(50, 200)
    terminal.child.send_signal(signal.SIGWINCH)
    terminal.wait_for(b"enc/dec", seen)
    os.write(terminal.master, b"q")
    assert terminal.end() == 0


def check_hanging_driver(program):
    """nvtop#139: keys were dead while a driver did not answer."""
    terminal = watch(program, "--simulate=faulty")
    terminal.wait_for(ENTER)
    begin = time.monotonic()
    os.write(terminal.master, b"q")
    assert terminal.end() == 0
    terminal.is_as_it_was()
    return time.monotonic() - begin


def check_unknown_terminal(program):
    """nvtop PR#485: a TERM that is not known ended the program."""
    terminal = watch(program, "--simulate", "--count", "2", term="nobody-knows-this")
    assert terminal.end() == 0
    assert ENTER not in terminal.output and terminal.output.count(b"SIMULATED") == 2


def main():
    program = sys.argv[1]
    ends_by(program, write(b"q"), 0)
    ends_by(program, write(b"\x03"), 128 + signal.SIGINT)
    ends_by(program, send(signal.SIGTERM), 128 + signal.SIGTERM)
    ends_by(program, send(signal.SIGHUP), 128 + signal.SIGHUP)
    if "ASAN_OPTIONS" not in os.environ:  # which catches the fault itself
        ends_by(program, send(signal.SIGSEGV), -signal.SIGSEGV)
    check_resize(program)
    check_hanging_driver(program)
    check_unknown_terminal(program)
    print("the terminal is given back in 8 cases")


main()
