# SPDX-License-Identifier: MIT
#
# The library compiled for 64-bit Arm, and what of it is written for that
# processor alone run in an emulator of one process.

ARM64 := $(BUILD)/arm64
ARM64_CC := aarch64-linux-gnu-gcc
ARM64_AR := aarch64-linux-gnu-ar
ARM64_OBJECTS := $(LIB_SOURCES:%.c=$(ARM64)/obj/%.o)
ARM64_TEST_OBJECTS := $(ARM64)/obj/tests/arm64/copy.o \
	$(ARM64)/obj/tests/lib/copy_check.o

$(ARM64)/obj/%.o: %.c | deps-arm64
	@mkdir -p $(@D)
	$(ARM64_CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

$(ARM64)/libtensorarena.a: $(ARM64_OBJECTS)
	rm -f $@
	$(ARM64_AR) rcs $@ $^

$(ARM64)/copy: $(ARM64_TEST_OBJECTS) $(ARM64)/libtensorarena.a
	$(ARM64_CC) $(CFLAGS) $(LDFLAGS) -static -pthread -o $@ $^

#: make check-arm64  the library built for 64-bit Arm, its copy in an emulator
check-arm64:
	@tests/check arm64

suite-arm64: $(ARM64)/copy
	@tests/run-tap arm64-copy qemu-aarch64-static $(ARM64)/copy

.PHONY: check-arm64 suite-arm64
