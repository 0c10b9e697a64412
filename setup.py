# SPDX-License-Identifier: MIT
"""The extension, with the library inside; see python/python.mk.

Everything else is in pyproject.toml.
"""

import re
from glob import glob

from setuptools import Extension, setup


def static_libraries():
    """What the library needs of others, as the Makefile has it."""
    with open("lib/lib.mk") as makefile:
        found = re.search(r"^LIB_LIBS\s*:?=\s*(.*)$", makefile.read(),
                          re.MULTILINE)
    return found.group(1).split() if found else []


setup(
    ext_modules=[
        Extension(
            "tensorarena._core",
            sources=sorted(glob("python/src/*.c") + glob("lib/*.c") +
                           ["module/slots.c"]),
            depends=sorted(glob("python/src/*.h") + glob("lib/*.h") +
                           glob("lib/include/*.h") + glob("uapi/*.h")),
            include_dirs=[".", "lib/include"],
            define_macros=[("_GNU_SOURCE", None)],
            extra_compile_args=["-std=gnu11", "-pthread",
                                "-fvisibility=hidden"],
            extra_link_args=["-pthread", "-Wl,-Bstatic", *static_libraries(),
                             "-Wl,-Bdynamic"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
