# SPDX-License-Identifier: MIT
#
# The examples, as those who read them would run them, on either engine.

EXAMPLES_TEST := tests/examples/examples_test.sh
EXAMPLE_IN_PYTHON := examples/engine_and_workers.py

HOST_TESTS += $(EXAMPLES_TEST)
GUEST_TESTS += $(EXAMPLES_TEST)
GUEST_FILES += $(EXAMPLE):/build/examples/$(notdir $(EXAMPLE)) \
	$(EXAMPLE_IN_PYTHON):/$(EXAMPLE_IN_PYTHON)

$(EXAMPLES_TEST): $(EXAMPLE) | python deps-python

programs: $(EXAMPLE)
