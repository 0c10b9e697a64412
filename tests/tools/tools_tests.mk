# SPDX-License-Identifier: MIT
#
# Tests of the tarena command.  Its front ends, which read what strangers
# wrote, are tested with the sanitizers built in; the command as a whole is
# tested as it is.

TOOLS_TESTS := $(patsubst tests/tools/%_test.c,$(BUILD)/tests/tools-%, \
	$(wildcard tests/tools/*_test.c))
TOOLS_SCRIPTS := $(wildcard tests/tools/*_test.sh)
MAKE_JPEG := $(BUILD)/tests/make-jpeg

HOST_TESTS += $(TOOLS_TESTS) $(TOOLS_SCRIPTS)

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
TOOLS_FRONT := checksum complain input input_file input_jpeg input_npy \
	input_raw median npy number preprocess preprocess_plan \
	preprocess_resample stop
TOOLS_SAN := $(patsubst %,$(BUILD)/obj-san/tools/%.o,$(TOOLS_FRONT)) \
	$(BUILD)/obj-san/lib/tensor.o $(BUILD)/obj-san/tests/tools/files.o

#: make tools-tests  only build the tests of the command
tools-tests: $(TOOLS_TESTS) $(MAKE_JPEG)

$(BUILD)/obj-san/%.o: %.c | deps-unit deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -c -o $@ $<

$(TOOLS_TESTS): $(BUILD)/tests/tools-%: $(BUILD)/obj-san/tests/tools/%_test.o \
		$(TOOLS_SAN)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ $^ -lcmocka -ljpeg \
		-lxxhash -lm

$(MAKE_JPEG): tests/tools/make_jpeg.c tests/tools/files.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $^ -ljpeg

$(TOOLS_SCRIPTS): $(BUILD)/tarena $(MAKE_JPEG)

.PHONY: tools-tests
.SECONDARY: $(TOOLS_SAN)
