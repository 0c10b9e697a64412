# SPDX-License-Identifier: MIT
"""The pickler of the messages that a queue with an arena sends.  Needs PyTorch.

It is kept from message to message: what it costs to make is more than most of
them cost to pickle.
"""

from __future__ import annotations

import copyreg
import pickle

from . import _core, torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._vllm_queue import Message, Outlet


class _Sink:
    """Where a message goes."""

    file: Any = None
    buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None

    def write(self, data: bytes) -> object:
        return self.file.write(data)

    def keep_in(self, buffer: pickle.PickleBuffer) -> Any:
        return self.buffer_callback is None or self.buffer_callback(buffer)


class MessagePickler(torch.ArenaPickler):
    """An ArenaPickler that nothing of the arena's makes fail."""

    def __init__(self, outlet: Outlet) -> None:
        self._sink = _Sink()
        super().__init__(self._sink, outlet.writer, min_bytes=outlet.min_bytes,
                         buffer_callback=self._sink.keep_in)
        self._message: Message | None = None
        self._seen: Mapping[type, Any] | None = None

    def start(self, message: Message, file: Any,
              buffer_callback: Callable[..., Any] | None) -> None:
        """For one message.  The queue may set the dispatch_table now."""
        self._message = message
        self._sink.file = file
        self._sink.buffer_callback = buffer_callback
        self.dispatch_table = copyreg.dispatch_table

    def finish(self) -> None:
        """Keeps nothing of the message."""
        self._message = None
        self._sink.file = self._sink.buffer_callback = None
        self.begin()

    def _divert_by_table(self) -> None:
        table = getattr(self, "dispatch_table", None)
        if table is self._table:
            return
        # A queue makes a table for each message, and always the same.
        if self._seen is not None and table == self._seen:
            self.dispatch_table = self._table
            return
        super()._divert_by_table()
        self._seen = None if table is None else dict(table)

    def dump(self, obj: Any) -> None:
        super().dump(obj)
        if self._message is not None:
            self._message.dumped(self)

    def _divert(self, tensor: Any,
                rebuild: Callable[[_core.View], Any]) -> Any:
        outlet = self._message.outlet if self._message is not None else None
        if outlet is None or not outlet.on:
            return None
        try:
            reduced = super()._divert(tensor, rebuild)
        except Exception as error:
            outlet.stop(f"it fails: {error}")
            return None
        if reduced is None:
            outlet.declined(tensor.numel() * tensor.element_size())
        return reduced
