#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The tests that need no PyTorch, on an extension with AddressSanitizer and
# UndefinedBehaviorSanitizer inside.  What the interpreter itself does not free
# at its end is none of our business, so leaks are left to leak_test.py.

cd "$(dirname "$0")/../.." || exit 1
TENSORARENA_PYTHON=build/python-asan
LD_PRELOAD=$(${CC:-gcc} -print-file-name=libasan.so)
ASAN_OPTIONS=detect_leaks=0:handle_segv=0
UBSAN_OPTIONS=print_stacktrace=1
PYTHONMALLOC=malloc
export TENSORARENA_PYTHON ASAN_OPTIONS UBSAN_OPTIONS PYTHONMALLOC

status=0
for name in core fork lifetime pickling processes ring stream words; do
	echo "# $name"
	env LD_PRELOAD="$LD_PRELOAD" /usr/bin/python3 -B \
		"tests/python/${name}_test.py" || status=1
done
exit $status
