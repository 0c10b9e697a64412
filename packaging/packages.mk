# SPDX-License-Identifier: MIT
#
# Packages.  They are built in a copy of the source, so that the checkout stays as
# it is.

DEB_DIR := $(BUILD)/deb
DEB_SOURCE := $(DEB_DIR)/tensorarena-$(VERSION)

#: make deb          Debian packages, into build/deb
deb: | deps-build+deb+python
	packaging/build-deb $(DEB_SOURCE)

.PHONY: deb

RPM_DIR := $(CURDIR)/$(BUILD)/rpm

# With Debian's rpmbuild, which knows nothing of the packages that it asks for.
#: make rpm          RPM packages, into build/rpm/RPMS
rpm: | deps-build+rpm
	rm -rf $(RPM_DIR)
	mkdir -p $(RPM_DIR)/SOURCES
	tar -cz --exclude=./build --exclude=./.git \
		--transform 's,^\.,tensorarena-$(VERSION),' \
		-f $(RPM_DIR)/SOURCES/tensorarena-$(VERSION).tar.gz .
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL rpmbuild -bb --nodeps --quiet \
		--define '_topdir $(RPM_DIR)' packaging/tensorarena.spec

.PHONY: rpm
