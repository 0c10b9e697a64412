# SPDX-License-Identifier: MIT
"""An engine with vLLM's message queue and the workers that read from it.

The engine is the test program.  The queue is that of vllm_modules.py, in one of
the shapes of the stand-in, or the real one.
"""

import contextlib
import hashlib
import logging
import os
import sys

import torch

import harness
from harness import MIB, Worker
import tensorarena
import tensorarena.vllm
import vllm_modules

SHAPES = ("real",) if vllm_modules.TREE else ("plain", "buffers", "arena")
SWITCH = "TENSORARENA_VLLM"
SETTINGS = {"": "1", "_SLOTS": "3", "_SLOT_MB": "2", "_MIN_MB": "1",
            "_ENGINE": harness.ENGINE}

# Workers that are spawned need the module before they can unpickle a handle.
os.environ.setdefault("TENSORARENA_TEST_VLLM", "buffers")
vllm_modules.import_queues()


class Log(logging.Handler):
    """What is said, without an end of the line."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())

    def about(self, *words):
        return [line for line in self.lines
                if all(word in line for word in words)]


@contextlib.contextmanager
def environment(settings):
    """The switch and its variables; nothing of them is set otherwise."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(SWITCH):
            del os.environ[name]
    os.environ.update({SWITCH + name: str(value)
                       for name, value in settings.items()})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def vllm(shape=SHAPES[0], **settings):
    """A vLLM that has just loaded its plugins: its module of queues, and the
    log.  Settings by the ends of their names; None leaves one out."""
    wanted = {name: value for name, value in {**SETTINGS, **settings}.items()
              if value is not None}
    log = Log()
    tensorarena.vllm.logger.addHandler(log)
    tensorarena.vllm.logger.setLevel(logging.DEBUG)
    with environment(wanted):
        os.environ["TENSORARENA_TEST_VLLM"] = shape
        module = vllm_modules.import_queues()
        tensorarena.vllm.register()
        try:
            yield module, log
        finally:
            tensorarena.vllm.unregister()
            tensorarena.vllm.logger.removeHandler(log)


class Engine:
    """A queue, its readers, and a worker for each.

    remote: how many readers are on another node, says the queue
    without: ranks of workers that do not load the plugin
    """

    def __init__(self, module, readers=2, method="fork", remote=0, without=(),
                 **options):
        self.queue = module.MessageQueue(readers + remote, readers, **options)
        handle = self.queue.export_handle()
        self.workers = [Worker(method) for _ in range(readers + remote)]
        try:
            for rank, worker in enumerate(self.workers):
                worker.call(attach, handle, rank, rank not in without)
            for worker in self.workers:
                worker.start(make_ready)
            self.queue.wait_until_ready()
            for worker in self.workers:
                worker.result()
        except BaseException:
            self.close()
            raise

    @property
    def outlet(self):
        return self.queue.tensorarena

    @property
    def writer(self):
        return self.outlet.writer

    def published(self):
        return harness.published(self.writer)

    def await_free(self):
        harness.await_free(self.writer)

    def send(self, message):
        """What each worker has got."""
        for worker in self.workers:
            worker.start(receive)
        self.queue.enqueue(message)
        return [worker.result() for worker in self.workers]

    def close(self):
        for worker in self.workers:
            worker.kill()
        # ZeroMQ's would wait for dead workers to read what was sent to them.
        for socket in (self.queue.local_socket, self.queue.remote_socket):
            context = getattr(socket, "context", None)
            if context is not None:
                context.destroy(linger=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def random(nbytes=MIB, dtype=torch.bfloat16):
    data = torch.randint(0, 256, (nbytes,), dtype=torch.uint8)
    return data.view(dtype).view(-1, 16)


def scheduled(*tensors, **more):
    """A message as vLLM's engine sends them to its workers."""
    features = [{"pixel_values": tensor, "grid": torch.tensor([[1, 2, 3]])}
                for tensor in tensors]
    return "execute_model", ({"requests": [{"features": features}], **more},)


def in_arena(tensor):
    return tensorarena._core.view_at(tensor.data_ptr()) is not None


def seen(thing):
    """A thing with a digest in place of each tensor, of every byte of it, and
    whether it is in an arena."""
    if isinstance(thing, torch.Tensor):
        flat = thing.detach().contiguous().view(-1)
        raw = flat.view(torch.uint8).numpy().tobytes()
        return (type(thing).__name__, str(thing.dtype), tuple(thing.shape),
                hashlib.sha256(raw).hexdigest()), in_arena(thing)
    if isinstance(thing, dict):
        return {key: seen(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [seen(item) for item in thing]
    return thing


def without_places(thing):
    """The same without the "whether"."""
    if isinstance(thing, dict):
        return {key: without_places(value) for key, value in thing.items()}
    if isinstance(thing, tuple):
        return thing[0]
    if isinstance(thing, list):
        return [without_places(item) for item in thing]
    return thing


def places(thing):
    """The "whether" of each tensor, in order."""
    if isinstance(thing, tuple):
        return [thing[1]]
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, list):
        return [place for item in thing for place in places(item)]
    return []


# What workers do.

def attach(state, handle, rank, with_plugin):
    if with_plugin:
        tensorarena.vllm.register()
    else:
        tensorarena.vllm.unregister()
    state.queue = sys.modules[vllm_modules.NAME].MessageQueue \
        .create_from_handle(handle, rank)
    state.kept = []


def make_ready(state):
    state.queue.wait_until_ready()


def receive(state):
    return seen(state.queue.dequeue(harness.HANG_S))


def keep(state):
    """Receives a message and keeps a part of its first tensor."""
    message = state.queue.dequeue(harness.HANG_S)
    pixels = message[1][0]["requests"][0]["features"][0]["pixel_values"]
    state.kept.append(pixels[1:3])
    return in_arena(pixels)


def kept(state):
    return [seen(tensor) for tensor in state.kept]


def drop(state):
    state.kept.clear()


def leave(state):
    """Leaves the arena, but not the queue."""
    state.queue.tensorarena.reader.close()


def writes(state):
    """What the plugin has of queues that this process writes to."""
    return tensorarena.vllm.stats()
