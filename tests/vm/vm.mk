# SPDX-License-Identifier: MIT
#
# The real module in a virtual machine: QEMU without KVM, Debian's kernels by
# package or those of tests/debug, nothing installed or loaded on the host.

VM := $(BUILD)/vm

#: make check-vm     the real module in a virtual machine, KERNEL=6.1, newest, uml...
check-vm:
	@tests/check vm-$(KERNEL)

$(VM)/%: tests/vm/%.c | deps-vm
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -static -o $@ $<

# VM_SETTINGS_, GUEST_TESTS_ and BARE_TESTS_KERNEL are a kernel's own.
$(addprefix suite-vm-,$(KERNELS) $(DEBUG_KERNELS)): suite-vm-%: \
		$(BUILD)/module-%/tensorarena.ko $(VM)/poweroff \
		$(GUEST_TESTS) $(BARE_TESTS) | deps-vm
	@GUEST_FILES='$(GUEST_FILES)' $(VM_SETTINGS_$*) tests/vm/run-tests $* \
		$(GUEST_TESTS) $(GUEST_TESTS_$*) -- \
		$(BARE_TESTS) $(BARE_TESTS_$*)

#: make demo-vm      the main job through the real /dev/tensorarena, in a VM
demo-vm: $(BUILD)/module-$(KERNEL)/tensorarena.ko $(TARENA) $(PHOTO) \
		$(VM)/poweroff $(VM)/hold | deps-vm
	@mkdir -p $(VM)/demo-$(KERNEL)
	tests/vm/make-image $(KERNEL) $(VM)/demo-$(KERNEL) tests/vm/demo-init \
		$(VM)/hold:/bin/hold $(TARENA):/bin/tarena $(PHOTO):/photo.jpg
	VM_MEMORY=3G tests/vm/run-vm $(VM)/demo-$(KERNEL)

.PHONY: check-vm demo-vm $(addprefix suite-vm-, \
	$(KERNELS) $(DEBUG_KERNELS))
