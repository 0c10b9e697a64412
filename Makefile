# SPDX-License-Identifier: MIT
#
# Everything is built into build/.  Each part has a fragment of its own, which
# adds to ALL and CHECKS; the targets are listed by `make help`.

BUILD := build
VERSION := 0.1.0

CC ?= gcc
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Werror
CPPFLAGS += -I. -Ilib/include -D_GNU_SOURCE
override CFLAGS += -std=gnu11 $(WARN) -MMD -MP

.DELETE_ON_ERROR:
.SUFFIXES:

all:

# An order-only prerequisite of what needs the packages of a group, or of several
# joined by +.  They are looked for once in a build directory, and again when the
# lists of packages change; so one that is taken to a machine without Debian's
# packages works there.  NO_DEPS=1 is for who sees to that himself, as packages'
# builders do.
DEPS := $(BUILD)/deps/$(firstword $(shell cksum <tools/install-deps))

deps-%: $(DEPS)/%
	@:

$(DEPS)/%:
	@[ -n '$(NO_DEPS)' ] || { tools/install-deps $(subst +, ,$*) && \
		mkdir -p $(@D) && touch $@; }

.PRECIOUS: $(DEPS)/%

include module/module.mk
include lib/lib.mk
include tools/tools.mk
include python/python.mk
include examples/examples.mk
include packaging/install.mk packaging/packages.mk docs/docs.mk
include tests/tests.mk

all: $(ALL)

clean:
	rm -rf $(BUILD)

help:
	@echo 'make all          library and tools, into build/'
	@sed -n 's/^#: *//p' $(MAKEFILE_LIST)

.PHONY: all clean help

-include $(shell find $(BUILD) \( -path $(BUILD)/deb -o -path $(BUILD)/rpm \) -prune -o -type f -name '*.d' -print 2>/dev/null)
