# SPDX-License-Identifier: MIT
#
# Not part of `make check`: it takes root and a large package.

#: make check-containers what docs/containers.md says, in podman's containers
check-containers:
	@tests/check containers

suite-containers: $(BUILD)/tarena $(BUILD)/tests/busy_arena \
		| deps-unit+containers
	@tests/run-tap containers-podman tests/containers/run

.PHONY: check-containers suite-containers
