#!/usr/bin/env python3
"""Checks that `gpuwright run` leaves a job as it is: its output to the byte, its terminal, its signals, its children.

    tests/run_job.py GPUWRIGHT
"""
import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PATIENCE = 90  # seconds; only a machine that is very busy needs more than one


def run(program, *words, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([program, "run", *words], capture_output=True, timeout=PATIENCE, check=False, **more)


def python(code):
    return ["--", sys.executable, "-c", code]


def both_streams_pass_unchanged(program):
    # Binary, with lines of all lengths, on both streams at once; 64 MB.
    code = """
import hashlib, os, random, sys, threading
def put(descriptor, seed):
    some = random.Random(seed)
    whole = hashlib.sha256()
    for i in range(500):
        piece = some.randbytes(some.choice([1, 80, 4096, 65536, 200001]))
        whole.update(piece)
        while piece:
            piece = piece[os.write(descriptor, piece):]
    open(sys.argv[descriptor], "w").write(whole.hexdigest())
threads = [threading.Thread(target=put, args=(d, d)) for d in (1, 2)]
[t.start() for t in threads]; [t.join() for t in threads]
"""
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, "sha%d" % i) for i in (1, 2)]
        done = run(program, "-q", *python(code), *names)
        assert done.returncode == 0, done.returncode
        for name, got in zip(names, (done.stdout, done.stderr)):
            assert hashlib.sha256(got).hexdigest() == open(name).read(), name


def a_gigabyte_passes_in_bounded_memory(program):
    code = "import os\nb=(b'step %07d loss 2.3456\\n'%7)*4000\nn=10**9\nwhile n>0: n-=os.write(1,b[:n])"
    job = subprocess.Popen([program, "run", "-q", *python(code)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    count, most = 0, 0
    while piece := os.read(job.stdout.fileno(), 1 << 20):
        count += len(piece)
        if count % (64 << 20) < len(piece):
            status = open("/proc/%d/status" % job.pid).read()
            most = max(most, int(status[status.index("VmRSS:") + 6:].split()[0]))
    assert job.wait(PATIENCE) == 0 and count == 10**9, count
    assert most < 160 << 10, "%d KiB" % most  # sanitizers take their share


def exit_codes_are_the_job_s(program):
    for code in (0, 1, 7, 125, 255):
        assert run(program, "-q", "--", "sh", "-c", "exit %d" % code).returncode == code
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGUSR1):
        done = run(program, *python("import os; os.kill(os.getpid(), %d)" % number))
        assert done.returncode == 128 + number, done
        assert signal.Signals(number).name.encode() in done.stderr, done.stderr
    assert run(program, "--", "/no/such/program").returncode == 127
    assert run(program, "--", "/etc").returncode == 126


def signals_are_passed_on(program):
    code = """
import os, signal, sys, time
for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGQUIT):
    signal.signal(s, lambda n, _: os.write(1, b'%d\\n' % n))
os.write(1, b'ready\\n')
end = time.monotonic() + 80
while time.monotonic() < end:
    signal.pause()
"""
    job = subprocess.Popen([program, "run", *python(code)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
    assert job.stdout.readline() == b"ready\n"
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGQUIT):
        os.kill(job.pid, number)
        assert job.stdout.readline() == b"%d\n" % number
    child = int(open("/proc/{0}/task/{0}/children".format(job.pid)).read().split()[0])
    for line in open("/proc/%d/status" % child):
        if line.startswith(("SigBlk", "SigIgn")):  # as a child of Python's has it: SIGPIPE apart, which Python resets
            assert int(line.split()[1], 16) & ~(1 << 12) in (0, 1 << 24), line
    os.kill(child, signal.SIGKILL)
    assert job.wait(PATIENCE) == 137


def a_child_that_keeps_the_pipe_does_not_hold_us(program):
    begin = time.monotonic()
    done = run(program, "--", "sh", "-c", "(sleep 3; echo late; echo alive > \"$0\") & echo early", "/dev/null")
    assert time.monotonic() - begin < 2.9 or os.getloadavg()[0] > 4, "it waited"
    assert done.stdout == b"early\n" and b"hold its output open" in done.stderr, done


def a_child_that_stays_is_not_ended(program):
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "alive")
        run(program, "-q", "--", "sh", "-c", "(sleep 2; echo late; echo late >&2; echo alive > '%s') &" % name)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(name) and time.monotonic() < end:
            time.sleep(0.1)
        assert os.path.exists(name), "SIGPIPE ended it"


def a_daemon_is_the_job_s(program):
    code = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for d in (0, 1, 2): os.dup2(os.open(os.devnull, os.O_RDWR), d)
        time.sleep(1)
        os._exit(0)
    os._exit(0)
os.wait()
print("parent ends")
"""
    done = run(program, *python(code))
    assert done.returncode == 0 and done.stdout == b"parent ends\n", done
    assert b"hold its output open" not in done.stderr, done.stderr


def a_reader_that_goes_away_is_as_always(program):
    line = "'%s' run -q -- yes | head -n 2; echo ${PIPESTATUS[0]}" % program
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=PATIENCE, check=False)
    assert done.stdout == b"y\ny\n141\n", done.stdout
    done = subprocess.run(["bash", "-c", "'%s' run -q -- echo x > /dev/full" % program], capture_output=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode == 125, done


def order_of_both_streams_stays(program):
    code = "import os\nfor i in range(2000): os.write(1 + i % 2, b'%d\\n' % i)"
    line = [program, "run", "-q", *python(code)]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE, check=False)
    assert done.stdout.split() == [b"%d" % i for i in range(2000)]


def the_report_is_whole(program):
    scenario = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "configs", "run_grow.toml")
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "run.json")
        done = run(program, "-q", "--report", name, "--interval", "0.1", "--simulate", scenario, "--", "sleep", "4")
        assert done.returncode == 0 and os.listdir(folder) == ["run.json"], (done, os.listdir(folder))
        report = json.load(open(name))
        assert report["schema"] == "gpuwright.run/1" and report["simulated"] == scenario
        memory = report["gpus"][0]["memory"]
        assert memory["peak_bytes"] == 23000 << 20, memory["peak_bytes"]
        sizes = [size for _, size in memory["curve"]]
        assert sizes == sorted(sizes) and sizes[0] == 6000 << 20 and sizes[-1] == 23000 << 20, sizes
        assert report["gpus"][0]["known_by"] == "process"
        done = run(program, "--report", name, "--", "/no/such/program")
        assert json.load(open(name))["simulated"] == scenario, "an earlier report stays when nothing ran"
        assert os.listdir(folder) == ["run.json"], os.listdir(folder)


class Terminal:
    """A shell-less login: the job's group is the foreground group of a pseudo-terminal."""

    def __init__(self, words, size=(24, 80)):
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.mode = termios.tcgetattr(slave)
        self.slave, self.output = slave, b""
        self.child = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, text, after=0):
        end = time.monotonic() + PATIENCE
        while text not in self.output[after:]:
            assert time.monotonic() < end, "never printed %r; there is %r" % (text, self.output[-600:])
            if select.select([self.master], [], [], 0.1)[0]:
                self.output += os.read(self.master, 65536)

    def type(self, text):
        os.write(self.master, text)

    def end(self):
        deadline = time.monotonic() + PATIENCE
        while self.child.poll() is None:
            assert time.monotonic() < deadline, "it does not end: %r" % self.output[-600:]
            if select.select([self.master], [], [], 0.05)[0]:
                self.output += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0.1)[0]:
            self.output += os.read(self.master, 65536)
        return self.child.returncode


def a_terminal_stays_one(program):
    code = """
import os, signal, sys, time
signal.signal(signal.SIGWINCH, lambda *_: print('now', os.get_terminal_size(1).columns, flush=True))
print([os.isatty(d) for d in (0, 1, 2)], os.get_terminal_size(1).columns, flush=True)
line = input()
try:
    print('said', line, flush=True)
    time.sleep(80)
except KeyboardInterrupt:
    print('interrupted', flush=True)
sys.exit(5)
"""
    terminal = Terminal([program, "run", *python(code)])
    terminal.wait_for(b"[True, True, True] 80")
    terminal.resize(30, 100)
    terminal.wait_for(b"now 100")
    terminal.type(b"hello\n")
    terminal.wait_for(b"said hello")
    terminal.type(b"\x03")
    terminal.wait_for(b"interrupted")
    assert terminal.end() == 5
    assert terminal.output.count(b"interrupted") == 1 and b"\r\r\n" not in terminal.output, terminal.output


def modes_of_full_screen_programs_are_carried_over(program):
    code = """
import os, sys, termios, tty
tty.setraw(1)
print('raw', flush=True)
print('got %r' % os.read(0, 1), flush=True)
"""
    terminal = Terminal([program, "run", "-q", *python(code)])
    terminal.wait_for(b"raw")
    deadline = time.monotonic() + PATIENCE
    while termios.tcgetattr(terminal.slave)[3] & termios.ICANON and time.monotonic() < deadline:
        time.sleep(0.02)
    terminal.type(b"x")  # without an end of line, and Ctrl-C would be a key
    terminal.wait_for(b"got b'x'")
    assert terminal.end() == 0
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.mode[:4], "the modes are not given back"


def job_control_works(program):
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"])
    terminal.type(b"PS1=; '%s' run -q -- sh -c 'echo u\"\"p; sleep 1; echo do\"\"wn; exit 9'\n" % program.encode())
    terminal.wait_for(b"up\r\n")
    terminal.type(b"\x1a")
    terminal.wait_for(b"Stopped")
    terminal.type(b"fg\n")
    terminal.wait_for(b"down\r\n")
    terminal.type(b"echo code''=$?\n")
    terminal.wait_for(b"code=9")
    terminal.type(b"exit\n")
    terminal.end()


def a_job_that_stops_itself_stops_us(program):
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"])
    terminal.type(b"PS1=; '%s' run -q -- sh -c 'kill -STOP $$; echo do\"\"wn; exit 3'\n" % program.encode())
    terminal.wait_for(b"Stopped")
    terminal.type(b"fg\n")
    terminal.wait_for(b"down\r\n")
    terminal.type(b"echo code''=$?\n")
    terminal.wait_for(b"code=3")
    terminal.type(b"exit\n")
    terminal.end()


def main():
    program = os.path.abspath(sys.argv[1])
    tests = [test for name, test in globals().items() if callable(test) and getattr(test, "__module__", "") == "__main__"
             and name not in ("main", "run", "python", "Terminal")]
    wanted = sys.argv[2:]
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        begin = time.monotonic()
        test(program)
        print("%-50s %5.1f s" % (test.__name__, time.monotonic() - begin), flush=True)


main()
