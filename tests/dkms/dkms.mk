# SPDX-License-Identifier: MIT
#
# The module by way of dkms, for kernels that do not run here.

#: make check-dkms   dkms add, build, install, remove for each kernel
check-dkms:
	@tests/check dkms

suite-dkms: | deps-dkms deps-module
	$(foreach k,$(HOST_KERNELS),@tests/run-tap dkms-$(k) \
		tests/dkms/dkms-cycle $(k)$(newline))

.PHONY: check-dkms suite-dkms
