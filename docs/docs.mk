# SPDX-License-Identifier: MIT
#
# What in the documents is made by a command.

#: make docs         the drawing, the captures and the list of commands in docs/
docs: docs/architecture.svg docs/top.md docs/commands.md

docs/architecture.svg: docs/architecture.dot | deps-docs
	dot -Tsvg $< | sed '2i <!-- SPDX-License-Identifier: MIT -->' >$@

docs/top.md: docs/capture-top $(BUILD)/tarena $(BUILD)/tests/busy_arena \
		| deps-unit
	docs/capture-top >$@

docs/commands.md: docs/list-commands tests/docs/blocks \
		$(filter-out docs/commands.md docs/top.md,$(wildcard *.md docs/*.md man/*))
	docs/list-commands >$@

.PHONY: docs
