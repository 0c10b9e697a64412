#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""What importing the package costs, and what it does not do."""

import importlib.util
import os
import re
import subprocess
import sys

import harness
from harness import Case, main

# An import costs less time of the processor than that of a larger package, which
# is measured in turn with it, as often: what the machine does besides slows both
# down.  The least counts, as a cold cache may come on top.
LARGER = "import asyncio"
TRIES = 5

OURS = """
import tensorarena
import tensorarena.pickling
import tensorarena.metrics
import tensorarena.queue
"""

MEASURE = """
import sys, time
sys.path.insert(0, sys.argv[1])
start = time.process_time()
exec(sys.argv[2])
took = time.process_time() - start
import os
print(took, len(os.listdir("/proc/self/task")),
      *sorted({"torch", "numpy", "prometheus_client", "ctypes", "typing", "zmq"}
              & set(sys.modules)))
"""

# The main interpreter imports it between two others.
INTERPRETERS = """
import sys
sys.path.insert(0, sys.argv[1])
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def import_elsewhere():
    interpreters.run_string(interpreters.create(), f'''if True:
        import sys
        sys.path.insert(0, {sys.argv[1]!r})
        try:
            import tensorarena
        except ImportError:
            print("refused", flush=True)
        else:
            print("imported", flush=True)
    ''')

import_elsewhere()
import tensorarena
import_elsewhere()
writer = tensorarena.Writer(1, 4096, 1, engine="embedded")
reader = tensorarena.Reader(writer.handle)
print(bytes(reader.view(writer.put(b"here"))).decode())
"""

AGAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from tensorarena import _core as first
del sys.modules["tensorarena._core"]
import tensorarena._core as second
print(first is not second, first.Writer is second.Writer,
      first.Error is second.Error)
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program, harness.PACKAGE],
                          check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


class Interpreters(Case):
    def test_interpreters_but_the_main_one_are_refused(self):
        if not any(map(importlib.util.find_spec,
                       ("_interpreters", "_xxsubinterpreters"))):
            self.skipTest("there is only one interpreter")
        self.assertEqual(run(INTERPRETERS), "refused\nrefused\nhere\n")

    def test_what_is_imported_anew_has_the_same_classes(self):
        self.assertEqual(run(AGAIN), "True True True\n")


def measure(code):
    """Seconds, and what is there then."""
    done = subprocess.run([sys.executable, "-c", MEASURE, harness.PACKAGE,
                           code], check=True, stdout=subprocess.PIPE)
    took, *rest = done.stdout.split()
    return float(took), rest


class Import(Case):
    def setUp(self):
        ours, larger = zip(*((measure(OURS), measure(LARGER))
                             for _ in range(TRIES)))
        self.took = min(ours)[0]
        self.limit = min(larger)[0]
        self.rest = ours[0][1]

    def test_it_is_quick_starts_no_thread_and_imports_nothing_large(self):
        print(f"# {self.took * 1000:.1f} ms, of {self.limit * 1000:.1f}")
        self.assertLess(self.took, self.limit)
        self.assertEqual(self.rest, [b"1"])

    def test_the_extension_needs_the_c_library_and_python_only(self):
        core = os.path.join(harness.PACKAGE, "tensorarena", "_core.abi3.so")
        needed = subprocess.run(["objdump", "-p", core], check=True, text=True,
                                stdout=subprocess.PIPE).stdout
        needed = re.findall(r"NEEDED\s+(\S+)", needed)
        self.assertEqual(set(needed) - {"libc.so.6",
                                        "ld-linux-x86-64.so.2"}, set())
        symbols = subprocess.run(
            ["nm", "-D", "--with-symbol-versions", core], check=True,
            text=True, stdout=subprocess.PIPE).stdout
        defined = re.findall(r"[0-9a-f]+ [A-Z] (\S+)", symbols)
        self.assertEqual(defined, ["PyInit__core"])
        foreign = [name for name in re.findall(r" U (\S+)", symbols)
                   if "@GLIBC_" not in name and
                   not re.fullmatch(r"Py\w+|_Py\w+_SizeT|_Py\w+Struct|"
                                    "_Py_Dealloc", name)]
        self.assertEqual(foreign, [])


if __name__ == "__main__":
    main()
