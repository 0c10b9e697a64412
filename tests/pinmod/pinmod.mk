# SPDX-License-Identifier: MIT
#
# A stand-in for a driver that pins user memory: a kernel module that only ever
# gets into test machines.

$(BUILD)/pinmod-%/tensorarena_pin.ko: tests/pinmod/Kbuild \
		tests/pinmod/tensorarena_pin.c tests/pinmod/pin.h \
		tests/pinmod/build $(BUILD)/kernel-% | deps-module
	tests/pinmod/build $* $(@D)

.PRECIOUS: $(BUILD)/pinmod-%/tensorarena_pin.ko
