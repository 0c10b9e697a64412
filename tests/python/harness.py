# SPDX-License-Identifier: MIT
"""What the tests of the Python package share.

A test program has unittest cases and ends with harness.main(), which says in
TAP how they went.  TENSORARENA_TEST_ENGINE picks the engine; the package is the
one in build/python, or where TENSORARENA_PYTHON says.
"""

import faulthandler
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.environ.get(
    "TENSORARENA_PYTHON",
    os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "python"))
sys.path.insert(0, PACKAGE)

import tensorarena  # noqa: E402

ENGINE = os.environ.get("TENSORARENA_TEST_ENGINE", "embedded")
MIB = 1 << 20
# Nothing takes that long; it only keeps a bug from hanging the tests.
HANG_S = 60


def _others_sleep():
    for task in os.listdir("/proc/self/task"):
        if int(task) == threading.get_native_id():
            continue
        try:
            with open(f"/proc/self/task/{task}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            continue
        if state == "R":
            return False
    return True


def _await_sleep():
    deadline = time.monotonic() + 0.2
    while not _others_sleep() and time.monotonic() < deadline:
        time.sleep(0.001)


# AddressSanitizer's allocator, before gcc 14, does not survive in a child that is
# forked while another thread is inside: the child waits for ever.
if "libasan" in os.environ.get("LD_PRELOAD", ""):
    os.register_at_fork(before=_await_sleep)


def arena(slots=2, slot_bytes=2 * MIB, seats=1, **options):
    return tensorarena.Writer(slots, slot_bytes, seats, engine=ENGINE,
                              **options)


def pair(slots=2, slot_bytes=2 * MIB, **options):
    """A writer and a reader that are this process."""
    writer = arena(slots, slot_bytes, 1, **options)
    return writer, tensorarena.Reader(writer.handle)


def pattern(nbytes, seed=1):
    """Bytes that no shift and no other seed gives."""
    block = bytes((i * 7 + seed * 31 + (i >> 8)) & 255 for i in range(4099))
    return (block * (nbytes // len(block) + 1))[:nbytes]


def await_true(condition, what="it"):
    deadline = time.monotonic() + HANG_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.001)


def published(writer):
    return writer.stats()["published"]


def await_free(writer):
    await_true(lambda: published(writer) == 0, "the slots to become free")


def run_case(script, *arguments):
    """Runs a program of this folder; returns its exit status and output."""
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, script), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S,
        check=False)
    return done.returncode, done.stdout


class Worker:
    """Another process that does what it is told.

    call(function, ...) runs function(state, ...) there, a function of the test
    program's, and returns what that returns or raises.  State is an object that
    keeps attributes from call to call.
    """

    def __init__(self, method):
        context = multiprocessing.get_context(method)
        self.pipe, theirs = context.Pipe()
        # A forked worker must not keep the other end of its own pipe open.
        self.process = context.Process(target=_serve,
                                       args=(theirs, self.pipe), daemon=True)
        self.process.start()
        theirs.close()

    def start(self, function, *args):
        self.pipe.send((function, args))

    def result(self):
        if not self.pipe.poll(HANG_S):
            raise AssertionError("the worker does not answer")
        failed, result = self.pipe.recv()
        if failed:
            raise result
        return result

    def call(self, function, *args):
        self.start(function, *args)
        return self.result()

    def kill(self):
        self.process.kill()
        self.process.join()

    def end(self):
        """Lets it come to its end by itself; returns its exit status."""
        self.pipe.close()
        self.process.join(HANG_S)
        return self.process.exitcode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class _State:
    pass


def _serve(pipe, other_end):
    other_end.close()
    state = _State()
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            return
        try:
            answer = False, function(state, *args)
        except Exception as error:
            answer = True, error
        pipe.send(answer)


class Case(unittest.TestCase):
    """Cleans up after each test, so that no slot is held by a traceback."""

    def tearDown(self):
        gc.collect()


class _Tap(unittest.TestResult):
    number = 0

    def _say(self, test, ok, text=""):
        self.number += 1
        name = test.id().rpartition(".")[2].removeprefix("test_")
        print(f"{'' if ok else 'not '}ok {self.number} - {name}{text}",
              flush=True)

    def _fail(self, test, err):
        for line in "".join(traceback.format_exception(*err)).splitlines():
            print("#", line)
        self._say(test, False)

    def addSuccess(self, test):
        self._say(test, True)

    def addError(self, test, err):
        super().addError(test, err)
        self._fail(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._fail(test, err)

    def addSkip(self, test, reason):
        self._say(test, True, f" # SKIP {reason}")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self._fail(subtest, err)


def main():
    """Runs the tests of the program, or those whose names it was given."""
    faulthandler.enable()
    module = sys.modules["__main__"]
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    tests = [test for group in suite for test in group
             if not sys.argv[1:] or
             any(word in test.id() for word in sys.argv[1:])]
    print(f"1..{len(tests)}", flush=True)
    result = _Tap()
    for test in tests:
        test.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
