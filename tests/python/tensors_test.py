#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Tensors and arrays in arenas.  Needs PyTorch and NumPy, but no GPU."""

import copyreg
import gc
import io
import pickle
import threading
import warnings

import numpy
import torch

from harness import MIB, Case, Worker, arena, await_free, await_true, main, \
    pair, published, run_case
import tensorarena
import tensorarena.torch
from tensorarena.torch import ArenaPickler, as_tensor

# Every type of this version that the arena has a name for.
DTYPES = sorted(tensorarena.torch._NAMES, key=str)


def random(dtype, *shape):
    """A tensor whose bytes are random, whatever they mean."""
    size = torch.empty(0, dtype=dtype).element_size()
    elements = 1
    for extent in shape:
        elements *= extent
    data = torch.randint(0, 2 if dtype is torch.bool else 256,
                         (elements * size,), dtype=torch.uint8)
    return data.view(dtype).view(shape)


def raw(tensor):
    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8)
                 .numpy())


def pickled(writer, message, commit=True, **options):
    file = io.BytesIO()
    options.setdefault("min_bytes", 16)
    pickler = ArenaPickler(file, writer, **options)
    pickler.dump(message)
    if commit:
        assert pickler.commit()
    return file.getvalue()


class Types(Case):
    def test_every_type_crosses_byte_for_byte(self):
        writer, reader = pair()
        print("#", *DTYPES)
        for dtype in DTYPES:
            for shape in ((64,), (3, 5, 16), (8,) + (1,) * 6 + (8,)):
                with self.subTest(dtype=dtype, shape=shape):
                    tensor = random(dtype, *shape)
                    seen = pickle.loads(pickled(writer, tensor))
                    self.assertEqual(published(writer), 1)
                    self.assertEqual((seen.dtype, tuple(seen.shape)),
                                     (dtype, shape))
                    self.assertTrue(seen.is_contiguous())
                    self.assertEqual(raw(seen), raw(tensor))
                    del seen
                    reader.flush_releases()

    def test_the_types_of_the_field_are_among_them(self):
        for name in ("bfloat16", "float16", "float64", "int8", "uint8",
                     "int64", "bool", "complex64", "complex128"):
            self.assertIn(getattr(torch, name), DTYPES)
        for name in ("float8_e4m3fn", "float8_e5m2"):
            self.assertEqual(hasattr(torch, name),
                             getattr(torch, name, None) in DTYPES)

    def test_put_and_view_without_pickling(self):
        writer, reader = pair()
        tensor = random(torch.bfloat16, 4, 8)
        ticket = tensorarena.torch.put(writer, tensor, tag=b"pixels")
        seen = tensorarena.torch.view(reader, ticket)
        self.assertTrue(torch.equal(seen, tensor))
        self.assertEqual(reader.view(ticket).tag, b"pixels")
        self.assertIsNone(tensorarena.torch.put(writer, tensor.t()))
        self.assertEqual(writer.last_decline, "not_contiguous")

    def test_a_type_that_this_version_lacks_says_so(self):
        writer, reader = pair()
        view = reader.view(writer.put(bytes(16), "f64x2"))
        with self.assertRaisesRegex(TypeError, "f64x2"):
            as_tensor(view)
        with self.assertRaises(ValueError):
            tensorarena.torch.empty(writer, (1,), torch.qint8)

    def test_readers_see_a_scalar_and_an_empty_tensor_too(self):
        writer, reader = pair()
        for shape, size in (((), 4), ((3, 0), 0)):
            view = reader.view(writer.put(bytes(size), "f32", shape))
            self.assertEqual(tuple(as_tensor(view).shape), shape)

    def test_making_a_tensor_warns_of_nothing(self):
        writer, reader = pair()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pickle.loads(pickled(writer, random(torch.float32, 64)))


class Declines(Case):
    def check(self, reason, tensor, **options):
        writer, reader = pair()
        message = pickled(writer, tensor, **options)
        self.assertEqual(writer.declines, {reason: 1})
        self.assertEqual(published(writer), 0)
        self.assertEqual(writer.stats()["free"], 2)
        return pickle.loads(message)

    def test_requires_grad(self):
        tensor = torch.ones(64, requires_grad=True)
        seen = self.check("requires_grad", tensor)
        self.assertTrue(seen.requires_grad and torch.equal(seen, tensor))

    def test_a_trained_parameter(self):
        seen = self.check("requires_grad", torch.nn.Parameter(torch.ones(64)))
        self.assertIs(type(seen), torch.nn.Parameter)
        self.assertTrue(seen.requires_grad)

    def test_conj(self):
        tensor = torch.ones(64, dtype=torch.complex64).mul(1j).conj()
        self.assertTrue(torch.equal(self.check("conj", tensor),
                                    pickle.loads(pickle.dumps(tensor))))

    def test_neg(self):
        tensor = torch.ones(64, dtype=torch.complex64).mul(1j).conj().imag
        self.assertTrue(tensor.is_neg())
        self.assertTrue(torch.equal(self.check("neg", tensor),
                                    pickle.loads(pickle.dumps(tensor))))

    def test_sparse(self):
        tensor = torch.eye(64).to_sparse()
        seen = self.check("layout", tensor)
        self.assertTrue(seen.is_sparse)
        self.assertTrue(torch.equal(seen.to_dense(), torch.eye(64)))
        seen = self.check("layout", torch.eye(64).to_sparse_csr())
        self.assertTrue(torch.equal(seen.to_dense(), torch.eye(64)))

    def test_quantised(self):
        tensor = torch.quantize_per_tensor(torch.arange(64.), 0.5, 3,
                                           torch.qint8)
        self.assertTrue(torch.equal(self.check("quantized", tensor), tensor))

    def test_meta(self):
        seen = self.check("device", torch.empty(64, device="meta"))
        self.assertEqual((seen.device.type, seen.shape), ("meta", (64,)))

    def test_subclass(self):
        # A type of its own, which the arena never looks at.
        writer, reader = pair()
        tensor = torch.ones(64).as_subclass(_Subclass)
        tensor.state = "which 1.13 needs to unpickle it"
        seen = pickle.loads(pickled(writer, tensor))
        self.assertIs(type(seen), _Subclass)
        self.assertEqual((writer.declines, published(writer)), ({}, 0))
        self.assertIsNone(tensorarena.torch.put(writer, tensor))
        self.assertEqual(writer.last_decline, "subclass")

    def test_zero_size(self):
        self.assertEqual(self.check("empty", torch.ones(0, 3)).shape, (0, 3))

    def test_scalar(self):
        seen = self.check("small", torch.tensor(5.0))
        self.assertEqual((seen.item(), seen.dim()), (5.0, 0))

    def test_small(self):
        tensor = torch.ones((1 << 18) - 1)
        seen = self.check("small", tensor,
                          min_bytes=tensorarena.torch.MIN_BYTES)
        self.assertTrue(torch.equal(seen, tensor))

    def test_non_contiguous(self):
        for tensor in (torch.rand(8, 8).t(), torch.rand(64)[::2],
                       torch.rand(2, 4).expand(3, 2, 4),
                       torch.rand(2, 3, 4, 5).to(
                           memory_format=torch.channels_last)):
            seen = self.check("not_contiguous", tensor)
            self.assertTrue(torch.equal(seen, tensor))
            self.assertEqual(seen.stride(), tensor.stride())

    def test_attributes(self):
        tensor = torch.ones(64)
        tensor.name_of_mine = "x"
        self.assertEqual(self.check("attributes", tensor).__dict__,
                         pickle.loads(pickle.dumps(tensor)).__dict__)

    def test_names(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensor = torch.ones(64, names=("n",))
        writer, reader = pair()
        with self.assertRaisesRegex(RuntimeError, "Named"):
            pickled(writer, tensor)
        self.assertEqual(writer.declines, {"names": 1})

    def test_hooks(self):
        tensor = torch.ones(64, requires_grad=True)
        tensor.register_hook(lambda grad: grad)
        tensor.requires_grad_(False)
        writer, reader = pair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                pickled(writer, tensor)
            except (AttributeError, pickle.PicklingError):
                pass
        self.assertEqual(writer.declines, {"hooks": 1})

    def test_more_dimensions_than_a_descriptor_has(self):
        tensor = torch.rand((2,) * 9)
        self.assertTrue(torch.equal(self.check("dimensions", tensor), tensor))

    def test_nested(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensor = torch.nested.nested_tensor([torch.ones(8),
                                                 torch.ones(4)])
        self.assertEqual(tensorarena.torch.why_not(tensor), "layout")

    def test_a_full_arena_or_a_tensor_too_large(self):
        writer, reader = pair(slots=1)
        tensor = torch.rand(64)
        message = pickled(writer, [tensor, torch.rand(MIB), torch.rand(65)])
        self.assertEqual(writer.declines, {"oversize": 1, "no_slot": 1})
        seen = pickle.loads(message)
        self.assertTrue(torch.equal(seen[0], tensor))
        self.assertEqual((seen[1].numel(), seen[2].numel()), (MIB, 65))


class _Subclass(torch.Tensor):
    pass


class Composing(Case):
    TABLE = copyreg.dispatch_table.copy()

    def test_what_is_declined_goes_out_of_band_by_the_callers_table(self):
        writer, reader = pair(slots=1)
        buffers = []
        tensors = [torch.rand(64), torch.rand(65), torch.rand(3),
                   torch.rand(2, 3).t(),
                   torch.nn.Parameter(torch.rand(66), requires_grad=False)]
        message = pickled(writer, tensors, dispatch_table=self.TABLE,
                          buffer_callback=buffers.append)
        self.assertEqual(len(buffers), 2)
        self.assertEqual(writer.declines, {"no_slot": 2, "small": 1,
                                           "not_contiguous": 1})
        seen = pickle.loads(message, buffers=buffers)
        for tensor, other in zip(tensors, seen):
            self.assertTrue(torch.equal(tensor, other))
            self.assertIs(type(tensor), type(other))

    def test_without_an_arena_the_bytes_are_the_same(self):
        writer, reader = pair()
        reader.close()
        message = {"a": torch.rand(64), "b": [1, "x"]}
        for table in ({}, self.TABLE):
            plain, ours = io.BytesIO(), io.BytesIO()
            first, second = [], []
            pickler = pickle.Pickler(plain, 5, buffer_callback=first.append)
            pickler.dispatch_table = table or copyreg.dispatch_table
            pickler.dump(message)
            options = {"dispatch_table": table} if table else {}
            ArenaPickler(ours, writer, buffer_callback=second.append,
                         **options).dump(message)
            self.assertEqual(ours.getvalue(), plain.getvalue())
            self.assertEqual(len(first), len(second))

    def test_a_pickling_error_after_a_put_rolls_it_back(self):
        writer, reader = pair(slots=1)
        with self.assertRaises(AttributeError):
            pickled(writer, [torch.rand(64), lambda: None])
        self.assertEqual(writer.stats()["free"], 1)

    def test_the_same_parameter_twice_is_one_parameter(self):
        writer, reader = pair()
        parameter = torch.nn.Parameter(torch.rand(64), requires_grad=False)
        seen = pickle.loads(pickled(writer, [parameter, {"p": parameter}]))
        self.assertIs(seen[0], seen[1]["p"])
        self.assertIs(type(seen[0]), torch.nn.Parameter)
        self.assertFalse(seen[0].requires_grad)
        self.assertTrue(torch.equal(seen[0], parameter))
        self.assertEqual(published(writer), 1)


def _reduce_out_of_band(tensor):
    """As queues do it, roughly."""
    if (not tensor.is_contiguous() or
            tensor.numel() * tensor.element_size() < 16):
        return tensor.__reduce_ex__(5)
    return _from_buffer, (pickle.PickleBuffer(tensor.detach().numpy()),
                          type(tensor))


def _from_buffer(buffer, kind):
    tensor = torch.from_numpy(numpy.frombuffer(buffer, numpy.float32).copy())
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad=False)
    return tensor


for kind in torch.Tensor, torch.nn.Parameter:
    Composing.TABLE[kind] = _reduce_out_of_band


class Lifetime(Case):
    def retained(self, keep, check):
        """Only what keep() makes of a tensor is left, then nothing."""
        writer, reader = pair(slots=2)
        source = torch.arange(4096, dtype=torch.float32)
        seen = pickle.loads(pickled(writer, {"t": source}))["t"]
        kept = keep(seen)
        del seen
        gc.collect()
        for _ in range(3):
            again = pickle.loads(pickled(writer, torch.rand(4096)))
            del again
            reader.flush_releases()
            await_true(lambda: published(writer) == 1)
        self.assertTrue(check(kept, source))
        del kept
        await_free(writer)

    def test_retained_only_through_a_slice(self):
        self.retained(lambda t: t[100:200],
                      lambda kept, t: torch.equal(kept, t[100:200]))

    def test_retained_only_through_a_view_of_a_view(self):
        self.retained(lambda t: t.view(64, 64)[:, 3].unbind()[1],
                      lambda kept, t: kept == t[64 + 3])

    def test_retained_only_through_a_parameter(self):
        self.retained(
            lambda t: torch.nn.Parameter(t, requires_grad=False),
            lambda kept, t: torch.equal(kept, t))

    def test_retained_only_through_a_numpy_view_of_the_tensor(self):
        self.retained(lambda t: t.numpy()[10:20],
                      lambda kept, t: (kept == t[10:20].numpy()).all())

    def test_retained_only_through_a_memoryview_of_that(self):
        self.retained(lambda t: memoryview(t.numpy())[5:],
                      lambda kept, t: kept.tolist() == t[5:].tolist())

    def test_retained_only_through_a_storage(self):
        self.retained(lambda t: t.storage(),
                      lambda kept, t: kept[4095] == 4095)

    def test_retained_by_what_autograd_saved(self):
        weight = torch.ones(4096, requires_grad=True)
        self.retained(lambda t: (t * weight).sum(),
                      lambda kept, t: kept.grad_fn is not None)

    def test_released_on_another_thread(self):
        writer, reader = pair()
        held = [pickle.loads(pickled(writer, torch.rand(64)))]
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        await_free(writer)

    def test_released_by_pytorch_without_the_gil(self):
        writer, reader = pair()
        weight = torch.ones(4096, requires_grad=True)
        seen = pickle.loads(pickled(writer, torch.rand(4096)))
        loss = (weight * seen).sum()
        del seen
        # Autograd's own thread drops what was saved.
        loss.backward()
        del loss
        await_free(writer)

    def test_interpreter_exit_with_tensors_alive_is_clean(self):
        self.assertEqual(run_case("tensor_exit_case.py"), (0, b"alive\n"))


class Writers(Case):
    def test_a_tensor_from_empty_is_published_without_a_copy(self):
        writer, reader = pair(slots=1)
        for dtype in (torch.bfloat16, torch.bool, torch.int64):
            tensor = writer.empty((4, 16), dtype)
            self.assertEqual((tensor.dtype, tensor.shape), (dtype, (4, 16)))
            source = random(dtype, 4, 16)
            tensor.copy_(source)
            puts = writer.stats()["puts"]
            seen = pickle.loads(pickled(writer, {"t": tensor}))["t"]
            self.assertEqual(writer.stats()["puts"], puts + 1)
            self.assertTrue(torch.equal(seen, source))
            # One slot: it cannot have been copied into another.
            self.assertIsNone(writer.put(b"x"))
            del seen, tensor
            await_free(writer)

    def test_a_reshaped_tensor_on_loan_keeps_its_new_shape(self):
        writer, reader = pair(slots=1)
        tensor = writer.empty((4, 16), torch.float32)
        tensor.copy_(torch.rand(4, 16))
        message = pickled(writer, tensor.view(8, 8))
        self.assertTrue(torch.equal(pickle.loads(message),
                                    tensor.view(8, 8)))

    def test_a_part_of_a_loan_and_a_second_pickling_are_copies(self):
        writer, reader = pair(slots=3)
        tensor = writer.empty((64,), torch.float32)
        tensor.copy_(torch.rand(64))
        part = pickle.loads(pickled(writer, tensor[:32]))
        self.assertTrue(torch.equal(part, tensor[:32]))
        self.assertEqual(writer.stats()["writing"], 1)
        whole = pickle.loads(pickled(writer, tensor))
        again = pickle.loads(pickled(writer, tensor))
        self.assertTrue(torch.equal(whole, tensor))
        self.assertTrue(torch.equal(again, tensor))
        self.assertNotEqual(whole.data_ptr(), again.data_ptr())
        self.assertEqual(published(writer), 3)

    def test_a_tensor_from_empty_outlives_its_publication(self):
        writer, reader = pair(slots=2)
        tensor = writer.empty((64,), torch.float32)
        tensor.copy_(torch.arange(64))
        pickle.loads(pickled(writer, tensor))
        for _ in range(4):
            reader.flush_releases()
            pickle.loads(pickled(writer, torch.rand(64)))
        self.assertTrue(torch.equal(tensor, torch.arange(64.)))

    def test_commit_without_pickling(self):
        writer, reader = pair(slots=3)
        things = [writer.empty((8,), torch.float16).fill_(3),
                  writer.empty((8,), "f16"), writer.empty((8,), numpy.float16)]
        numpy.asarray(things[1])[:] = 3
        things[2][:] = 3
        for thing in things:
            ticket = writer.commit(thing, tag=b"t")
            view = reader.view(ticket)
            self.assertEqual((view.dtype, view.shape, view.tag),
                             ("f16", (8,), b"t"))
            self.assertTrue((numpy.asarray(view) == 3).all())

    def test_what_is_not_on_loan_cannot_be_committed(self):
        writer, reader = pair()
        tensor = writer.empty((8,), torch.float16)
        for thing in (torch.ones(3), numpy.ones(3), tensor[1:], tensor[:4]):
            with self.assertRaises(ValueError):
                writer.commit(thing)

    def test_empty_declines_with_none(self):
        writer, reader = pair(slots=1)
        self.assertIsNone(writer.empty((MIB,), torch.float64))
        self.assertIsNone(writer.empty((MIB,), numpy.float64))
        self.assertEqual(writer.last_decline, "oversize")
        with self.assertRaises(ValueError):
            writer.empty((1,), numpy.longdouble)
        with self.assertRaises(ValueError):
            writer.empty((1,), numpy.dtype(">f4"))


class Arrays(Case):
    def test_every_array_type_crosses(self):
        writer, reader = pair()
        for code in "?bhilqBHILQefdFD":
            source = numpy.frombuffer(numpy.random.bytes(960), "u1") & 1
            source = source.astype(code).reshape(2, -1)
            seen = numpy.asarray(reader.view(writer.put(source)))
            self.assertEqual(seen.dtype, source.dtype)
            self.assertTrue((seen == source).all())
            self.assertFalse(seen.flags.writeable)
            del seen
            reader.flush_releases()

    def test_arrays_without_a_type_here_cross_as_bytes(self):
        writer, reader = pair()
        for source in (numpy.arange(3, dtype=">i4"),
                       numpy.zeros(3, "i4,f8"), numpy.zeros(3, "S5")):
            view = reader.view(writer.put(source))
            self.assertEqual((view.dtype, bytes(view)),
                             ("u8", source.tobytes()))
            del view
            reader.flush_releases()

    def test_arrays_that_are_not_contiguous_are_refused(self):
        writer, reader = pair()
        for source in (numpy.zeros((4, 4)).T, numpy.zeros(8)[::2]):
            with self.assertRaises((ValueError, BufferError)):
                writer.put(source)

    def test_an_array_from_empty_is_pickled_without_a_copy(self):
        writer, reader = pair(slots=1)
        array = writer.empty((4, 4), numpy.float32)
        array[:] = numpy.arange(16).reshape(4, 4)
        seen = pickle.loads(pickled(writer, [array, numpy.ones(3)]))
        self.assertTrue((seen[0] == array).all())
        self.assertFalse(seen[0].flags.writeable)
        self.assertEqual(writer.stats()["puts"], 1)
        self.assertEqual(seen[1].sum(), 3)

    def test_numpy_takes_dlpack_only_of_writable_memory(self):
        writer, reader = pair(writable=True)
        seen = numpy.from_dlpack(reader.view(writer.put(b"abc")))
        self.assertEqual(bytes(seen), b"abc")
        writer, reader = pair()
        view = reader.view(writer.put(b"abc"))
        try:
            seen = numpy.from_dlpack(view)
            # From 2.1 on it can be told.
            self.assertFalse(seen.flags.writeable)
        except BufferError:
            self.assertLess(numpy.lib.NumpyVersion(numpy.__version__),
                            "2.1.0")


class Processes(Case):
    def test_five_processes_with_tensors(self):
        for method in ("spawn", "fork"):
            writer = arena(slots=2, seats=4)
            workers = [Worker(method) for _ in range(4)]
            try:
                for worker in workers:
                    worker.call(attach, writer.handle)
                for seed in range(5):
                    torch.manual_seed(seed)
                    tensor = torch.rand(3, 1000)
                    message = pickled(writer, {"pixels": tensor,
                                               "step": seed})
                    for worker in workers:
                        worker.start(check, message, seed)
                    for worker in workers:
                        self.assertTrue(worker.result())
                    self.assertEqual(writer.declines, {})
                    await_free(writer)
            finally:
                for worker in workers:
                    worker.kill()

    def test_a_worker_writes_in_place_and_dies(self):
        writer = arena()
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle)
            worker.start(write_in_place, pickled(writer, torch.rand(64)))
            worker.process.join(60)
            self.assertEqual(worker.process.exitcode, -11)
        await_free(writer)

    def test_workers_of_a_writable_arena_write_in_place(self):
        writer = arena(writable=True)
        with Worker("spawn") as worker:
            worker.call(attach, writer.handle)
            self.assertEqual(
                worker.call(write_in_place, pickled(writer, torch.rand(64))),
                64 * 3)


def attach(state, handle):
    state.reader = tensorarena.Reader(handle)


def check(state, message, seed):
    seen = pickle.loads(message)
    torch.manual_seed(seed)
    return seen["step"] == seed and torch.equal(seen["pixels"],
                                                torch.rand(3, 1000))


def write_in_place(state, message):
    import faulthandler
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.disable()
    return pickle.loads(message).fill_(3).sum().item()


if __name__ == "__main__":
    torch.manual_seed(1)
    main()
