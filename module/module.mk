# SPDX-License-Identifier: MIT
#
# The kernel module.  Its objects are listed in Kbuild; here it is built, with
# every warning an error, for one of the kernels in tests/vm/kernels.

KERNELS := $(shell sed '/^\#/d;s/[[:space:]].*//' tests/vm/kernels)
KERNEL ?= 6.12
ifeq ($(filter $(KERNEL),$(KERNELS)),)
$(error KERNEL=$(KERNEL) is not one of: $(KERNELS))
endif
MODULE_SOURCES := Kbuild $(wildcard module/*.[ch] uapi/*.h)

#: make module       tensorarena.ko for KERNEL=6.1 or 6.12 (Debian's packages)
module: $(BUILD)/module-$(KERNEL)/tensorarena.ko

$(BUILD)/module-%/tensorarena.ko: $(MODULE_SOURCES) tests/vm/build-module \
		| deps-module
	tests/vm/build-module $* $(@D)

.PHONY: module
.PRECIOUS: $(BUILD)/module-%/tensorarena.ko
