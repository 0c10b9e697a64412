# SPDX-License-Identifier: MIT
#
# QEMU's instruction counter makes the guest's clock tick once an instruction,
# so what the program prints as nanoseconds are instructions, the same on every
# host.

#: make bench-module what ioctls of the module cost, in instructions
bench-module: $(BUILD)/module-$(KERNEL)/tensorarena.ko $(BUILD)/vm/poweroff \
		$(BUILD)/selftests/cost | deps-vm
	@rm -f $(RESULTS)/vm-$(KERNEL)-cost.tap
	@VM_CPUS=1 VM_ACCEL=tcg VM_ARGS='-icount shift=0,sleep=off' \
		tests/vm/run-tests $(KERNEL) $(BUILD)/selftests/cost --
	@sed -n 's/^# *\(.*\) ns$$/\1 instructions/p' \
		$(RESULTS)/vm-$(KERNEL)-cost.tap

.PHONY: bench-module
