#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make install puts everything where it is told to, what is there works, and all
# that names a version names the same.

cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
points=0
there=$work/there

check() {
	name=$1
	shift
	points=$((points + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $points - $name"
	else
		sed 's/^/# /' "$work/said"
		echo "not ok $points - $name"
	fi
}

install_to() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s NO_DEPS=1 \
		DESTDIR="$1" "PREFIX=$2" LIBDIR="$2/lib/multi" install \
		install-dkms install-python
}

everything() {
	install_to "$there" /usr || return
	for file in bin/tarena include/tensorarena.h include/linux/tensorarena.h \
		lib/multi/libtensorarena.so lib/multi/libtensorarena.a \
		lib/multi/pkgconfig/libtensorarena.pc share/man/man1/tarena.1 \
		share/man/man3/ta_create.3 share/man/man3/ta_handle.3 \
		share/man/man4/tensorarena.4 share/man/man7/tensorarena.7 \
		share/bash-completion/completions/tarena \
		share/tensorarena/grafana-dashboard.json \
		lib/udev/rules.d/60-tensorarena.rules \
		lib/sysusers.d/tensorarena.conf \
		lib/modules-load.d/tensorarena.conf \
		lib/python3/dist-packages/tensorarena/_core.abi3.so \
		lib/python3/dist-packages/tensorarena/py.typed; do
		[ -e "$there/usr/$file" ] || {
			echo "no $file"
			return 1
		}
	done
	[ -L "$there/usr/lib/multi/libtensorarena.so.0" ] &&
		[ "$(cat "$there/usr/share/man/man3/ta_handle.3")" = \
			'.so man3/ta_create.3' ]
}

python_is_whole() {
	site=$there/usr/lib/python3/dist-packages
	(cd python && find tensorarena -name '*.py' -o -name '*.pyi' \
		-o -name py.typed) | sort >"$work/source"
	(cd "$site" && find . -type f ! -name '*.so' | sed 's,^\./,,' | sort) |
		diff "$work/source" -
}

nothing_elsewhere() {
	install_to "$work/local" /usr/local || return
	! find "$work/local" -type f -not -path '*/usr/local/*' \
		-not -path '*/usr/src/tensorarena-*' \
		-not -path '*/usr/lib/*tensorarena*' | grep .
}

command_works() {
	! readelf -d "$there/usr/bin/tarena" | grep -i 'r.*path' &&
		LD_LIBRARY_PATH=$there/usr/lib/multi "$there/usr/bin/tarena" \
			broadcast README.md --readers 1 --repeat 1
}

program_builds() {
	export PKG_CONFIG_SYSROOT_DIR="$there"
	export PKG_CONFIG_PATH="$there/usr/lib/multi/pkgconfig"
	# shellcheck disable=SC2046
	cc -o "$work/program" examples/engine_and_workers.c \
		$(pkg-config --cflags --libs libtensorarena) &&
		LD_LIBRARY_PATH=$there/usr/lib/multi "$work/program" &&
		[ "$(pkg-config --modversion libtensorarena)" = "$version" ]
}

# The source that dkms gets is all that it takes, and no more than that.
module_is_whole() {
	for object in $(sed -n 's/^\t\(module\/.*\)\.o.*/\1/p' Kbuild) \
		module/contig; do
		[ -e "$there/usr/src/tensorarena-$version/$object.c" ] || {
			echo "no $object.c"
			return 1
		}
	done
	[ -x "$there/usr/src/tensorarena-$version/module/features.sh" ] &&
		[ -x "$there/usr/src/tensorarena-$version/module/dkms-build" ]
}

versions() {
	sed -n 's/^VERSION := //p' Makefile
	sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf
	sed -n 's/^MODULE_VERSION("\(.*\)");/\1/p' module/main.c
	sed -n 's/^Version: *//p' packaging/tensorarena.spec
	sed -n '1s/.*(\(.*\)).*/\1/p' packaging/debian/changelog
	sed -n 's/.*tensorarena-\([0-9.]*\)\/.*/\1/p' \
		packaging/debian/tensorarena-dkms.dkms
	sed -n 's/^__version__ = "\(.*\)"/\1/p' python/tensorarena/_version.py
	build/tarena --version | sed 's/tarena //'
}

same_version() {
	versions
	[ "$(versions | wc -l)" -eq 8 ] &&
		[ "$(versions | sort -u | wc -l)" -eq 1 ] &&
		grep -q "^## $version" CHANGELOG.md
}

version=$(sed -n 's/^VERSION := //p' Makefile)
echo 1..7
check 'everything is where PREFIX and LIBDIR say' everything
check 'every module of the Python package is there' python_is_whole
check 'nothing is put elsewhere' nothing_elsewhere
check 'the command runs with the library that was installed' command_works
check 'a program builds with what was installed' program_builds
check 'what dkms gets is whole' module_is_whole
check 'all that names a version names the same' same_version
