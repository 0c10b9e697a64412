# SPDX-License-Identifier: MIT
"""A message queue shaped as vLLM's, for tests: one writer, some readers.

Its readers have a connection each.  Only its shape is vLLM's: what its methods
are called and take, that a message which does not fit a chunk follows the chunk,
and in which order things are done.  It comes in the shapes that vLLM's has had:

    PlainQueue      all in the pickle
    BufferQueue     large buffers out of band
    ArenaQueue      the same, with an arena of its own that can be switched on

TENSORARENA_TEST_VLLM says which of them is the MessageQueue of this module:
"plain", "buffers" or "arena".
"""

import copyreg
import io
import os
import pickle
import struct
import time
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Listener

import torch

OUT_OF_BAND_BYTES = 4096
ARENA_MIN_BYTES = 8 << 20


@dataclass
class Handle:
    local_reader_ranks: list = field(default_factory=list)
    address: str = ""
    tensor_arena_handle: tuple | None = None


class _Socket:
    """To all readers of a kind."""

    def __init__(self):
        self.connections = []

    def send(self, data):
        self.send_multipart([data])

    def send_multipart(self, parts, copy=True):
        for connection in self.connections:
            connection.send_bytes(struct.pack("I", len(parts)))
            for part in parts:
                connection.send_bytes(part)


class _Room:
    def __init__(self, max_chunk_bytes):
        self.max_chunk_bytes = max_chunk_bytes


def _receive(connection):
    parts, = struct.unpack("I", connection.recv_bytes())
    return [connection.recv_bytes() for _ in range(parts)]


class _Queue:
    """What the shapes have in common."""

    def __init__(self, n_reader, n_local_reader, local_reader_ranks=None,
                 max_chunk_bytes=1 << 16, max_chunks=2, connect_ip=None):
        self.n_local_reader = n_local_reader
        self.n_remote_reader = n_reader - n_local_reader
        self.buffer = _Room(max_chunk_bytes)
        self.max_chunks = max_chunks
        self.local_socket = _Socket()
        self.remote_socket = _Socket()
        self._listener = Listener(family="AF_UNIX", backlog=64)
        self._is_writer = True
        self.handle = Handle(local_reader_ranks or list(range(n_local_reader)),
                             self._listener.address)
        self._under_way = {}

    def export_handle(self):
        return self.handle

    @staticmethod
    def create_from_handle(handle, rank):
        self = MessageQueue.__new__(MessageQueue)
        self.handle = handle
        self._is_writer = False
        self._is_local_reader = rank in handle.local_reader_ranks
        self._connection = Client(handle.address)
        self._connection.send(self._is_local_reader)
        if handle.tensor_arena_handle is not None:
            self.tensor_arena = ShmTensorArena(*handle.tensor_arena_handle,
                                               reader_rank=rank)
            _ARENAS[self.tensor_arena.shared_memory.name] = self.tensor_arena
        return self

    def wait_until_ready(self):
        if not self._is_writer:
            assert self._connection.recv() == "READY"
            return
        for _ in range(self.n_local_reader + self.n_remote_reader):
            connection = self._listener.accept()
            local = connection.recv()
            end = self.local_socket if local else self.remote_socket
            end.connections.append(connection)
        for connection in self.local_socket.connections:
            self._under_way[connection] = 0
            connection.send("READY")
        for connection in self.remote_socket.connections:
            connection.send("READY")

    @contextmanager
    def acquire_write(self, timeout=None):
        start = time.monotonic()
        while True:
            for connection in self._under_way:
                while connection.poll(0):
                    connection.recv_bytes()
                    self._under_way[connection] -= 1
            if max(self._under_way.values()) < self.max_chunks:
                break
            if timeout is not None and time.monotonic() > start + timeout:
                raise TimeoutError
            time.sleep(0.0005)
        chunk = bytearray(self.buffer.max_chunk_bytes)
        yield memoryview(chunk)
        for connection in self._under_way:
            connection.send_bytes(chunk)
            self._under_way[connection] += 1

    @contextmanager
    def acquire_read(self, timeout=None):
        if not self._connection.poll(timeout):
            raise TimeoutError
        yield memoryview(self._connection.recv_bytes())
        self._connection.send_bytes(b"read")

    def dequeue(self, timeout=None, indefinite=False):
        if not self._is_local_reader:
            return self._load(_receive(self._connection))
        with self.acquire_read(timeout) as chunk:
            if chunk[0] == 0:
                return pickle.loads(chunk[1:])
        return self._load(_receive(self._connection))

    @staticmethod
    def _load(parts):
        return pickle.loads(parts[0], buffers=parts[1:])


class PlainQueue(_Queue):
    def enqueue(self, obj, timeout=None):
        data = pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)
        if self.n_local_reader > 0:
            if 1 + len(data) > self.buffer.max_chunk_bytes:
                with self.acquire_write(timeout) as chunk:
                    chunk[0] = 1
                self.local_socket.send(data)
            else:
                with self.acquire_write(timeout) as chunk:
                    chunk[0] = 0
                    chunk[1:1 + len(data)] = data
        if self.n_remote_reader > 0:
            self.remote_socket.send(data)


def _tensor_of(buffer, dtype, shape):
    return torch.frombuffer(bytearray(buffer), dtype=torch.uint8) \
        .view(dtype).view(shape)


def _reduce_tensor(tensor):
    if tensor.layout is not torch.strided or tensor.requires_grad:
        return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    flat = tensor.contiguous().view(-1).view(torch.uint8)
    return _tensor_of, (pickle.PickleBuffer(flat.numpy()), tensor.dtype,
                        tensor.shape)


class BufferQueue(_Queue):
    tensor_arena = None

    def enqueue(self, obj, timeout=None):
        parts = [b""]

        def out_of_band(buffer):
            if len(buffer.raw()) < OUT_OF_BAND_BYTES:
                return True
            parts.append(buffer.raw())
            return False

        table = dict(copyreg.dispatch_table)
        table[torch.Tensor] = _reduce_tensor
        arena = self.tensor_arena
        with io.BytesIO() as file:
            if arena is not None:
                pickler = _ArenaPickler(file, arena, out_of_band)
            else:
                pickler = pickle.Pickler(file,
                                         protocol=pickle.HIGHEST_PROTOCOL,
                                         buffer_callback=out_of_band)
            pickler.dispatch_table = table
            pickler.dump(obj)
            parts[0] = file.getvalue()
        if self.n_local_reader > 0:
            overflow = (len(parts) > 1 or
                        1 + len(parts[0]) > self.buffer.max_chunk_bytes)
            with self.acquire_write(timeout) as chunk:
                chunk[0] = overflow
                if not overflow:
                    chunk[1:1 + len(parts[0])] = parts[0]
            if overflow:
                self.local_socket.send_multipart(parts, copy=False)
        if self.n_remote_reader > 0:
            self.remote_socket.send_multipart(parts, copy=False)


_ARENAS = weakref.WeakValueDictionary()


class ShmTensorArena:
    """Where vLLM has its own.  Making one is all that can be done with it."""

    def __init__(self, n_reader, slot_bytes, n_slots):
        pass

    def handle(self):
        return None


def _arena_tensor(name, *where):
    tensor = _ARENAS[name].get_tensor(*where)
    _ARENAS[name].schedule_release(tensor, where[0])
    return tensor


class _ArenaPickler(pickle.Pickler):
    def __init__(self, file, arena, buffer_callback):
        super().__init__(file, pickle.HIGHEST_PROTOCOL,
                         buffer_callback=buffer_callback)
        self.arena = arena

    def reducer_override(self, obj):
        if type(obj) is not torch.Tensor or not obj.is_contiguous() or \
                obj.numel() * obj.element_size() < ARENA_MIN_BYTES:
            return NotImplemented
        where = self.arena.write_tensor(obj)
        if where is None:
            return NotImplemented
        return _arena_tensor, (self.arena.shared_memory.name, where,
                               obj.numel() * obj.element_size(), obj.dtype,
                               tuple(obj.shape))


class ArenaQueue(BufferQueue):
    def __init__(self, n_reader, n_local_reader, local_reader_ranks=None,
                 max_chunk_bytes=1 << 16, max_chunks=2, connect_ip=None,
                 enable_shm_tensor_arena=False):
        super().__init__(n_reader, n_local_reader, local_reader_ranks,
                         max_chunk_bytes, max_chunks, connect_ip)
        if enable_shm_tensor_arena:
            self.tensor_arena = ShmTensorArena(n_local_reader, 16 << 20, 2)
            self.handle.tensor_arena_handle = self.tensor_arena.handle()


MessageQueue = {"plain": PlainQueue, "buffers": BufferQueue,
                "arena": ArenaQueue}[os.environ["TENSORARENA_TEST_VLLM"]]
