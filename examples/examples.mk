# SPDX-License-Identifier: MIT
#
# The first code to read.  Built as a user's would be: with what pkg-config says
# and nothing of this tree's own.

EXAMPLE := $(BUILD)/examples/engine_and_workers

#: make examples     an engine and four workers, in C, into build/examples
examples: $(EXAMPLE)

$(EXAMPLE): examples/engine_and_workers.c $(BUILD)/libtensorarena.so $(LIB_PC) \
		| deps-unit
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ $< \
		$$(PKG_CONFIG_PATH=$(BUILD) pkg-config --cflags --libs \
			libtensorarena)

.PHONY: examples
