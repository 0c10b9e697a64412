// SPDX-License-Identifier: MIT
/*
 * The doctor on the kernel module: whether it may be used, and if not, what is
 * missing: the device, the right to it, the module, its build, or the kernel's
 * headers.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

#include "doctor.h"

#define GROUP "tensorarena"
#define MODULE "tensorarena"

static const char *device_path(void)
{
	const char *path = secure_getenv("TENSORARENA_DEVICE");

	return path && *path ? path : TA_DEVICE_PATH;
}

/* The kernel's release, as in the names of packages and directories. */
static const char *release(void)
{
	static struct utsname name;

	return uname(&name) ? "unknown" : name.release;
}

static bool in_container(void)
{
	char line[64];

	doctor_read_line("/run/systemd/container", line, sizeof(line));
	return *line || doctor_exists("/.dockerenv") ||
	       doctor_exists("/run/.containerenv");
}

static bool is_built(void)
{
	char pattern[512];

	snprintf(pattern, sizeof(pattern), "/lib/modules/%s/*/" MODULE ".ko*",
		 release());
	if (doctor_matches(pattern))
		return true;
	snprintf(pattern, sizeof(pattern),
		 "/lib/modules/%s/updates/dkms/" MODULE ".ko*", release());
	return doctor_matches(pattern);
}

static bool headers_are_there(void)
{
	char path[512];

	snprintf(path, sizeof(path), "/lib/modules/%s/build/Makefile",
		 release());
	return doctor_exists(path);
}

static void advise_unbuilt(void)
{
	if (!doctor_matches("/usr/src/" MODULE "-*/dkms.conf")) {
		doctor_advise("as root: apt-get install " MODULE "-dkms");
		return;
	}
	if (!headers_are_there())
		doctor_advise("the headers of this kernel are missing; as "
			      "root: apt-get install linux-headers-%s",
			      release());
	doctor_advise("as root: dkms autoinstall -k %s && modprobe " MODULE,
		      release());
}

static void say_absent(const char *path)
{
	doctor_say(NOTE,
		   "the kernel module is not loaded (there is no %s), so the "
		   "embedded engine is used",
		   path);
	if (in_container())
		doctor_advise("in a container: load it on the host, and start "
			      "the container with --device %s",
			      path);
	else if (is_built())
		doctor_signature();
	else
		advise_unbuilt();
}

static const char *user_name(void)
{
	const struct passwd *user = getpwuid(geteuid());

	return user ? user->pw_name : "this user";
}

static bool is_in_group(const struct group *group)
{
	gid_t groups[256];
	int i, nr = getgroups(256, groups);

	if (getegid() == group->gr_gid)
		return true;
	for (i = 0; i < nr; i++)
		if (groups[i] == group->gr_gid)
			return true;
	return false;
}

static void say_refused(const char *path)
{
	const struct group *group = getgrnam(GROUP);

	doctor_say(NOTE,
		   "%s is there, but %s may not open it, so the embedded "
		   "engine is used",
		   path, user_name());
	if (!group)
		doctor_advise("as root: groupadd --system " GROUP
			      " && chgrp " GROUP " %s && usermod --append "
			      "--groups " GROUP " %s, then log in again",
			      path, user_name());
	else if (is_in_group(group))
		doctor_advise("the node does not belong to the group " GROUP
			      "; as root: chgrp " GROUP " %s && chmod 660 %s; "
			      "the udev rule of " MODULE "-dkms keeps it so",
			      path, path);
	else
		doctor_advise("as root: usermod --append --groups " GROUP
			      " %s, then log in again",
			      user_name());
}

/* The same source makes both; another version may lack what this one uses. */
static void look_at_version(void)
{
	char version[64];

	doctor_read_line("/sys/module/" MODULE "/version", version,
			 sizeof(version));
	if (!*version || !strcmp(version, TARENA_VERSION))
		return;
	doctor_say(NOTE,
		   "the module that is loaded is version %s, this command "
		   "version " TARENA_VERSION,
		   version);
	doctor_advise("when no arena is in use, as root: modprobe -r " MODULE
		      " && modprobe " MODULE);
}

bool doctor_module(void)
{
	const char *path = device_path();
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		doctor_say(OK, "the kernel module is loaded and %s may be used",
			   path);
		look_at_version();
		return true;
	}
	if (errno == ENOENT) {
		say_absent(path);
	} else if (errno == EACCES || errno == EPERM) {
		say_refused(path);
	} else {
		doctor_say(NOTE, "%s cannot be opened: %s", path,
			   strerror(errno));
		doctor_advise("the kernel's log may say more: dmesg | grep "
			      "-i " MODULE);
	}
	return false;
}

void doctor_limits(void)
{
	struct tensorarena_info info = { 0 };
	int fd = open(device_path(), O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (ioctl(fd, TENSORARENA_INFO, &info)) {
		doctor_say(BAD, "%s does not answer: %s", device_path(),
			   strerror(errno));
		doctor_advise("is it the node of another driver?  As root: "
			      "modprobe -r " MODULE " && modprobe " MODULE);
		close(fd);
		return;
	}
	close(fd);
	doctor_say(info.arenas < info.max_arenas &&
				   info.total_bytes < info.max_total_bytes ?
			   OK :
			   NOTE,
		   "%u of %u arenas exist, with %llu of %llu MiB", info.arenas,
		   info.max_arenas, (unsigned long long)info.total_bytes >> 20,
		   (unsigned long long)info.max_total_bytes >> 20);
	if (info.arenas >= info.max_arenas ||
	    info.total_bytes >= info.max_total_bytes)
		doctor_advise(
			"no other can be created; tarena stat shows them. "
			"Raise max_arenas or max_total_bytes in /sys/"
			"module/" MODULE "/parameters");
}
