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
MAKE_SAFETENSORS := $(BUILD)/tests/make-safetensors

HOST_TESTS += $(TOOLS_TESTS) $(TOOLS_SCRIPTS)

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
san = $(patsubst %,$(BUILD)/obj-san/%.o,$(1))

TOOLS_FRONT := $(call san,lib/tensor tests/tools/files $(addprefix tools/, \
	checksum complain input input_file input_jpeg input_npy input_raw \
	input_safetensors median npy number preprocess preprocess_plan \
	preprocess_resample safetensors stop))

$(addprefix $(BUILD)/tests/tools-,jpeg npy parts preprocess safetensors): \
	$(TOOLS_FRONT)
$(BUILD)/tests/tools-crew: $(call san,$(addprefix tools/, \
	broadcast_bytes broadcast_collect broadcast_crew broadcast_gather \
	broadcast_spawn \
	complain stop))
$(BUILD)/tests/tools-round: $(call san,$(addprefix tools/, \
	broadcast_baseline broadcast_round checksum complain stop))

$(BUILD)/tests/tools-show: $(call san,$(addprefix tools/, \
	arenas_figure metrics_format top_lines))

#: make tools-tests  only build the tests of the command
tools-tests: $(TOOLS_TESTS) $(MAKE_JPEG) $(MAKE_SAFETENSORS)

$(BUILD)/obj-san/%.o: %.c | deps-unit deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -pthread -c -o $@ $<

$(TOOLS_TESTS): $(BUILD)/tests/tools-%: $(BUILD)/obj-san/tests/tools/%_test.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -pthread -o $@ $^ -lcmocka \
		-ljansson -ljpeg -lxxhash -lm

$(MAKE_JPEG): tests/tools/make_jpeg.c tests/tools/files.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -ljpeg

# An arena for the others to look at.
$(BUSY_ARENA): tests/tools/busy_arena.c $(BUILD)/libtensorarena.so | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ \
		$< -L$(BUILD) -ltensorarena

$(MAKE_SAFETENSORS): tests/tools/make_safetensors.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -ljansson

$(TOOLS_SCRIPTS): $(BUILD)/tarena $(MAKE_JPEG) $(MAKE_SAFETENSORS) \
		$(BUSY_ARENA) | deps-unit

tests/tools/tarena_bench_test.sh: $(STANDIN_LIBS)

.PHONY: tools-tests
.SECONDARY: $(TOOLS_FRONT)
