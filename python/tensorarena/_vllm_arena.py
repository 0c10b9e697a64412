# SPDX-License-Identifier: MIT
"""What vLLM's message queues are given: the settings, and the arena."""

from __future__ import annotations

import logging
import os

from . import _core
from ._arena import Reader, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import torch

SWITCH = "TENSORARENA_VLLM"
MIB = 1 << 20

# vLLM sets a handler on "vllm", which this one's lines reach.
logger = logging.getLogger("vllm.tensorarena")


class Settings:
    """What the environment says; see docs/vllm.md.

    ValueError: a variable that has no meaning, named.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self.on = self._word("", ("0", "1"), "0") == "1"
        self.slots = self._number("_SLOTS", 8, 1, 256)
        self.slot_bytes = self._number("_SLOT_MB", 256, 1, 1 << 20) * MIB
        self.min_bytes = self._number("_MIN_MB", 8, 0, 1 << 20) * MIB
        self.min_readers = self._number("_MIN_READERS", 2, 1, 64)
        self.engine = self._word("_ENGINE", ("auto", "device", "embedded"),
                                 "auto")
        self.memory_check = self._word("_MEMORY_CHECK", ("0", "1"), "1") == "1"
        self.socket_dir = self._environ.get(SWITCH + "_SOCKET_DIR") or None

    def _word(self, name: str, words: tuple[str, ...], default: str) -> str:
        word = self._environ.get(SWITCH + name) or default
        if word not in words:
            raise ValueError(f"{SWITCH}{name} is {word!r}, not one of "
                             + ", ".join(words))
        return word

    def _number(self, name: str, default: int, least: int, most: int) -> int:
        text = self._environ.get(SWITCH + name) or str(default)
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"{SWITCH}{name} is {text!r}, not a number from "
                             f"{least} to {most}")
        return int(text)

    def options(self, number: int) -> dict[str, Any]:
        """For the Writer of this process's arena of that number."""
        options: dict[str, Any] = {"engine": self.engine,
                                   "memory_check": self.memory_check}
        if self.socket_dir is not None:
            options["socket_path"] = os.path.join(
                self.socket_dir, f"tensorarena-{os.getpid()}-{number}")
        return options


class _Named:
    """What vLLM takes for a multiprocessing.SharedMemory, to ask its name."""

    def __init__(self, name: str) -> None:
        self.name = name


class ShmTensorArena:
    """An arena with the shape of vLLM's own class of this name.

    Where vLLM has that class this one can stand in for it.  In a slot's place,
    where vLLM has its number, there is a ticket, as bytes: a stale one is
    refused, whatever the slot holds by then.

    n_reader: local readers; the arena has as many seats
    slot_bytes, n_slots: largest tensor, and how many may be in flight
    name: None creates the arena; or the last item of handle(), to attach
    reader_rank: not used, the seat is found when attaching
    options: of tensorarena.Writer

    tensorarena.Error: it cannot be created or attached to.
    """

    def __init__(self, n_reader: int, slot_bytes: int, n_slots: int,
                 name: str | None = None, reader_rank: int = -1,
                 **options: Any) -> None:
        self.n_reader = n_reader
        self.slot_bytes = slot_bytes
        self.n_slots = n_slots
        self.reader_rank = reader_rank
        self.total_bytes = slot_bytes * n_slots
        self.is_creator = name is None
        self.end: Writer | Reader
        if name is None:
            self.end = Writer(n_slots, slot_bytes, n_reader, **options)
        else:
            self.end = Reader(name)
        # The handle, which is a secret.
        self.shared_memory = _Named(self.end.handle)

    @property
    def writer(self) -> Writer:
        """TypeError: this end reads."""
        if not isinstance(self.end, Writer):
            raise TypeError("a reader cannot write to an arena")
        return self.end

    @property
    def reader(self) -> Reader:
        """TypeError: this end writes."""
        if not isinstance(self.end, Reader):
            raise TypeError("a writer cannot read from its arena")
        return self.end

    def handle(self) -> tuple[int, int, int, str]:
        """What a reader's constructor takes; a secret."""
        return (self.n_reader, self.slot_bytes, self.n_slots,
                self.shared_memory.name)

    def write_tensor(self, t: torch.Tensor) -> bytes | None:
        """Copies a tensor into a slot and publishes it.

        None: declined, never blocks; see writer.last_decline.
        """
        from . import torch as tensors

        ticket = tensors.put(self.writer, t)
        return None if ticket is None else bytes(ticket)

    def get_tensor(self, idx: bytes, nbytes: int | None = None,
                   dtype: torch.dtype | None = None,
                   shape: tuple[int, ...] | None = None) -> torch.Tensor:
        """The tensor that write_tensor() has returned idx for; read-only.

        nbytes, dtype, shape: not needed.  The ticket knows.
        """
        from . import torch as tensors

        return tensors.view(self.reader, _core.Ticket.from_bytes(idx))

    def schedule_release(self, obj: object, idx: bytes) -> None:
        """Nothing: a slot is released when nothing shares its memory any more,
        and the CUDA stream is done with it."""

    def flush_releases(self) -> None:
        """Releases what is due now rather than soon."""
        if isinstance(self.end, Reader):
            self.end.flush_releases()
