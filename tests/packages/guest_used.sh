# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# The packages on the kernel they were installed for.  Sourced by guest_main.sh.

# guest_main.sh's check calls the functions.
# shellcheck disable=SC2317

loaded_by_itself() {
	lsmod | grep tensorarena
}

for_the_group() {
	ls -l /dev/tensorarena
	[ "$(stat -c '%a %U %G' /dev/tensorarena)" = '660 root tensorarena' ]
}

# All is well but for the GPU that is not there.
healthy() {
	as alice tarena doctor >/tmp/doctor
	status=$?
	show /tmp/doctor
	cat /tmp/doctor
	[ "$status" -eq 0 ] && [ "$(grep -c '^ok' /tmp/doctor)" -ge 4 ] &&
		[ "$(grep -vc '^ok' /tmp/doctor)" -eq 2 ] &&
		grep -q '^note  CUDA: no NVIDIA driver' /tmp/doctor
}

photograph() {
	as alice tarena broadcast /root/tests/photo.jpg --engine device \
		--readers 2 --repeat 1 >/tmp/broadcast
	status=$?
	show /tmp/broadcast
	cat /tmp/broadcast
	[ "$status" -eq 0 ] && grep -q device /tmp/broadcast
}

refused() {
	as bob tarena broadcast /etc/passwd --engine device >/tmp/refused 2>&1
	status=$?
	show /tmp/refused
	[ "$status" -ne 0 ] && grep -q 'this user may not open /dev/tensorarena' /tmp/refused
}

embedded() {
	as bob tarena broadcast /etc/passwd --readers 2 --json >/tmp/embedded
	status=$?
	cat /tmp/embedded
	[ "$status" -eq 0 ] && grep -q '"engine": *"embedded"' /tmp/embedded
}

advised() {
	as bob tarena doctor >/tmp/doctor
	cat /tmp/doctor
	grep -q '^note  /dev/tensorarena is there, but bob may not open it' \
		/tmp/doctor &&
		grep -q 'usermod --append --groups tensorarena bob' /tmp/doctor
}

watched() {
	as bob tarena metrics >/tmp/metrics
	cat /tmp/metrics
	grep -qx 'tensorarena_module_loaded 1' /tmp/metrics &&
		grep -q '^tensorarena_module_puts_total [1-9]' /tmp/metrics
}

read_from_udev() {
	udevadm info --query=property /sys/class/tensorarena/tensorarena
	[ "$(udevadm info --query=property --property=SUBSYSTEM --value \
		/sys/class/tensorarena/tensorarena)" = tensorarena ]
}

check 'the module is loaded at boot' loaded_by_itself
check 'the node belongs to the group' for_the_group
check 'the doctor finds all well but for the GPU' healthy
check 'a user of the group sends a photograph through the module' photograph
check 'a user outside is refused, and told so' refused
check 'and gets the embedded engine' embedded
check 'and is told by the doctor what to do about it' advised
check 'anybody may read the metrics' watched
check 'udev knows the device' read_from_udev
