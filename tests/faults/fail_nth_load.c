// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module is loaded again and again while one allocation after the other
 * fails: it loads, or it does not and leaves nothing behind.
 */
#include "inject.h"
#include "tests/campaign/campaign.h"

#define MODULE_PATH "/lib/modules/tensorarena.ko"

static int load(int fd)
{
	return syscall(SYS_finit_module, fd, "", 0) < 0 ? -errno : 0;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "tensorarena", O_NONBLOCK) < 0 ?
		       -errno :
		       0;
}

/* Whether it can be loaded, used and unloaded now. */
static const char *works(int fd)
{
	struct arena a;

	if (!access("/dev/tensorarena", F_OK) ||
	    !access("/sys/class/tensorarena", F_OK))
		return "something is left of it";
	if (load(fd))
		return "it cannot be loaded any more";
	if (arena_try(&a, 2, CHUNK, 0, 0))
		return "no arena can be made any more";
	MUST(!close(a.fd));
	return unload() ? "it cannot be unloaded" : NULL;
}

int main(void)
{
	const char *why = NULL;
	unsigned int nth = 0, failed = 0;
	bool struck = true;
	int inject_fd, fd;

	if (!inject_setup()) {
		printf("1..0 # SKIP no fault injection in this kernel\n");
		return 4;
	}
	printf("1..1\n");
	fd = open(MODULE_PATH, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	inject_fd = inject_open();
	while (struck && !why) {
		int err;

		inject(inject_fd, ++nth);
		err = load(fd);
		struck = injected(inject_fd);
		failed += err != 0;
		if (!err && unload())
			why = "loaded, it cannot be unloaded";
		else if (err && err != -ENOMEM && err != -EFAULT)
			why = strerror(-err);
		/* A whole life costs more than it finds in every round. */
		if (!why && (err || !(nth % 16)))
			why = works(fd);
	}
	if (why)
		printf("# the %u-th chance: %s\n", nth, why);
	else
		printf("# %u chances to fail, %u failures\n", nth - 1, failed);
	printf("%sok 1 - the module loads or leaves nothing behind\n",
	       why ? "not " : "");
	campaign_fact("fault-injection-load", nth - 1, "injected faults",
		      why != NULL);
	return why != NULL;
}
