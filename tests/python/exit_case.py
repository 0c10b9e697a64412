#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Ends while everything is still alive; as "fork", in a child as well.

See lifetime_test.py and fork_test.py.
"""

import os
import sys
import threading

from harness import arena
import tensorarena


class Late:
    """Uses the package when the interpreter is half gone."""

    def __init__(self, *uses):
        self.uses = uses

    def __del__(self):
        for use in self.uses:
            use()


writer = arena(slots=4)
reader = tensorarena.Reader(writer.handle)
tickets = [writer.put(b"x") for _ in range(3)]
view = reader.view(tickets[0])
memory = memoryview(reader.view(tickets[1]))
cycle = [reader.view(tickets[2]).dlpack_bytes()]
cycle.append(cycle)
loan = writer.loan(1)
late = Late(writer.stats, reader.stats)
sys.modules["late"] = Late(writer.stats, reader.stats, view.__dlpack_device__,
                           view.release, loan.abort)
threading.Thread(target=reader.next, daemon=True).start()
if sys.argv[1:] == ["fork"]:
    pid = os.fork()
    if not pid:
        # Here they would say that they are in the wrong process.
        late.uses = sys.modules["late"].uses = ()
    else:
        assert os.waitpid(pid, 0)[1] == 0
        assert bytes(memory) == b"x"
        assert writer.stats()["published"] == 3
        assert writer.stats()["writing"] == 1
        print("alive")
else:
    print("alive")
