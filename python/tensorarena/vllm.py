# SPDX-License-Identifier: MIT
"""An arena for vLLM's own message queue; see docs/vllm.md.

vLLM loads register() in each of its processes, as a general plugin.  With
TENSORARENA_VLLM=1 in the environment it gives vLLM's MessageQueue an arena;
without, it does nothing at all.  Whatever is wrong, a version of vLLM that is
not as expected for one, is logged and leaves vLLM as it is.

Importing this module needs neither vLLM nor PyTorch.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import os
import pickle
import sys
import types
import weakref

from . import metrics
from ._vllm_arena import Settings, ShmTensorArena, logger
from ._vllm_queue import Outlet, PickleModule, message_of, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["ShmTensorArena", "register", "stats", "unregister", "why_not"]

MODULE = "vllm.distributed.device_communicators.shm_broadcast"
# Where a queue, and the handle that its readers get, keep what is ours.
ATTRIBUTE = "tensorarena"
# The switch of vLLM's own arena, where it has one.
OWN = "enable_shm_tensor_arena"

# By method, the parameters that are relied upon.
_PARAMETERS = {
    "__init__": ("self", "n_reader", "n_local_reader"),
    "create_from_handle": ("handle", "rank"),
    "wait_until_ready": ("self",),
    "acquire_write": ("self",),
    "enqueue": ("self", "obj"),
}
# What enqueue() has to refer to, for a message to be published in time.
_NAMES = {"pickle", "acquire_write", "n_local_reader", "n_remote_reader"}

_outlets: weakref.WeakSet[Outlet] = weakref.WeakSet()
_numbers = itertools.count()
# What was there before, by module; None: the method was inherited.
_originals: dict[Any, dict[str, Any]] = {}


def register() -> None:
    """vLLM's plugin.  Never raises; doing it again changes nothing."""
    try:
        settings = Settings()
        if not settings.on:
            return
        module = importlib.import_module(MODULE)
        if module in _originals:
            return
        reason = why_not(module)
        if reason:
            logger.warning("tensorarena: %s. vLLM goes on without it.", reason)
            return
        _wrap(module, settings)
    except Exception:
        logger.warning("tensorarena: vLLM goes on without it.", exc_info=True)


def unregister() -> None:
    """Undoes register(), for queues that are made from then on."""
    while _originals:
        module, originals = _originals.popitem()
        module.pickle = originals.pop("pickle")
        for name, original in originals.items():
            if original is None:
                delattr(module.MessageQueue, name)
            else:
                setattr(module.MessageQueue, name, original)


def stats() -> list[dict[str, Any]]:
    """What the arenas of the queues that this process writes to tell, in the
    order in which they were made: metrics.snapshot() of each, and
        "queue": its number in log lines and the label of its metrics
        "in_use": whether tensors go through it
    """
    found = []
    for outlet in sorted(_outlets, key=lambda outlet: outlet.number):
        seen = metrics.snapshot(outlet.writer)
        found.append({"queue": outlet.number, "in_use": outlet.on, **seen})
    return found


def why_not(module: Any) -> str | None:
    """What about vLLM's module of message queues is not as expected, or
    None."""
    where = f"{MODULE} is not of a shape that is known here: "
    queue = getattr(module, "MessageQueue", None)
    if not isinstance(queue, type):
        return where + "there is no class MessageQueue"
    if getattr(module, "pickle", None) is not pickle:
        return where + "it does not import pickle"
    for name, expected in _PARAMETERS.items():
        kind = (staticmethod if name == "create_from_handle"
                else types.FunctionType)
        method: Any = inspect.getattr_static(queue, name, None)
        if not isinstance(method, kind):
            return where + f"there is no {name}() of its kind"
        method = getattr(method, "__func__", method)
        if tuple(inspect.signature(method).parameters)[:len(expected)] \
                != expected:
            return where + f"{name}() takes other parameters"
    body = inspect.unwrap(queue.enqueue).__code__
    missing = _NAMES.difference(body.co_names)
    if missing or not {"dumps", "Pickler"}.intersection(body.co_names):
        return where + "enqueue() works in another way"
    return None


def _wrap(module: Any, settings: Settings) -> None:
    queue = module.MessageQueue
    _originals[module] = {name: queue.__dict__.get(name)
                          for name in _PARAMETERS}
    _originals[module]["pickle"] = module.pickle
    queue.__init__ = _init(queue.__init__, settings)
    queue.create_from_handle = staticmethod(
        _create_from_handle(queue.create_from_handle))
    queue.wait_until_ready = _wait_until_ready(queue.wait_until_ready)
    queue.acquire_write = _acquire_write(queue.acquire_write)
    queue.enqueue = _enqueue(queue.enqueue)
    module.pickle = PickleModule()
    logger.info("tensorarena: message queues with at least %d local readers "
                "get an arena.", settings.min_readers)


def _init(original: Callable[..., None],
          settings: Settings) -> Callable[..., None]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        outlet = _create(given.arguments, settings)
        if outlet is None:
            original(self, *args, **kwargs)
            return
        if OWN in given.arguments:
            given.arguments[OWN] = False
        original(*given.args, **given.kwargs)
        _bind(self, outlet)

    return __init__


def _create(arguments: Mapping[str, Any], settings: Settings) -> Outlet | None:
    """The arena of a queue that is being made, or None."""
    readers = arguments["n_local_reader"]
    if readers < settings.min_readers:
        return None
    number = next(_numbers)
    reason = _unsafe_platform()
    try:
        if reason is None:
            # Here rather than with the first message.
            importlib.import_module("._vllm_pickler", __package__)
            arena = ShmTensorArena(readers, settings.slot_bytes,
                                   settings.slots, **settings.options(number))
            return Outlet(arena, settings.min_bytes, number)
    except Exception as error:
        reason = str(error)
    logger.warning("Message queue %d with %d local readers has no arena: %s.",
                   number, readers, reason)
    return None


def _bind(queue: Any, outlet: Outlet) -> None:
    """Gives the readers the handle, in that of the queue."""
    try:
        setattr(queue.handle, ATTRIBUTE, outlet.arena.handle())
        setattr(queue, ATTRIBUTE, outlet)
        _outlets.add(outlet)
        metrics.register(outlet.writer, labels={"queue": str(outlet.number)})
    except Exception as error:
        outlet.stop(str(error))


def _unsafe_platform() -> str | None:
    """Why slots cannot be handed out to what vLLM runs on here, or None."""
    platforms: Any = sys.modules.get("vllm.platforms")
    is_cuda = getattr(getattr(platforms, "current_platform", None), "is_cuda",
                      None)
    if is_cuda is None or is_cuda():
        return None
    # On a CPU the model may write to its inputs, which are read-only.  When
    # other devices have read memory is not known here.
    return "vLLM's platform is not CUDA"


def _create_from_handle(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create_from_handle(handle: Any, rank: Any, *args: Any,
                           **kwargs: Any) -> Any:
        # Before the queue subscribes: see Outlet.start().
        arena = _attach(handle, rank)
        queue = original(handle, rank, *args, **kwargs)
        if arena is not None:
            setattr(queue, ATTRIBUTE, arena)
        return queue

    return create_from_handle


def _attach(handle: Any, rank: Any) -> ShmTensorArena | None:
    given: tuple[int, int, int, str] | None = getattr(handle, ATTRIBUTE, None)
    if given is None or rank not in handle.local_reader_ranks:
        return None
    try:
        return ShmTensorArena(*given, reader_rank=rank)
    except Exception as error:
        logger.warning("The arena of a message queue cannot be attached to, "
                       "and will not be used: %s.", error)
        return None


def _outlet_of(queue: Any) -> Outlet | None:
    found = queue.__dict__.get(ATTRIBUTE)
    return found if isinstance(found, Outlet) else None


def _wait_until_ready(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait_until_ready(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        outlet = _outlet_of(self)
        if outlet is not None:
            outlet.start()
        return result

    return wait_until_ready


def _acquire_write(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def acquire_write(self: Any, *args: Any, **kwargs: Any) -> Any:
        room = original(self, *args, **kwargs)
        message = message_of(self)
        return room if message is None else message.publishing(room)

    return acquire_write


def _enqueue(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def enqueue(self: Any, *args: Any, **kwargs: Any) -> Any:
        outlet = _outlet_of(self)
        if outlet is None or not outlet.on:
            return original(self, *args, **kwargs)
        return send(self, outlet,
                    functools.partial(original, self, *args, **kwargs))

    return enqueue


# Those of the parent are dead in a forked child.
os.register_at_fork(after_in_child=_outlets.clear)
