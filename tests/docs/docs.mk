# SPDX-License-Identifier: MIT
#
# What the documents say is so.

HOST_TESTS += tests/docs/abi_test.sh tests/docs/man_test.sh

tests/docs/man_test.sh: | deps-docs
