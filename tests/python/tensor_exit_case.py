#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Ends while tensors are still alive everywhere; see tensors_test.py."""

import sys

import torch

from harness import arena
import tensorarena
import tensorarena.torch

writer = arena(slots=4)
reader = tensorarena.Reader(writer.handle)
tensors = [tensorarena.torch.view(reader, tensorarena.torch.put(
    writer, torch.rand(64))) for _ in range(3)]
sys.modules["held"] = tensors[0][3:]
module = torch.nn.Linear(1, 1)
module.weight = torch.nn.Parameter(tensors[1], requires_grad=False)
torch.held = tensors[2].numpy()
loan = writer.empty((64,), torch.float32)
print("alive")
