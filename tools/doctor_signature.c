// SPDX-License-Identifier: MIT
/*
 * The doctor on signatures: whether the kernel would load the module, which has been
 * built, and what to do when it wants a signature first.
 */
#include <string.h>

#include "doctor.h"

#define SECURE_BOOT                                                            \
	"/sys/firmware/efi/efivars/"                                           \
	"SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* The variable's attributes, and then its value. */
static bool secure_boot_is_on(void)
{
	unsigned char variable[5] = { 0 };

	return doctor_read(SECURE_BOOT, variable, 5) == 5 && variable[4] == 1;
}

static bool locked_down(void)
{
	char line[256];

	doctor_read_line("/sys/kernel/security/lockdown", line, sizeof(line));
	return strstr(line, "[integrity]") || strstr(line, "[confidentiality]");
}

static bool signatures_are_enforced(void)
{
	char line[256];

	doctor_read_line("/sys/module/module/parameters/sig_enforce", line,
			 sizeof(line));
	return !strcmp(line, "Y");
}

void doctor_signature(void)
{
	if (secure_boot_is_on())
		doctor_advise("Secure Boot is on: only modules are loaded that "
			      "are signed by a key that the firmware knows.  "
			      "As root, once for all modules of dkms: mokutil "
			      "--import /var/lib/dkms/mok.pub, then reboot and "
			      "choose \"Enroll MOK\"; after that: modprobe "
			      "tensorarena");
	else if (locked_down() || signatures_are_enforced())
		doctor_advise("this kernel loads only signed modules, though "
			      "Secure Boot is off: without that it knows no "
			      "key of dkms's.  Turn Secure Boot on, or boot "
			      "without lockdown and module.sig_enforce");
	else
		doctor_advise("as root: modprobe tensorarena");
}
