# SPDX-License-Identifier: MIT
"""Ends with both ends of a queue open."""

import harness
from tensorarena.queue import MessageQueue

made = MessageQueue(2, 1, connect_ip="127.0.0.1")
readers = [MessageQueue.create_from_handle(made.export_handle(), rank)
           for rank in range(2)]
made.wait_until_ready(harness.HANG_S)
made.enqueue([bytes(2 << 20), 1])
print(readers[0].dequeue()[1], flush=True)
