# SPDX-License-Identifier: MIT
#
# The Debian packages, from a bare system to a purged one.  Not part of `make
# check`: it takes root, the network and a while.

#: make check-packages the packages in a bare Debian 12, in a chroot and a VM
check-packages:
	@tests/check packages

suite-packages: $(BUILD)/vm/poweroff $(BUILD)/tarena \
		$(BUILD)/tests/busy_arena $(PHOTO) \
		| deps-deb+chroot+vm
	@TEST_LIMIT=5400 tests/run-tap packages-debian tests/packages/run

.PHONY: check-packages suite-packages

HOST_TESTS += tests/packages/install_test.sh

tests/packages/install_test.sh: $(BUILD)/tarena $(LIB_PC) | python
