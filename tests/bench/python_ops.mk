# SPDX-License-Identifier: MIT

#: make bench-python    what the Python package costs, beside the C library
bench-python: python lib
	@tests/bench/python_ops.py

#: make bench-queue     the message queue with an arena and without
bench-queue: python lib
	@tests/bench/queue_ops.py

#: make bench-replay    requests with images, with an arena and without, on GPUs
bench-replay: python
	@$(GPU_PYTHON) tests/bench/replay.py

HOST_TESTS += tests/bench/replay_test.py

tests/bench/replay_test.py: | python deps-python-test

.PHONY: bench-python bench-queue bench-replay
