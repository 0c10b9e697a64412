# SPDX-License-Identifier: MIT
"""What the tests of tensorarena.vllm take for vLLM.

import_queues() gives the module of its message queues: vllm_standin.py, or where
VLLM_TREE names a checkout of vLLM, the module of that.  Of the rest of vLLM there
is only what that module imports, made here: it runs, and nothing else does.
"""

import importlib.util
import logging
import os
import socket
import sys
import tempfile
import types
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "vllm.distributed.device_communicators.shm_broadcast"
TREE = os.environ.get("VLLM_TREE")
# Of the tree itself, where it has them.
REAL = (NAME, "vllm.distributed.device_communicators.shm_tensor_arena")


def _module(name, **contents):
    """A module of ours, and the packages that it is in."""
    parent, _, last = name.rpartition(".")
    if parent and parent not in sys.modules:
        _module(parent)
    module = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(contents)
    sys.modules[name] = module
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


class Platform:
    """One with CUDA, says vLLM, so that tensors may go through an arena."""

    cuda = True

    def is_cuda(self):
        return self.cuda

    def is_cuda_alike(self):
        return False

    def device_count(self):
        return 1


def _free_port():
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return end.getsockname()[1]


def _logger(name):
    return logging.getLogger(name)


def _install_stubs():
    network = {
        "get_ip": lambda: "127.0.0.1",
        "get_open_port": _free_port,
        "get_open_zmq_inproc_path": lambda: f"inproc://{uuid.uuid4()}",
        "get_open_zmq_ipc_path":
            lambda: f"ipc://{tempfile.gettempdir()}/{uuid.uuid4()}",
        "is_valid_ipv6_address": lambda address: ":" in address,
    }
    _module("vllm")
    _module("vllm.envs", VLLM_RINGBUFFER_WARNING_INTERVAL=60,
            VLLM_USE_SPINLOOP_EXT=False, VLLM_SLEEP_WHEN_IDLE=False)
    _module("vllm.logger", init_logger=_logger)
    _module("vllm.platforms", current_platform=Platform())
    _module("vllm.utils", **network)
    _module("vllm.utils.network_utils", **network)
    _module("vllm.utils.cpu_resource_utils",
            check_cgroup_memory_available=lambda *args, **kwargs: None)
    _module("vllm.distributed.utils", StatelessProcessGroup=object,
            sched_yield=os.sched_yield)
    _module("vllm.distributed.device_communicators")


def _path(name):
    return os.path.join(TREE, *name.split(".")) + ".py"


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    parent, _, last = name.rpartition(".")
    setattr(sys.modules[parent], last, module)
    return module


def import_queues():
    """The module of the message queues, freshly imported."""
    for name in [n for n in sys.modules if n.split(".")[0] == "vllm"]:
        del sys.modules[name]
    _install_stubs()
    if TREE is None:
        return _load(NAME, os.path.join(HERE, "vllm_standin.py"))
    for name in reversed(REAL):
        if os.path.exists(_path(name)):
            _load(name, _path(name))
    return sys.modules[NAME]
