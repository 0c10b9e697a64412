# SPDX-License-Identifier: MIT
#
# The library's binary interface against the one that was last accepted.

ABI_FILE := tests/abi/libtensorarena.abi
ABI_OPTIONS := --headers-dir lib/include --drop-private-types \
	--exported-interfaces-only --no-corpus-path --no-comp-dir-path \
	--no-show-locs --type-id-style hash

#: make check-abi    the library's ABI against tests/abi/libtensorarena.abi
check-abi:
	@tests/check abi

suite-abi: $(LIB_SHARED) | deps-abi
	@tests/run-tap abi-library tests/abi/compare

# After an addition; a change of what was released takes another soname.
#: make update-abi   accept the library's ABI as it is now
update-abi: $(LIB_SHARED) | deps-abi
	abidw $(ABI_OPTIONS) $(LIB_SHARED) | \
		sed '1a <!-- SPDX-License-Identifier: MIT -->' >$(ABI_FILE)

.PHONY: check-abi suite-abi update-abi
