# SPDX-License-Identifier: MIT
#
# The kernel module.  Its objects are listed in Kbuild; here it is built, with
# every warning an error, for one of the kernels in tests/vm/kernels or
# tests/debug/kernels.

KERNELS := $(shell awk '!/^\#/ && NF < 4 { print $$1 }' tests/vm/kernels)
# This machine's own compiler is good for these.
HOST_KERNELS := $(shell awk '!/^\#/ && NF == 2 { print $$1 }' tests/vm/kernels)
ARM64_KERNELS := $(shell awk '$$4 == "arm64" { print $$1 }' tests/vm/kernels)
DEBUG_KERNELS := $(basename $(notdir $(wildcard tests/debug/kernels/*.config)))
ALL_KERNELS := $(KERNELS) $(ARM64_KERNELS) $(DEBUG_KERNELS)
KERNEL ?= 6.12
ifeq ($(filter $(KERNEL),$(ALL_KERNELS)),)
$(error KERNEL=$(KERNEL) is not one of: $(ALL_KERNELS))
endif
MODULE_SOURCES := Kbuild module/features.sh $(wildcard module/*.[ch] uapi/*.h)

#: make module       tensorarena.ko for KERNEL=6.1, 6.12 or newest (Debian's)
module: $(BUILD)/module-$(KERNEL)/tensorarena.ko

$(BUILD)/module-%/tensorarena.ko: $(MODULE_SOURCES) tests/vm/build-module \
		$(BUILD)/kernel-% | deps-module
	tests/vm/build-module $* $(@D)

$(ARM64_KERNELS:%=$(BUILD)/module-%/tensorarena.ko): | deps-arm64

# Where the kernel is; changes when the archive has a later one.
$(BUILD)/kernel-%: always
	@mkdir -p $(@D)
	@dir=$$(tests/vm/fetch-kernel $*) && \
		echo "$$dir" | cmp -s - $@ || echo "$$dir" >$@

always:

.PHONY: always module
.PRECIOUS: $(BUILD)/module-%/tensorarena.ko $(BUILD)/kernel-%
