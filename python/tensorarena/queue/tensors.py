# SPDX-License-Identifier: MIT
"""Tensors out of band: what the arena declines, or where there is none.

PyTorch's own pickling copies them several times.
"""

from __future__ import annotations

import pickle
from typing import Any

import torch

from ..torch import _DTYPES, _NAMES, MIN_BYTES, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def reducers() -> dict[type, Callable[[Any], Any]]:
    """For a dispatch_table."""
    return {torch.Tensor: _reduce, torch.nn.Parameter: _reduce}


def _reduce(tensor: torch.Tensor) -> Any:
    if tensor.numel() * tensor.element_size() < MIN_BYTES or why_not(tensor):
        return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    flat = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    rebuild = _tensor if type(tensor) is torch.Tensor else _parameter
    return rebuild, (pickle.PickleBuffer(flat), _NAMES[tensor.dtype],
                     tuple(tensor.shape))


def _tensor(data: Any, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.frombuffer(data, dtype=torch.uint8).view(
        _DTYPES[dtype]).view(shape)


def _parameter(data: Any, dtype: str, shape: tuple[int, ...]
               ) -> torch.nn.Parameter:
    return torch.nn.Parameter(_tensor(data, dtype, shape), requires_grad=False)
