#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Releases that wait for CUDA streams, on the stand-in for CUDA."""

import ctypes
import io
import os
import pickle
import sys
import threading
import time
import types

import harness
from harness import MIB, Case, await_free, await_true, main, pair, pattern, \
    published
import tensorarena
from tensorarena.pickling import ArenaPickler

NBYTES = 4096


class _Region(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_void_p), ("size", ctypes.c_size_t),
                ("flags", ctypes.c_uint), ("ctx", ctypes.c_void_p),
                ("pin", ctypes.c_int * 2)]


class _State(ctypes.Structure):
    """struct standin of tests/gpu/standin.h."""

    _fields_ = [("initialised", ctypes.c_bool),
                ("retained", ctypes.c_int * 2), ("made", ctypes.c_int),
                ("driver_calls", ctypes.c_int), ("calls", ctypes.c_int),
                ("runtime_error", ctypes.c_int),
                ("read_only_supported", ctypes.c_bool),
                ("stream_ids", ctypes.c_bool), ("ctx_ids", ctypes.c_bool),
                ("region", _Region * 64),
                ("regions", ctypes.c_int), ("registered", ctypes.c_int),
                ("unregistered", ctypes.c_int), ("events", ctypes.c_int),
                ("synced", ctypes.c_int), ("fail", ctypes.c_char_p),
                ("fail_with", ctypes.c_int), ("fail_always", ctypes.c_bool),
                ("dead_push", ctypes.c_int), ("refuse", ctypes.c_int),
                ("sync_fails", ctypes.c_int), ("half_copies", ctypes.c_bool),
                ("device_error", ctypes.c_int), ("unsafe", ctypes.c_int)]


class _Api(ctypes.Structure):
    """struct standin_api."""

    _fields_ = [("state", ctypes.POINTER(_State)),
                ("reset", ctypes.CFUNCTYPE(None, ctypes.c_bool)),
                ("set_current", ctypes.CFUNCTYPE(None, ctypes.c_int)),
                ("stream", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int)),
                ("discard", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("capture", ctypes.CFUNCTYPE(None, ctypes.c_void_p,
                                             ctypes.c_bool)),
                ("complete", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("run", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("hold", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("device_reset", ctypes.CFUNCTYPE(None, ctypes.c_int))]


LIBRARIES = os.path.join(harness.PACKAGE, "..", "tests", "standin")
driver = ctypes.CDLL(os.path.join(LIBRARIES, "libcuda.so.1"),
                     ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL(os.path.join(LIBRARIES, "libcudart.so.13"),
                      ctypes.RTLD_GLOBAL)
standin = _Api.in_dll(driver, "standin_api")
driver.standin_real_stream.restype = ctypes.c_void_p


# Memory of the GPU's: it stays while copies to it are under way.
targets = []


def copy(view, stream):
    """What PyTorch's copy to the GPU does; returns the GPU's memory."""
    target = ctypes.create_string_buffer(view.nbytes)
    targets.append(target)
    error = runtime.cudaMemcpyAsync(target, ctypes.c_void_p(view.address),
                                    ctypes.c_size_t(view.nbytes), 1,
                                    ctypes.c_void_p(stream))
    assert not error
    return target


class Streams(Case):
    def setUp(self):
        standin.reset(True)
        self.stream = standin.stream(0)
        self.writer, self.reader = pair(slots=1)
        self.state = standin.state.contents

    def tearDown(self):
        super().tearDown()
        self.reader.close()
        self.writer.close()
        # Nothing of ours may be left, and no context was made.
        state = standin.state.contents
        self.assertEqual((state.made, state.regions, state.events,
                          state.unsafe, state.runtime_error),
                         (0, 0, 0, 0, 0))

    def view(self, stream=None, seed=1):
        ticket = self.writer.put(pattern(NBYTES, seed))
        return self.reader.view(ticket, stream=stream)

    def assert_held(self):
        """No waiting frees the slot."""
        self.assertEqual(self.reader.flush_releases(), 1)
        time.sleep(0.02)
        self.assertEqual(published(self.writer), 1)
        self.assertIsNone(self.writer.put(b"x"))

    def test_the_slot_waits_for_the_stream_of_the_view(self):
        view = self.view(self.stream)
        target = copy(view, self.stream)
        del view
        self.assert_held()
        standin.complete(self.stream)
        await_free(self.writer)
        self.assertEqual(target.raw, pattern(NBYTES))
        self.assertEqual(self.reader.flush_releases(), 0)
        self.assertEqual(self.reader.stats()["cuda"]["deferred"], 1)

    def test_it_waits_for_what_was_sent_until_the_last_object_went(self):
        view = self.view(self.stream)
        memory = memoryview(view)
        copy(view, self.stream)
        standin.complete(self.stream)
        target = copy(view, self.stream)
        del view
        self.reader.flush_releases()
        self.assertEqual(published(self.writer), 1)
        del memory
        self.assert_held()
        standin.complete(self.stream)
        await_free(self.writer)
        self.assertEqual(target.raw, pattern(NBYTES))

    def test_it_waits_for_every_stream_that_was_named(self):
        view = self.view(self.stream)
        other = standin.stream(1)
        standin.set_current(1)
        view.record_stream(other)
        view.record_stream(other)
        target = copy(view, other)
        standin.set_current(0)
        del view
        standin.complete(self.stream)
        self.assert_held()
        standin.complete(other)
        await_free(self.writer)
        self.assertEqual(target.raw, pattern(NBYTES))

    def test_a_view_without_a_stream_does_not_wait(self):
        view = self.view()
        copy(view, self.stream)
        del view
        await_free(self.writer)
        standin.complete(self.stream)

    def test_the_default_stream_is_of_the_device_that_was_current(self):
        legacy = []

        def work():
            standin.set_current(1)
            view = self.view(0)
            legacy.append(driver.standin_real_stream(None))
            legacy.append(copy(view, 0))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        # The other device's default stream has nothing to do with it.
        standin.complete(driver.standin_real_stream(None))
        self.assert_held()
        standin.complete(legacy[0])
        await_free(self.writer)
        self.assertEqual(legacy[1].raw, pattern(NBYTES))

    def test_released_on_a_thread_without_a_context(self):
        held = [self.view(self.stream)]
        target = copy(held[0], self.stream)
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        self.assert_held()
        standin.complete(self.stream)
        await_free(self.writer)
        self.assertEqual(target.raw, pattern(NBYTES))

    def test_both_views_of_one_publication_are_waited_for(self):
        first = self.view(self.stream)
        other = standin.stream(0)
        second = self.reader.view(first.ticket, stream=other)
        copy(first, self.stream)
        target = copy(second, other)
        del second
        del first
        standin.complete(self.stream)
        self.assert_held()
        standin.complete(other)
        await_free(self.writer)
        self.assertEqual(target.raw, pattern(NBYTES))

    def test_a_stream_named_by_address_is_of_all_views_there(self):
        first = self.view()
        second = self.reader.view(first.ticket)
        other = standin.stream(0)
        tensorarena._core.view_at(first.address + 1).record_stream(other)
        del second
        self.reader.flush_releases()
        target = copy(first, other)
        del first
        self.assert_held()
        standin.complete(other)
        await_free(self.writer)
        self.assertEqual(target.raw, pattern(NBYTES))

    def test_a_stream_under_capture_keeps_the_slot_until_it_is_not(self):
        view = self.view(self.stream)
        standin.capture(self.stream, True)
        del view
        self.assert_held()
        standin.capture(self.stream, False)
        await_free(self.writer)

    def let_fail(self, call, answer, always=False):
        self.state.fail_with = answer
        self.state.fail_always = always
        self.state.fail = call

    def test_a_stream_that_cannot_be_marked_is_waited_for(self):
        for call, answer in ((b"cuEventCreate", 2),
                             (b"cuStreamIsCapturing", 800)):
            with self.subTest(call=call):
                view = self.view(self.stream)
                target = copy(view, self.stream)
                self.let_fail(call, answer)
                threading.Timer(0.05, standin.complete, [self.stream]).start()
                del view
                await_free(self.writer)
                self.assertEqual(target.raw, pattern(NBYTES))

    def test_a_context_that_cannot_be_entered_now_keeps_the_slot(self):
        for call in (b"cuCtxPushCurrent_v2", b"cuCtxGetId"):
            with self.subTest(call=call):
                standin.set_current(0)
                view = self.view(self.stream)
                target = copy(view, self.stream)
                standin.set_current(1)
                self.let_fail(call, 2, always=True)
                del view
                self.assert_held()
                self.state.fail = None
                standin.complete(self.stream)
                await_free(self.writer)
                self.assertEqual(target.raw, pattern(NBYTES))

    def test_a_device_that_has_failed_keeps_nothing(self):
        view = self.view(self.stream)
        copy(view, self.stream)
        self.state.device_error = 700
        del view
        await_free(self.writer)
        self.state.device_error = 0

    def test_a_device_that_fails_frees_what_waits_for_it(self):
        view = self.view(self.stream)
        copy(view, self.stream)
        del view
        self.assert_held()
        self.state.device_error = 700
        await_free(self.writer)
        self.state.device_error = 0

    def test_a_stream_whose_context_is_gone_frees_the_slot(self):
        view = self.view(self.stream)
        standin.device_reset(0)
        del view
        await_free(self.writer)

    def test_closing_waits_for_streams_and_not_for_the_gil(self):
        view = self.view(self.stream)
        target = copy(view, self.stream)
        del view
        threading.Timer(0.05, standin.complete, [self.stream]).start()
        self.reader.close()
        self.assertEqual(target.raw, pattern(NBYTES))

    def test_a_reader_closed_with_views_is_left_by_the_reaper(self):
        view = self.view(self.stream)
        target = copy(view, self.stream)
        self.reader.close()
        self.assertFalse(target.raw == pattern(NBYTES))
        del view
        time.sleep(0.02)
        self.assertEqual(self.writer.stats()["detached"], 0)
        standin.complete(self.stream)
        await_true(lambda: self.writer.stats()["detached"] == 1)
        self.assertEqual(target.raw, pattern(NBYTES))
        # Its slots are unregistered by then, or tearDown() complains.
        await_true(lambda: self.state.regions == 0)

    def test_slots_are_pinned_when_asked_and_within_the_budget(self):
        self.writer.populate(1, NBYTES)
        self.assertEqual(self.reader.prepare(), 1)
        cuda = self.reader.stats()["cuda"]
        self.assertEqual((cuda["pinned_slots"], cuda["pins"]), (1, 1))
        self.assertEqual(cuda["pinned_bytes"], 2 * MIB)
        self.assertGreater(cuda["pin_ns"], 0)
        self.reader.pin_budget(0)
        self.assertEqual(self.reader.stats()["cuda"]["pinned_slots"], 0)

    def test_without_a_context_there_is_nothing_to_prepare(self):
        standin.reset(False)
        with self.assertRaises(tensorarena.Error) as caught:
            self.reader.prepare()
        self.assertEqual(caught.exception.errno, 19)
        view = self.view(0)
        del view
        await_free(self.writer)

    def test_the_stream_that_pytorch_has_current_is_remembered(self):
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(
            is_initialized=lambda: True,
            current_stream=lambda: types.SimpleNamespace(
                cuda_stream=self.stream)))

        def message():
            loan = self.writer.loan(NBYTES)
            loan.write(pattern(NBYTES))
            file = io.BytesIO()
            pickler = ArenaPickler(file, self.writer)
            pickler.dump(loan)
            pickler.commit()
            return file.getvalue()

        for way in (lambda: pickle.loads(message()),
                    lambda: self.reader.view(self.writer.put(bytes(NBYTES))),
                    lambda: self.writer.put(bytes(NBYTES)) and
                    self.reader.next(0)):
            sys.modules["torch"] = torch
            try:
                view = way()
            finally:
                del sys.modules["torch"]
            copy(view, self.stream)
            del view
            self.assert_held()
            standin.complete(self.stream)
            await_free(self.writer)


if __name__ == "__main__":
    main()
