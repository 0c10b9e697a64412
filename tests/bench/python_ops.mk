# SPDX-License-Identifier: MIT

#: make bench-python    what the Python package costs, beside the C library
bench-python: python lib
	@tests/bench/python_ops.py

.PHONY: bench-python
