// SPDX-License-Identifier: MIT
/*
 * tarena doctor: what will work on this machine, for this user, and what will
 * not, with what to do about it.  Changes nothing and makes no CUDA context.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <tensorarena.h>

#include "complain.h"
#include "doctor.h"
#include "tarena.h"

static const char usage[] =
	"usage: tarena doctor\n"
	"\n"
	"Says what works on this machine: the kernel module, memory, CUDA.\n"
	"\"bad\" does not work, \"note\" works less well than it could, and "
	"\"do\"\nsays what to do about it.\n"
	"\n"
	"Exit codes: 0 arenas can be had here, 1 they cannot.\n";

static bool try_small(struct ta_options *options)
{
	struct ta_writer *writer;
	char why[256];

	options->slots = 1;
	options->slot_bytes = 1 << 20;
	if (ta_create(options, &writer, why, sizeof(why))) {
		doctor_say(BAD, "nor can a small one: %s", why);
		doctor_advise("that sentence says what is in the way");
		return false;
	}
	doctor_say(OK, "a small one can");
	ta_writer_close(writer);
	return true;
}

/* The library knows the module's limits, the memory and the cgroup's. */
static bool try_arena(void)
{
	struct ta_options options;
	struct ta_writer *writer;
	char why[256];

	ta_options_init(&options);
	if (!ta_create(&options, &writer, why, sizeof(why))) {
		doctor_say(OK,
			   "an arena of the default size (%u slots of %llu "
			   "MiB) can be created, by the %s engine; it takes "
			   "memory only as it fills",
			   options.slots,
			   (unsigned long long)options.slot_bytes >> 20,
			   ta_writer_engine(writer) == TA_ENGINE_DEVICE ?
				   "device" :
				   "embedded");
		ta_writer_close(writer);
		return true;
	}
	doctor_say(NOTE, "an arena of the default size cannot be created: %s",
		   why);
	doctor_advise("create arenas with fewer or smaller slots, or make the "
		      "room that sentence names");
	return try_small(&options);
}

/* Only of interest where the embedded engine is what there is. */
static void look_at_huge_pages(void)
{
	static const char path[] =
		"/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	char line[256];

	doctor_read_line(path, line, sizeof(line));
	if (*line && !strstr(line, "[never]") && !strstr(line, "[deny]")) {
		doctor_say(OK, "the embedded engine may use huge pages (%s)",
			   line);
		return;
	}
	doctor_say(NOTE, "the embedded engine gets no huge pages, so pinning "
			 "and first touch take longer (not the copies)");
	doctor_advise("as root: echo advise >%s; or use the kernel module, "
		      "which needs no such thing",
		      path);
}

static void look_at_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit)) {
		doctor_say(NOTE, "the memlock limit cannot be read: %s",
			   strerror(errno));
		doctor_advise("see ulimit -l");
	} else if (limit.rlim_cur == RLIM_INFINITY) {
		doctor_say(OK, "no limit on locked memory");
	} else {
		doctor_say(OK,
			   "locked memory is limited to %llu KiB, which CUDA's "
			   "pinning does not count; io_uring's registered "
			   "buffers do",
			   (unsigned long long)limit.rlim_cur >> 10);
	}
}

static void look_at_wsl(void)
{
	char line[256];

	doctor_read_line("/proc/version", line, sizeof(line));
	if (!strstr(line, "icrosoft"))
		return;
	doctor_say(NOTE, "this is WSL: CUDA pins less memory here, and may "
			 "refuse memory that is mapped read-only; then slots "
			 "stay unpinned and copies are slower");
	doctor_advise("where that matters, create arenas with "
		      "TA_WRITABLE_READERS");
}

int doctor_main(int argc, char **argv)
{
	bool works;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return EXIT_OK;
	}
	if (complain_arguments(argc - 1, "doctor"))
		return EXIT_USAGE;
	if (doctor_module())
		doctor_limits();
	else
		look_at_huge_pages();
	works = try_arena();
	look_at_memlock();
	look_at_wsl();
	doctor_gpu();
	return works ? EXIT_OK : EXIT_FAILED;
}
