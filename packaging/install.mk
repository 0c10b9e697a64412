# SPDX-License-Identifier: MIT
#
# Installing, below DESTDIR, with the usual names for where things go.

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
# Of the system, wherever the rest goes.
SYSTEMDIR ?= $(if $(filter /usr/local,$(PREFIX)),/usr,$(PREFIX))/lib
DKMSDIR ?= /usr/src/tensorarena-$(VERSION)

INSTALLED := $(BUILD)/install
# The soname's number is the version's first.
LIB_REAL := libtensorarena.so.$(VERSION)
MAN_PAGES := $(sort $(wildcard man/*.[1-8]))

# In place, it finds the library beside itself; installed, where that goes.
$(INSTALLED)/tarena: $(TARENA_OBJECTS) $(BUILD)/libtensorarena.so
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $(TARENA_OBJECTS) -L$(BUILD) \
		-ltensorarena $(TARENA_LIBS)

# A page's other names lead to it.
install-man:
	for page in $(MAN_PAGES); do \
		section=$${page##*.}; \
		dir=$(DESTDIR)$(MANDIR)/man$$section; \
		install -d $$dir && install -m 644 $$page $$dir || exit 1; \
		for name in $$(sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([a-z_]*\).*/\1/p' \
				$$page); do \
			[ -e $$dir/$$name.$$section ] || \
				echo ".so man$$section/$${page##*/}" \
					>$$dir/$$name.$$section || exit 1; \
		done; \
	done

install-lib: lib
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR)/linux
	install -m 644 $(LIB_SHARED) $(DESTDIR)$(LIBDIR)/$(LIB_REAL)
	ln -sf $(LIB_REAL) $(DESTDIR)$(LIBDIR)/$(LIB_SONAME)
	ln -sf $(LIB_SONAME) $(DESTDIR)$(LIBDIR)/libtensorarena.so
	install -m 644 $(LIB_STATIC) $(DESTDIR)$(LIBDIR)
	install -m 644 lib/include/tensorarena.h $(DESTDIR)$(INCLUDEDIR)
	install -m 644 uapi/tensorarena.h $(DESTDIR)$(INCLUDEDIR)/linux
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		lib/libtensorarena.pc.in \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/libtensorarena.pc

install-tools: $(INSTALLED)/tarena
	install -d $(DESTDIR)$(BINDIR) \
		$(DESTDIR)$(DATADIR)/bash-completion/completions \
		$(DESTDIR)$(DATADIR)/tensorarena
	install $(INSTALLED)/tarena $(DESTDIR)$(BINDIR)
	install -m 644 tools/completion/tarena \
		$(DESTDIR)$(DATADIR)/bash-completion/completions
	install -m 644 tools/grafana/tensorarena.json \
		$(DESTDIR)$(DATADIR)/tensorarena/grafana-dashboard.json
	install -m 644 tools/trace/publish-to-release.bt \
		$(DESTDIR)$(DATADIR)/tensorarena

#: make install      library, tools and manual, below DESTDIR and PREFIX
install: install-lib install-man install-tools

# Anything dkms needs to build the module, and what the system needs to use it.
#: make install-dkms the module's source for dkms, udev rule, group, autoload
install-dkms:
	install -d $(DESTDIR)$(DKMSDIR)/module $(DESTDIR)$(DKMSDIR)/uapi \
		$(DESTDIR)$(SYSTEMDIR)/udev/rules.d \
		$(DESTDIR)$(SYSTEMDIR)/sysusers.d \
		$(DESTDIR)$(SYSTEMDIR)/modules-load.d
	install -m 644 Kbuild dkms.conf $(DESTDIR)$(DKMSDIR)
	install -m 644 $(wildcard module/*.[ch]) $(DESTDIR)$(DKMSDIR)/module
	install module/features.sh module/dkms-build $(DESTDIR)$(DKMSDIR)/module
	install -m 644 $(wildcard uapi/*.h) $(DESTDIR)$(DKMSDIR)/uapi
	install -m 644 packaging/60-tensorarena.rules \
		$(DESTDIR)$(SYSTEMDIR)/udev/rules.d
	install -m 644 packaging/tensorarena.sysusers \
		$(DESTDIR)$(SYSTEMDIR)/sysusers.d/tensorarena.conf
	install -m 644 packaging/tensorarena.modules-load \
		$(DESTDIR)$(SYSTEMDIR)/modules-load.d/tensorarena.conf

PYTHON_SITE ?= $(PREFIX)/lib/python3/dist-packages

#: make install-python the Python package
install-python: python
	install -d $(DESTDIR)$(PYTHON_SITE)/tensorarena
	install -m 644 $(PYTHON_FILES) $(PYTHON_CORE) \
		$(DESTDIR)$(PYTHON_SITE)/tensorarena

.PHONY: install install-lib install-man install-tools install-dkms \
	install-python
