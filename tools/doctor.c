// SPDX-License-Identifier: MIT
/*
 * tarena doctor: what will work on this machine, for this user, and what will
 * not, with what can be done about it.  Changes nothing and makes no CUDA
 * context.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tensorarena.h>

#include "complain.h"
#include "cuda.h"
#include "tarena.h"

#define READ_ONLY_REGISTER 113 /* CU_DEVICE_ATTRIBUTE_... */

static const char usage[] =
	"usage: tarena doctor\n"
	"\n"
	"Says what works on this machine: the kernel module, memory, CUDA.\n"
	"\"bad\" does not work, \"note\" works less well than it could.\n"
	"\n"
	"Exit codes: 0 arenas can be had here, 1 they cannot.\n";

enum verdict {
	OK,
	NOTE,
	BAD
};

static void say(enum verdict verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(enum verdict verdict, const char *format, ...)
{
	static const char *const word[] = { "ok", "note", "bad" };
	va_list args;

	va_start(args, format);
	printf("%-4s  ", word[verdict]);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
}

/* The first line of a small file, empty when it cannot be had. */
static void read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");

	line[0] = '\0';
	if (!file)
		return;
	if (!fgets(line, (int)size, file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(file);
}

static const char *device_path(void)
{
	const char *path = secure_getenv("TENSORARENA_DEVICE");

	return path && *path ? path : TA_DEVICE_PATH;
}

static void look_at_module(void)
{
	const char *path = device_path();
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		say(OK, "the kernel module is loaded and %s may be used", path);
	} else if (errno == ENOENT) {
		say(NOTE,
		    "the kernel module is not loaded (there is no %s): the "
		    "embedded engine is used; modprobe tensorarena changes "
		    "that, in a container also --device %s",
		    path, path);
	} else if (errno == EACCES || errno == EPERM) {
		say(NOTE,
		    "%s is there but not for this user: the embedded engine is "
		    "used; membership of the group tensorarena changes that",
		    path);
	} else {
		say(NOTE, "%s cannot be opened: %s", path, strerror(errno));
	}
}

/* The library knows the module's limits, the memory and the cgroup's. */
static bool try_arena(void)
{
	struct ta_options options;
	struct ta_writer *writer;
	char why[256];
	int err;

	ta_options_init(&options);
	err = ta_create(&options, &writer, why, sizeof(why));
	if (!err) {
		say(OK,
		    "an arena of the default size (%u slots of %llu MiB) can "
		    "be created, by the %s engine; it takes memory only as it "
		    "fills",
		    options.slots, (unsigned long long)options.slot_bytes >> 20,
		    ta_writer_engine(writer) == TA_ENGINE_DEVICE ? "device" :
								   "embedded");
		ta_writer_close(writer);
		return true;
	}
	say(NOTE, "an arena of the default size cannot be created: %s", why);

	options.slots = 1;
	options.slot_bytes = 1 << 20;
	err = ta_create(&options, &writer, why, sizeof(why));
	if (!err) {
		say(OK, "a small one can");
		ta_writer_close(writer);
	} else {
		say(BAD, "nor can a small one: %s", why);
	}
	return !err;
}

static void look_at_huge_pages(void)
{
	static const char path[] =
		"/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	char line[256];

	read_line(path, line, sizeof(line));
	if (!*line || strstr(line, "[never]") || strstr(line, "[deny]"))
		say(NOTE,
		    "the embedded engine gets no huge pages, so pinning and "
		    "first touch take longer (not the copies): 'advise' in %s "
		    "changes that; the kernel module does not need it",
		    path);
	else
		say(OK, "the embedded engine may use huge pages (%s)", line);
}

static void look_at_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		say(NOTE, "the memlock limit cannot be read: %s",
		    strerror(errno));
	else if (limit.rlim_cur == RLIM_INFINITY)
		say(OK, "no limit on locked memory");
	else
		say(OK,
		    "locked memory is limited to %llu KiB, which CUDA's "
		    "pinning does not count; io_uring's registered buffers do",
		    (unsigned long long)limit.rlim_cur >> 10);
}

static void look_at_wsl(void)
{
	char line[256];

	read_line("/proc/version", line, sizeof(line));
	if (strstr(line, "icrosoft"))
		say(NOTE,
		    "this is WSL: CUDA pins less memory here, and may refuse "
		    "memory that is mapped read-only; then slots stay unpinned "
		    "and copies are slower, or create with "
		    "TA_WRITABLE_READERS");
}

static void look_at_gpu(const struct cuda_driver *driver, int ordinal)
{
	int device, works = 0;
	char name[128];

	if (driver->DeviceGet(&device, ordinal) ||
	    driver->DeviceGetName(name, sizeof(name), device) ||
	    driver->DeviceGetAttribute(&works, READ_ONLY_REGISTER, device)) {
		say(BAD, "GPU %d does not answer", ordinal);
		return;
	}
	if (works)
		say(OK,
		    "GPU %d, %s, registers read-only memory: slots are pinned",
		    ordinal, name);
	else
		say(NOTE,
		    "GPU %d, %s, cannot register read-only memory: slots stay "
		    "unpinned and copies are slower, unless the arena has "
		    "TA_WRITABLE_READERS",
		    ordinal, name);
}

static void look_at_driver(void)
{
	struct cuda_driver driver;
	const char *name = NULL;
	struct reason why;
	int version = 0, count = 0;
	int err, i;

	if (cuda_driver_load(&driver, &why)) {
		say(NOTE, "CUDA: %s; without a GPU everything else works",
		    why.text);
		return;
	}
	err = driver.Init(0);
	if (!err)
		err = driver.DeviceGetCount(&count);
	if (err) {
		driver.GetErrorName(err, &name);
		say(NOTE,
		    "CUDA: the driver finds no GPU for this process (%s); in a "
		    "container, was it started with GPUs?",
		    name ? name : "unknown error");
		return;
	}
	driver.DriverGetVersion(&version);
	say(OK, "CUDA: the driver is there, for CUDA up to %d.%d, with %d GPUs",
	    version / 1000, version % 1000 / 10, count);
	for (i = 0; i < count; i++)
		look_at_gpu(&driver, i);
}

static void look_at_runtime(void)
{
	struct reason why;
	struct cuda cuda;
	int version = 0;

	if (cuda_load(&cuda, &why)) {
		say(NOTE,
		    "CUDA: %s; tarena broadcast --gpu needs it, the library "
		    "does not",
		    why.text);
		return;
	}
	cuda.RuntimeGetVersion(&version);
	say(OK, "CUDA: runtime %d.%d is there for tarena broadcast --gpu",
	    version / 1000, version % 1000 / 10);
}

int doctor_main(int argc, char **argv)
{
	bool works;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return EXIT_OK;
	}
	if (argc > 1) {
		complain("doctor takes no arguments; see tarena doctor --help");
		return EXIT_USAGE;
	}
	look_at_module();
	works = try_arena();
	look_at_huge_pages();
	look_at_memlock();
	look_at_wsl();
	look_at_driver();
	look_at_runtime();
	return works ? EXIT_OK : EXIT_FAILED;
}
