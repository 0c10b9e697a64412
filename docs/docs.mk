# SPDX-License-Identifier: MIT
#
# What in the documents is made by a command.

#: make docs         the drawing and the captures in docs/
docs: docs/architecture.svg docs/top.md

docs/architecture.svg: docs/architecture.dot | deps-docs
	dot -Tsvg $< | sed '2i <!-- SPDX-License-Identifier: MIT -->' >$@

docs/top.md: docs/capture-top $(BUILD)/tarena $(BUILD)/tests/busy_arena \
		| deps-unit
	docs/capture-top >$@

.PHONY: docs
