# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# A bare Debian 12 in a directory, $root, and what is done with it: for
# tests/packages/run, which sources this.

suite=bookworm
work=$(mktemp -d "${TMPDIR:-/tmp}/tensorarena-packages.XXXXXX")
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT

make_system() {
	local mirror

	[ "$(id -u)" -eq 0 ] || {
		echo 'making a system needs root'
		return 1
	}
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
		'Created-By: Packages' | sed -n "s/ $suite\$//p" | head -n 1)
	# shellcheck disable=SC2086
	debootstrap --variant=minbase "$suite" "$root" $mirror || return
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources \
		/etc/apt/apt.conf.d /etc/resolv.conf /etc/hosts; do
		[ ! -e "$file" ] || cp -rL "$file" "$root$(dirname "$file")/"
	done
	[ ! -e /etc/apt/sources.list.d/debian.sources ] ||
		[ -e /etc/apt/sources.list ] || rm -f "$root/etc/apt/sources.list"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	in_system 'apt-get -qq update'
}

# in_system COMMAND: by a shell there.  Mounts live and die with it.
in_system() {
	# shellcheck disable=SC2016
	unshare --mount --pid --fork bash -ec '
		root=$1
		mount -t proc proc "$root/proc"
		mount -t sysfs -o ro sysfs "$root/sys"
		mount --rbind /dev "$root/dev"
		exec env -i HOME=/root TERM=dumb DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			${http_proxy:+http_proxy="$http_proxy"} \
			${https_proxy:+https_proxy="$https_proxy"} \
			chroot "$root" sh -ec "$2"
	' bash "$root" "$1"
}

newest_kernel() {
	ls -v "$root/boot/" | sed -n 's/^vmlinuz-//p' | tail -n 1
}

built_for() {
	in_system "dkms status" &&
		ls "$root/lib/modules/$1/updates/dkms/"tensorarena.ko* &&
		grep -q tensorarena "$root/lib/modules/$1/modules.dep"
}

builds_a_program() {
	cat >"$root/root/program.c" <<-'END'
		#include <linux/tensorarena.h>
		#include <tensorarena.h>

		int main(void)
		{
			return ta_is_decline(0) || !TENSORARENA_MAX_SLOTS;
		}
	END
	in_system 'apt-get -qq -y install pkgconf gcc libc6-dev
		cc -Wall -Werror -o /root/program /root/program.c \
			$(pkg-config --cflags --libs libtensorarena) && /root/program
		rm /root/program*'
}

# It is the one that apt installed, for TENSORARENA_PYTHON says so.
python_package_works() {
	local test

	mkdir -p "$root/root/tests"
	cp tests/python/{harness,core_test,processes_test}.py "$root/root/tests/"
	for test in core processes; do
		in_system "TENSORARENA_PYTHON=/usr/lib/python3/dist-packages \
			python3 -B /root/tests/${test}_test.py" || return
	done
}

# Nothing fails for that, and dkms says what is missing.
next_kernel_without_headers() {
	in_system 'apt-get -qq -y install --no-install-recommends \
		linux-image-6.12-cloud-amd64' >"$work/kernel" 2>&1 || {
		cat "$work/kernel"
		return 1
	}
	cat "$work/kernel"
	grep 'kernel headers for this kernel do not seem to be installed' \
		"$work/kernel" &&
		! in_system "dkms status | grep 'tensorarena.*6\.12'"
}

has_pages() {
	local page

	for page in man1/tarena.1 man3/ta_put.3 man3/ta_commit_to.3 \
		man4/tensorarena.4 man7/tensorarena.7; do
		ls "$root/usr/share/man/$page.gz" || return
	done
}

# What there is, but for what the package system itself and the tests keep.
files_of_system() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev \
		-o -path ./tmp -o -path ./run -o -path ./root \
		-o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt \
		-o -path ./var/lib/dpkg \) -prune -o -print | sort)
}

# The tests that run in the machine, and what they need.
prepare_tests() {
	local tests=$root/root/tests

	mkdir -p "$tests"
	cp tests/packages/guest_*.sh tests/vm/guest_check.sh build/vm/poweroff "$tests/"
	cp build/demo/*.jpg "$tests/photo.jpg"
	cp build/tests/busy_arena "$tests/"
	tests/docs/blocks "$tests/commands"
	tests/containers/image "$tests/image.tar"
	chmod -R a+rX "$tests"
	chmod a+rx "$root/root"
	cat >"$root/etc/systemd/system/tests.service" <<-'END'
		[Unit]
		After=multi-user.target systemd-udev-settle.service

		[Service]
		ExecStart=/bin/sh /root/tests/guest_main.sh
		Type=oneshot

		[Install]
		WantedBy=multi-user.target
	END
	in_system 'apt-get -qq -y install --no-install-recommends podman crun
		systemctl enable tests.service
		useradd --create-home --groups tensorarena alice
		useradd --create-home bob'
	echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
}

# boot RELEASE DIR WHAT: the system in a virtual machine, on a copy of it; the
# tests in guest_WHAT.sh report into DIR/tap.
boot() {
	mkdir -p "$2"
	echo "$3" >"$root/root/tests/what"
	tests/vm/extract-vmlinux "$root/boot/vmlinuz-$1" >"$2/vmlinux"
	cp "$root/boot/initrd.img-$1" "$2/image.cpio"
	mke2fs -q -t ext4 -d "$root" "$2/root.img" 4G
	VM_DISK=$2/root.img VM_MEMORY=3G VM_LIMIT=1500 \
		VM_APPEND='root=/dev/vda rw systemd.show_status=0' \
		tests/vm/run-vm "$2" >"$2/tap" 2>"$2/log" || true
	rm -f "$2/root.img"
}

upgrade() {
	packaging/build-deb build/deb/next/tensorarena 0.1.1 &&
		rm -f "$root"/root/*.deb && cp build/deb/next/*.deb "$root/root/" &&
		in_system 'apt-get -qq -y install $(ls /root/*.deb | grep -v dbgsym)
			dkms status
			for kernel in $(ls /boot | sed -n "s/^vmlinuz-//p"); do
				dkms status -m tensorarena -v 0.1.1 -k $kernel |
					grep "installed$" || exit 1
			done
			if dkms status | grep tensorarena/0.1.0 ||
				ls -d /usr/src/tensorarena-0.1.0; then
				exit 1
			fi'
}

purged_in_chroot() {
	in_system "dpkg --purge $packages
		userdel --remove alice; userdel --remove bob
		systemctl disable tests.service; rm /etc/systemd/system/tests.service"
	files_of_system >"$work/purged"
	! comm -13 "$work/bare" "$work/purged" | grep -i tensorarena &&
		! grep -r tensorarena "$root/etc" &&
		! ls "$root"/lib/modules/*/updates/dkms/tensorarena*
}
