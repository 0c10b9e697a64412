#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library inside a PyTorch process, through ctypes: it works in PyTorch's
contexts and streams, and PyTorch takes its slots for pinned memory.

TENSORARENA_LIBRARY may name the shared library; build/libtensorarena.so else.
"""

import ctypes
import os
import sys
import time

try:
    import torch

    WHY = None if torch.cuda.is_available() else "PyTorch sees no GPU"
except ImportError:
    WHY = "there is no PyTorch here"
if WHY:
    print(f"1..0 # SKIP {WHY}")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = os.path.join(HERE, "..", "..", "build", "libtensorarena.so")
EINPROGRESS = 115
NBYTES = 64 << 20

ta = ctypes.CDLL(os.environ.get("TENSORARENA_LIBRARY", DEFAULT))
ta.ta_handle.restype = ctypes.c_char_p
ta.ta_copy_to_device.argtypes = [ctypes.c_void_p, ctypes.c_void_p,
                                 ctypes.c_size_t, ctypes.c_size_t,
                                 ctypes.c_void_p]
ta.ta_release_after.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
ta.ta_put.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                      ctypes.c_void_p, ctypes.c_void_p]


class Options(ctypes.Structure):
    _fields_ = [("slot_bytes", ctypes.c_uint64), ("slots", ctypes.c_uint32),
                ("seats", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("engine", ctypes.c_uint32), ("node", ctypes.c_int32),
                ("reserved", ctypes.c_uint32),
                ("socket_path", ctypes.c_char_p)]


class View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("nbytes", ctypes.c_size_t)]


class CudaStats(ctypes.Structure):
    _fields_ = ([(n, ctypes.c_uint32) for n in
                 ("slots", "cuda_version", "pinned_slots", "pending")] +
                [(n, ctypes.c_uint64) for n in
                 ("pinned_bytes", "pin_budget", "pins", "unpins", "pin_ns",
                  "pin_failures", "over_budget", "copies", "copied_bytes",
                  "deferred", "events", "errors")] +
                [("error", ctypes.c_int32), ("reserved", ctypes.c_uint32),
                 ("error_text", ctypes.c_char * 104)])


def ok(err):
    if err:
        raise OSError(-err, os.strerror(-err))


def stats(reader):
    s = CudaStats()
    ok(ta.ta_cuda_stats(reader, ctypes.byref(s), None, 0))
    return s


def open_arena():
    options = Options()
    writer, reader = ctypes.c_void_p(), ctypes.c_void_p()
    ta.ta_options_init(ctypes.byref(options))
    options.slots, options.seats, options.slot_bytes = 1, 1, NBYTES
    ok(ta.ta_create(ctypes.byref(options), ctypes.byref(writer), None, 0))
    ok(ta.ta_attach(ta.ta_handle(writer), ctypes.byref(reader)))
    return writer, reader


def view_of(writer, reader, source):
    view = ctypes.POINTER(View)()
    ok(ta.ta_put(writer, source.data_ptr(), source.nbytes, None, None))
    ok(ta.ta_next(reader, 1000, ctypes.byref(view)))
    return view


def as_tensor(view):
    pointer = ctypes.cast(view.contents.data,
                          ctypes.POINTER(ctypes.c_uint8 * NBYTES))
    return torch.frombuffer(pointer.contents, dtype=torch.uint8)


writer, reader = open_arena()
source = torch.randint(0, 256, (NBYTES,), dtype=torch.uint8)


def import_makes_no_context():
    view = view_of(writer, reader, source)
    assert not torch.cuda.is_initialized()
    assert stats(reader).pins == 0
    ok(ta.ta_release(view))


def pytorchs_cuda_is_served_and_none_is_loaded_beside_it():
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    view = view_of(writer, reader, source)
    major, minor = map(int, torch.version.cuda.split(".")[:2])
    assert stats(reader).cuda_version // 10 >= major * 100 + minor
    loaded = {line.split()[-1] for line in open("/proc/self/maps")
              if "libcudart" in line}
    assert len(loaded) == 1, loaded
    print("#", *loaded)
    ok(ta.ta_release(view))


def slot_is_pinned_memory_to_pytorch():
    view = view_of(writer, reader, source)
    tensor = as_tensor(view)
    assert tensor.is_pinned()
    assert tensor.pin_memory().data_ptr() == tensor.data_ptr()
    del tensor
    ok(ta.ta_release(view))


def copies_in_pytorchs_streams_hold_the_slot():
    target = torch.zeros(NBYTES, dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    view = view_of(writer, reader, source)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        target.copy_(as_tensor(view), non_blocking=True)
    ok(ta.ta_release_after(view, stream.cuda_stream))
    ok(ta.ta_release(view))
    assert stats(reader).pending == 1
    stream.synchronize()
    deadline = time.monotonic() + 10
    while stats(reader).pending and time.monotonic() < deadline:
        pass
    assert stats(reader).pending == 0
    assert torch.equal(target.cpu(), source)


def graph_capture_is_refused_and_undisturbed():
    held = torch.cuda.Stream()
    target = torch.zeros(NBYTES, dtype=torch.uint8, device="cuda")
    view = view_of(writer, reader, source)
    graph, other = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        current = torch.cuda.current_stream().cuda_stream
        assert ta.ta_copy_to_device(view, target.data_ptr(), 0, NBYTES,
                                    current) == -EINPROGRESS
        # Another stream goes on, and so does the thread that looks after it.
        ok(ta.ta_copy_to_device(view, target.data_ptr(), 0, NBYTES,
                                held.cuda_stream))
        ok(ta.ta_release(view))
        time.sleep(0.02)
        other += 1
    graph.replay()
    torch.cuda.synchronize()
    assert other[0] == 1
    assert torch.equal(target.cpu(), source)
    assert stats(reader).pending == 0
    assert stats(reader).errors == 0, stats(reader).error_text


TESTS = (import_makes_no_context, pytorchs_cuda_is_served_and_none_is_loaded_beside_it,
         slot_is_pinned_memory_to_pytorch,
         copies_in_pytorchs_streams_hold_the_slot,
         graph_capture_is_refused_and_undisturbed)

print(f"1..{len(TESTS)}")
failed = 0
for number, test in enumerate(TESTS, 1):
    try:
        test()
        print(f"ok {number} - {test.__name__}", flush=True)
    except (AssertionError, OSError, RuntimeError) as error:
        failed += 1
        print(f"# {type(error).__name__}: {error}")
        print(f"not ok {number} - {test.__name__}", flush=True)
ta.ta_reader_close(reader)
ta.ta_writer_close(writer)
sys.exit(1 if failed else 0)
