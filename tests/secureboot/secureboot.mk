# SPDX-License-Identifier: MIT
#
# The module on a machine with Secure Boot: Debian's own chain from the firmware to
# the kernel, in QEMU.  Not part of `make check`: some minutes.

#: make check-secure-boot signed and not, under Secure Boot, with a key of dkms's
check-secure-boot:
	@tests/check secure-boot-$(KERNEL)

SECURE_BOOT_DEPS := dkms+kernel+secure-boot+vm

$(addprefix suite-secure-boot-,$(HOST_KERNELS)): suite-secure-boot-%: \
		$(BUILD)/module-%/tensorarena.ko $(BUILD)/vm/poweroff $(BUILD)/tarena \
		| deps-$(SECURE_BOOT_DEPS)
	@TEST_LIMIT=2400 tests/run-tap secure-boot-$* tests/secureboot/run $*

.PHONY: check-secure-boot $(addprefix suite-secure-boot-,$(HOST_KERNELS))
