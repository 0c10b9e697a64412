#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One process of the in-band baseline: a writer or a reader in Python.

The tensor travels inside a pickle (protocol 5, no buffer callback) through an
XPUB/SUB pair of libzmq over ipc.  What is said to the driver, and when, is in
control.h; the structures there have their counterparts here.
"""

import ctypes
import mmap
import os
import pickle
import resource
import socket
import struct
import sys
import time

import zmq

CONTROL_FD = 3
SOURCE_FD = 4
ORDER = struct.Struct("=IIQQ256s")
REPORT = struct.Struct("=QQQQQQQII256s")
OPEN, MEET, ARM, GO, BILL = range(5)
POINTER, READ, GPU, CHECK, CHECK_GPU = range(5)


def load_touch():
    """The driver's own loops over bytes, so that both read equally fast."""
    here = os.path.dirname(os.path.abspath(__file__))
    touch = ctypes.CDLL(os.path.join(here, "touch.so"))
    for name in ("touch_read", "touch_digest"):
        function = getattr(touch, name)
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        function.restype = ctypes.c_uint64
    touch.touch_stamp.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64]
    touch.touch_stamp.restype = None
    touch.touch_stamped.argtypes = touch.touch_stamp.argtypes
    return touch


def address_of(array):
    """Of a bytearray's first byte; valid while the array lives."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


class Gpu:
    """The GPU for one reader, as gpu.c has it."""

    RUNTIMES = ("libcudart.so.14", "libcudart.so.13", "libcudart.so.12",
                "libcudart.so.11.0", "libcudart.so",
                "/usr/local/cuda/lib64/libcudart.so")
    HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
    NON_BLOCKING = 1

    def __init__(self, number, max_bytes):
        self.cuda = self.load()
        count = ctypes.c_int()
        self.call("GetDeviceCount", ctypes.byref(count))
        self.call("SetDevice", number % count.value)
        self.stream = ctypes.c_void_p()
        self.call("StreamCreateWithFlags", ctypes.byref(self.stream),
                  self.NON_BLOCKING)
        self.memory = ctypes.c_void_p()
        self.call("Malloc", ctypes.byref(self.memory),
                  ctypes.c_size_t(max_bytes))

    @classmethod
    def load(cls):
        for name in cls.RUNTIMES:
            try:
                return ctypes.CDLL(name)
            except OSError:
                pass
        sys.exit("bench: no CUDA runtime")

    def call(self, name, *arguments):
        error = getattr(self.cuda, "cuda" + name)(*arguments)
        if error:
            sys.exit(f"bench: cuda{name}: error {error}")

    def copy(self, to, source, nbytes, direction):
        self.call("MemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source),
                  ctypes.c_size_t(nbytes), direction, self.stream)
        self.call("StreamSynchronize", self.stream)

    def put(self, array):
        self.copy(self.memory.value, address_of(array), len(array),
                  self.HOST_TO_DEVICE)

    def fetch(self, nbytes):
        back = bytearray(nbytes)
        self.copy(address_of(back), self.memory.value, nbytes,
                  self.DEVICE_TO_HOST)
        return back


def bill():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.process_time_ns(), usage.ru_minflt + usage.ru_majflt


class Peer:
    """What both kinds of process share."""

    def __init__(self, readers, directory, group):
        self.control = socket.socket(fileno=CONTROL_FD)
        self.touch = load_touch()
        self.context = zmq.Context()
        self.readers = readers
        self.address = f"ipc://{directory}/{group}"
        self.since = (0, 0)
        self.nbytes = 0
        self.about = f"Python {sys.version.split()[0]}, " \
            f"pyzmq {zmq.__version__}, libzmq {zmq.zmq_version()}"

    def make_socket(self, kind):
        made = self.context.socket(kind)
        made.setsockopt(zmq.SNDHWM, 0)
        made.setsockopt(zmq.RCVHWM, 0)
        made.setsockopt(zmq.LINGER, 0)
        return made

    def orders(self):
        """Orders as they come, until the driver hangs up."""
        while True:
            message = self.control.recv(ORDER.size)
            if len(message) < ORDER.size:
                return
            kind, mode, nbytes, stamp, address = ORDER.unpack(message)
            yield kind, mode, nbytes, stamp, address.rstrip(b"\0").decode()

    def answer(self, start=0, put=0, end=0, have=0, used=(0, 0), digest=0,
               stamped=0, text=""):
        self.control.send(REPORT.pack(start, put, end, have, *used, digest,
                                      stamped, 0, text.encode()))

    def used(self):
        now = bill()
        return now[0] - self.since[0], now[1] - self.since[1]


class Writer(Peer):
    """Sends pickles."""

    def open(self):
        self.bus = self.make_socket(zmq.XPUB)
        self.bus.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.bus.bind(self.address)
        with mmap.mmap(SOURCE_FD, 0, prot=mmap.PROT_READ) as file:
            self.source = bytearray(file)

    def meet(self):
        for _ in range(self.readers):
            self.bus.recv()
        self.bus.send(b"")

    def arm(self, mode, nbytes, stamp):
        if nbytes != self.nbytes:
            self.tensor = self.source[:nbytes]
            self.nbytes = nbytes
        at = address_of(self.tensor)
        self.touch.touch_stamp(at, nbytes, stamp)
        digest = self.touch.touch_digest(at, nbytes) \
            if mode in (CHECK, CHECK_GPU) else 0
        self.answer(digest=digest, text=self.about)
        self.since = bill()

    def put(self):
        message = {"nbytes": self.nbytes, "data": self.tensor}
        start = time.monotonic_ns()
        pickled = pickle.dumps(message, protocol=5)
        tracker = self.bus.send(pickled, copy=False, track=True)
        put = time.monotonic_ns()
        # The tensor itself is free when it has been pickled.
        end = put
        del pickled
        self.answer(start=start, put=put, end=end)
        tracker.wait()

    def run(self):
        for kind, mode, nbytes, stamp, _ in self.orders():
            if kind == OPEN:
                self.open()
                self.answer(text=self.address)
            elif kind == MEET:
                self.meet()
                self.answer(text=self.about)
            elif kind == ARM:
                self.arm(mode, nbytes, stamp)
            elif kind == GO:
                self.put()
            elif kind == BILL:
                self.answer(used=self.used())


class Reader(Peer):
    """Receives them."""

    def open(self, address, gpu):
        self.bus = self.make_socket(zmq.SUB)
        self.bus.setsockopt(zmq.SUBSCRIBE, b"")
        self.bus.connect(address)
        self.gpu = gpu() if gpu else None

    def take(self, mode, stamp):
        frame = self.bus.recv(copy=False)
        while not len(frame):
            frame = self.bus.recv(copy=False)
        data = pickle.loads(frame.buffer)["data"]
        have = time.monotonic_ns()
        nbytes, digest = len(data), 0
        if mode in (GPU, CHECK_GPU):
            self.gpu.put(data)
        if mode == READ:
            digest = self.touch.touch_read(address_of(data), nbytes)
        end = have if mode == POINTER else time.monotonic_ns()
        if mode == CHECK:
            digest = self.touch.touch_digest(address_of(data), nbytes)
        if mode == CHECK_GPU:
            back = self.gpu.fetch(nbytes)
            digest = self.touch.touch_digest(address_of(back), nbytes)
        stamped = self.touch.touch_stamped(address_of(data), nbytes, stamp)
        del data, frame
        self.answer(end=end, have=have, used=self.used(), digest=digest,
                    stamped=stamped)

    def run(self, gpu):
        for kind, mode, _, stamp, address in self.orders():
            if kind == OPEN:
                self.open(address, gpu)
                self.answer()
            elif kind == ARM:
                self.answer()
                self.since = bill()
                self.take(mode, stamp)


def main():
    role, readers, max_bytes, directory, group, number, gpu = sys.argv[1:]
    if role == "writer":
        Writer(int(readers), directory, group).run()
    else:
        make = (lambda: Gpu(int(number), int(max_bytes))) \
            if gpu == "gpu" else None
        Reader(int(readers), directory, group).run(make)


main()
