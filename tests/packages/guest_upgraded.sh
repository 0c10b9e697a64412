# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# The packages after an upgrade of kernel and packages; then they are purged while
# the module is loaded.  Sourced by guest_main.sh.

# guest_main.sh's check calls the functions.
# shellcheck disable=SC2317

next_kernel() {
	uname -r
	uname -r | grep '^6\.12'
}

loaded() {
	cat /sys/module/tensorarena/version
	grep -qx 0.1.1 /sys/module/tensorarena/version &&
		as alice tarena broadcast /etc/passwd --engine device --readers 2
}

# Both halves of an upgrade speak to each other: the doctor would say otherwise.
versions_agree() {
	as alice tarena doctor >/tmp/doctor
	cat /tmp/doctor
	! grep version /tmp/doctor
}

# The manual's own command, but for the question that apt asks.
purged() {
	echo 'APT::Get::Assume-Yes "true";' >/tmp/apt.conf
	export APT_CONFIG=/tmp/apt.conf DEBIAN_FRONTEND=noninteractive
	documented 'apt-get purge' &&
		! dpkg-query -W -f '${db:Status-Status} ${Package}\n' \
			'*tensorarena*' | grep -v '^not-installed'
}

nothing_left() {
	! lsmod | grep tensorarena && ! ls -d /dev/tensorarena \
		/sys/class/tensorarena /sys/module/tensorarena &&
		! getent group tensorarena &&
		! find / -xdev -name '*tensorarena*' -not -path '/root/*' \
			-not -path '/var/lib/dpkg/*' -not -path '/proc/*' |
		grep .
}

kernel_is_content() {
	! dmesg | grep -E 'BUG|WARNING|Oops|Bad page'
}

check 'the next kernel runs' next_kernel
check 'the module of the later version is loaded, and works' loaded
check 'library, tools and module are of one version' versions_agree
check 'the packages are purged' purged
check 'no file, node, group or module is left' nothing_left
check 'the kernel had nothing to complain about' kernel_is_content
