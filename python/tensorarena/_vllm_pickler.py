# SPDX-License-Identifier: MIT
"""The pickler of a message that a queue with an arena sends.  Needs PyTorch."""

from __future__ import annotations

from . import _core, torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._vllm_queue import Message


class MessagePickler(torch.ArenaPickler):
    """An ArenaPickler that nothing of the arena's makes fail.

    As of a pickle.Pickler, its dispatch_table may be set before dump().
    """

    def __init__(self, message: Message, file: Any, protocol: int | None,
                 buffer_callback: Callable[..., Any] | None) -> None:
        super().__init__(file, message.outlet.writer, protocol,
                         min_bytes=message.outlet.min_bytes,
                         buffer_callback=buffer_callback)
        self._message = message

    def dump(self, obj: Any) -> None:
        table = getattr(self, "dispatch_table", None)
        if table is not None:
            self._callers = table
        super().dump(obj)
        self._message.dumped(self)

    def _divert(self, tensor: Any,
                rebuild: Callable[[_core.View], Any]) -> Any:
        outlet = self._message.outlet
        if not outlet.on:
            return None
        try:
            reduced = super()._divert(tensor, rebuild)
        except Exception as error:
            outlet.stop(f"it fails: {error}")
            return None
        if reduced is None:
            outlet.declined(tensor.numel() * tensor.element_size())
        return reduced
