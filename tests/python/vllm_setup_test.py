#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""How vLLM gets its arena, and that it is left as it was where it gets none.
VLLM_TREE=/path/to/vllm runs the same on the queue of that."""

import logging
import os
import pickle
import subprocess
import sys

import harness
from harness import Case, main
import tensorarena
import tensorarena.vllm
import vllm_modules
from vllm_engine import SHAPES, Engine, environment, places, random, \
    scheduled, seen, vllm, without_places

def shape_of(module):
    """All that the plugin might have changed."""
    return dict(module.MessageQueue.__dict__), module.pickle


class Switch(Case):
    def test_off_leaves_vllm_untouched(self):
        for value in (None, "", "0"):
            for shape in SHAPES:
                with self.subTest(value=value, shape=shape), \
                        vllm(shape, **{"": value}) as (module, log):
                    before = shape_of(vllm_modules.import_queues())
                    tensorarena.vllm.register()
                    module = sys.modules[vllm_modules.NAME]
                    self.assertEqual(shape_of(module), before)
                    self.assertIs(module.pickle, pickle)
                    self.assertEqual(log.lines, [])
                    queue = module.MessageQueue(2, 2)
                    self.assertFalse(hasattr(queue, "tensorarena"))
                    self.assertFalse(hasattr(queue.handle, "tensorarena"))

    def test_loading_it_twice_is_loading_it_once(self):
        with vllm() as (module, log):
            before = shape_of(module)
            tensorarena.vllm.register()
            self.assertEqual(shape_of(module), before)
            self.assertEqual(len(log.about("get an arena")), 1)

    def test_undoing_it_gives_vllm_back(self):
        for shape in SHAPES:
            with self.subTest(shape), vllm(shape) as (module, log):
                tensorarena.vllm.unregister()
                after = shape_of(module)
                self.assertEqual(after[1], pickle)
                tensorarena.vllm.register()
                self.assertNotEqual(shape_of(module), after)
                tensorarena.vllm.unregister()
                self.assertEqual(shape_of(module), after)

    def test_settings_without_a_meaning_leave_vllm_untouched(self):
        for name, value in (("", "yes"), ("_SLOTS", "0"), ("_SLOTS", "many"),
                            ("_SLOT_MB", "-1"), ("_ENGINE", "steam"),
                            ("_MIN_READERS", "65"), ("_MEMORY_CHECK", "2")):
            with self.subTest(name), \
                    vllm(**{name: value}) as (module, log):
                self.assertIs(module.pickle, pickle)
                self.assertEqual(len(log.about("goes on without it")), 1)

    def test_it_is_imported_without_vllm_and_torch(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]);"
                "import tensorarena.vllm; tensorarena.vllm.register();"
                "assert not {'vllm', 'torch', 'numpy'} & set(sys.modules);"
                "assert tensorarena.vllm.stats() == []")
        with environment({}):
            subprocess.run([sys.executable, "-c", code, harness.PACKAGE],
                           check=True)

    def test_without_vllm_it_says_so(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]);"
                "import tensorarena.vllm; tensorarena.vllm.register()")
        with environment({"": "1"}):
            done = subprocess.run(
                [sys.executable, "-c", code, harness.PACKAGE], check=True,
                stderr=subprocess.PIPE, text=True)
        self.assertIn("vLLM goes on without it", done.stderr)
        self.assertIn("No module named 'vllm'", done.stderr)


def no_class(module):
    del module.MessageQueue


def no_pickle(module):
    del module.pickle


def no_room(module):
    def enqueue(self, obj, timeout=None):
        self.n_local_reader, self.n_remote_reader
        module.pickle.dumps(obj)

    module.MessageQueue.enqueue = enqueue


def no_handshake(module):
    module.MessageQueue.wait_until_ready = None


def other_parameters(module):
    module.MessageQueue.enqueue = lambda self, message: None


def other_kind(module):
    module.MessageQueue.create_from_handle = classmethod(
        lambda cls, handle, rank: None)


def other_order(module):
    module.MessageQueue.__init__ = lambda self, n_local_reader, n_reader: None


class Shapes(Case):
    def test_an_unknown_shape_is_left_untouched_and_logged(self):
        for change in (no_class, no_pickle, no_room, no_handshake,
                       other_parameters, other_kind, other_order):
            with self.subTest(change.__name__), \
                    vllm(**{"": None}) as (module, log):
                change(module)
                before = dict(vars(module))
                queue = before.get("MessageQueue")
                methods = queue and dict(queue.__dict__)
                os.environ["TENSORARENA_VLLM"] = "1"
                tensorarena.vllm.register()
                self.assertEqual(dict(vars(module)), before)
                self.assertEqual(queue and dict(queue.__dict__), methods)
                line, = log.lines
                self.assertIn("not of a shape that is known here", line)

    def test_a_handle_that_takes_nothing_more_leaves_the_queue_alone(self):
        with vllm() as (module, log):
            handle = module.Handle
            fields = tuple(handle.__dataclass_fields__)

            class Full(handle):
                def __setattr__(self, name, value):
                    if name not in fields:
                        raise AttributeError(name)
                    super().__setattr__(name, value)

            module.Handle = Full
            queue = module.MessageQueue(2, 2)
            self.assertFalse(hasattr(queue, "tensorarena"))
            self.assertEqual(len(log.about("goes on without its arena")), 1)


class NoArena(Case):
    def served_as_ever(self, module, **options):
        with Engine(module, **options) as engine:
            message = scheduled(random())
            for got in engine.send(message):
                self.assertEqual(without_places(got),
                                 without_places(seen(message)))
                self.assertEqual(places(got), [False, False])
            return engine

    def test_a_worker_without_the_plugin_leaves_all_without(self):
        for method in "fork", "spawn":
            with self.subTest(method), vllm() as (module, log):
                self.served_as_ever(module, without=(1,), method=method)
                line, = log.about("goes on without its arena")
                self.assertIn("1 of 2 local readers have attached", line)

    def test_a_worker_that_cannot_attach_leaves_all_without(self):
        with vllm() as (module, log):
            made = module.MessageQueue.__init__

            def __init__(self, *args, **kwargs):
                made(self, *args, **kwargs)
                *sizes, _ = self.handle.tensorarena
                other = harness.arena(seats=2)
                self.handle.tensorarena = (*sizes, other.handle)

            module.MessageQueue.__init__ = __init__
            self.served_as_ever(module)
            self.assertEqual(len(log.about("0 of 2 local readers")), 1)

    def test_memory_that_is_not_there_leaves_the_queue_alone(self):
        with vllm(_SLOTS=256, _SLOT_MB=1 << 20) as (module, log):
            self.served_as_ever(module)
            line, = log.about("has no arena")
            self.assertIn("GiB", line)

    def test_an_engine_that_is_not_there_leaves_the_queue_alone(self):
        if os.path.exists("/dev/tensorarena"):
            self.skipTest("it is there")
        with vllm(_ENGINE="device") as (module, log):
            self.served_as_ever(module)
            self.assertEqual(len(log.about("has no arena")), 1)

    def test_queues_with_few_readers_are_left_alone(self):
        with vllm() as (module, log):
            self.served_as_ever(module, readers=1)
            self.assertFalse(log.about("has no arena"))
        with vllm(_MIN_READERS=1) as (module, log), \
                Engine(module, readers=1) as engine:
            self.assertTrue(engine.outlet.on)

    def test_other_platforms_than_cuda_are_left_alone(self):
        with vllm() as (module, log):
            platform = sys.modules["vllm.platforms"].current_platform
            platform.cuda = False
            self.served_as_ever(module)
            self.assertEqual(len(log.about("platform is not CUDA")), 1)

    def test_one_process_that_is_two_readers_leaves_the_queue_alone(self):
        with vllm() as (module, log):
            queue = module.MessageQueue(2, 2)
            readers = [tensorarena.Reader(queue.tensorarena.arena.handle()[-1])
                       for _ in range(2)]
            queue.tensorarena.start()
            self.assertFalse(queue.tensorarena.on)
            self.assertEqual(len(log.about("several of its readers")), 1)
            del readers


if __name__ == "__main__":
    logging.getLogger("vllm").propagate = False
    main()
