# SPDX-License-Identifier: MIT
#
# What the documents say is so.

HOST_TESTS += $(wildcard tests/docs/*_test.sh tests/docs/*_test.py)

tests/docs/man_test.sh tests/docs/drawing_test.sh: | deps-docs
tests/docs/man_test.sh tests/docs/commands_test.sh: $(BUILD)/tarena
tests/docs/commands_test.sh: $(BUILD)/tests/make-jpeg
