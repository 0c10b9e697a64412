# SPDX-License-Identifier: MIT
"""The C library, for what is compared with it in the same run."""

import ctypes
import os

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                     "build")
ENGINES = {"auto": 0, "device": 1, "embedded": 2}


class Options(ctypes.Structure):
    """struct ta_options"""

    _fields_ = [("slot_bytes", ctypes.c_uint64), ("slots", ctypes.c_uint32),
                ("seats", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("engine", ctypes.c_uint32), ("node", ctypes.c_int32),
                ("reserved", ctypes.c_uint32),
                ("socket_path", ctypes.c_char_p)]


class Library:
    """The C library, used by itself: a writer with a slot, and its reader.

    TENSORARENA_LIBRARY names it, if it is not in build.
    """

    def __init__(self, nbytes, engine):
        self.nbytes = nbytes
        self.ta = ctypes.CDLL(os.environ.get(
            "TENSORARENA_LIBRARY", os.path.join(BUILD, "libtensorarena.so")))
        self.ta.ta_handle.restype = ctypes.c_char_p
        options = Options()
        self.ta.ta_options_init(ctypes.byref(options))
        options.slots, options.seats, options.slot_bytes = 1, 1, nbytes
        options.engine = ENGINES[engine]
        self.writer, self.reader = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("ta_create", ctypes.byref(options),
                  ctypes.byref(self.writer), None, 0)
        self.call("ta_attach", self.ta.ta_handle(self.writer),
                  ctypes.byref(self.reader))

    def call(self, name, *arguments):
        error = getattr(self.ta, name)(*arguments)
        if error:
            raise OSError(-error, name)

    def put(self, source):
        self.call("ta_put", self.writer,
                  (ctypes.c_char * self.nbytes).from_buffer(source),
                  ctypes.c_size_t(self.nbytes), None, None)

    def release(self):
        view = ctypes.c_void_p()
        self.call("ta_next", self.reader, 10000, ctypes.byref(view))
        self.call("ta_release", view)
