# SPDX-License-Identifier: MIT
#
# Packages.  They are built in a copy of the source, so that the checkout stays as
# it is.

DEB_DIR := $(BUILD)/deb
DEB_SOURCE := $(DEB_DIR)/tensorarena-$(VERSION)

#: make deb          Debian packages, into build/deb
deb: | deps-build+deb
	packaging/build-deb $(DEB_SOURCE)

.PHONY: deb
