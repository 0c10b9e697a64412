# SPDX-License-Identifier: MIT
#
# Tests of the tarena command.  Its parts are tested with the sanitizers built
# in, each with what it needs of the others and nothing else; the command as a
# whole is tested as it is.

TOOLS_TESTS := $(patsubst tests/tools/%_test.c,$(BUILD)/tests/tools-%, \
	$(wildcard tests/tools/*_test.c))
TOOLS_SCRIPTS := $(wildcard tests/tools/*_test.sh)
MAKE_JPEG := $(BUILD)/tests/make-jpeg
BUSY_ARENA := $(BUILD)/tests/busy_arena

HOST_TESTS += $(TOOLS_TESTS) $(TOOLS_SCRIPTS)

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
san = $(patsubst %,$(BUILD)/obj-san/%.o,$(1))

TOOLS_FRONT := $(call san,lib/tensor tests/tools/files $(addprefix tools/, \
	checksum complain input input_file input_jpeg input_npy input_raw \
	median npy number preprocess preprocess_plan preprocess_resample stop))

$(addprefix $(BUILD)/tests/tools-,jpeg npy parts preprocess): $(TOOLS_FRONT)
$(BUILD)/tests/tools-crew: $(call san,$(addprefix tools/, \
	broadcast_crew broadcast_spawn complain stop))
$(BUILD)/tests/tools-round: $(call san,$(addprefix tools/, \
	broadcast_baseline broadcast_round checksum complain stop))

$(BUILD)/tests/tools-show: $(call san,$(addprefix tools/, \
	arenas_figure metrics_format top_lines))

#: make tools-tests  only build the tests of the command
tools-tests: $(TOOLS_TESTS) $(MAKE_JPEG)

$(BUILD)/obj-san/%.o: %.c | deps-unit deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -pthread -c -o $@ $<

$(TOOLS_TESTS): $(BUILD)/tests/tools-%: $(BUILD)/obj-san/tests/tools/%_test.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -pthread -o $@ $^ -lcmocka \
		-ljansson -ljpeg -lxxhash -lm

$(MAKE_JPEG): tests/tools/make_jpeg.c tests/tools/files.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljpeg

# An arena for the others to look at.
$(BUSY_ARENA): tests/tools/busy_arena.c $(BUILD)/libtensorarena.so | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ \
		$< -L$(BUILD) -ltensorarena

$(TOOLS_SCRIPTS): $(BUILD)/tarena $(MAKE_JPEG) $(BUSY_ARENA) | deps-unit

.PHONY: tools-tests
.SECONDARY: $(TOOLS_FRONT)
