# SPDX-License-Identifier: MIT
#
# Style, and the second compiler.

#: make lint         checkpatch, coccicheck, clang-format, shellcheck, licences, clang
lint:
	@tests/check lint

suite-lint: | deps-lint deps-build+unit+python
	@tests/run-tap lint-style tests/lint/lint

.PHONY: lint suite-lint
