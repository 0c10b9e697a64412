// SPDX-License-Identifier: MIT
/*
 * From one process to N: how long, and what it costs, by tensorarena, its peers
 * and the hardware's floors, side by side in one run.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <tensorarena.h>

#include "broadcast.h"
#include "machine.h"
#include "options.h"
#include "raw.h"
#include "roudi.h"
#include "touch.h"

#define REAL_DIGITS 12
#define SOURCE_ALIGN 64
/* Room for the marks at both ends. */
#define SMALLEST 16

/* What has to be undone however the run ends; the driver's alone. */
static char dir[] = "/tmp/tensorarena-bench-XXXXXX";
static pid_t driver;

static void unlink_all(const char *what)
{
	char pattern[sizeof(dir) + 8];
	glob_t found;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s%s", dir, what);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (i = 0; i < found.gl_pathc; i++)
		unlink(found.gl_pathv[i]);
	globfree(&found);
}

static void clear_up(void)
{
	char name[sizeof(dir) + 16];
	int i;

	if (getpid() != driver)
		return;
	roudi_stop();
	unlink_all("/*");
	/* iceoryx puts its files beside the directory, shm.c its elsewhere. */
	unlink_all("-*");
	for (i = 0; i < GROUPS_MAX; i++) {
		snprintf(name, sizeof(name), "/%s-%d", strrchr(dir, '/') + 1,
			 i);
		shm_unlink(name);
	}
	rmdir(dir);
}

static void interrupt(int signo)
{
	(void)signo;
	group_interrupted = 1;
}

static size_t largest(const struct plan *plan)
{
	size_t size = SMALLEST;
	uint32_t i;

	for (i = 0; i < plan->sizes; i++)
		if (plan->size[i] > size)
			size = plan->size[i];
	return size;
}

static int write_json(json_t *object, const char *path)
{
	size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS);
	int err = path ? json_dump_file(object, path, flags) :
			 json_dumpf(object, stdout, flags);

	json_decref(object);
	if (err)
		fprintf(stderr, "bench: cannot write the record: %s\n",
			strerror(errno));
	return err ? 1 : 0;
}

static void prepare(struct setting *setting, const struct plan *plan)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction act = { .sa_handler = interrupt };
	size_t i;

	setting->max_bytes = largest(plan);
	/* As frameworks allocate tensors, which is not at the start of a page. */
	if (posix_memalign(&setting->src, SOURCE_ALIGN, setting->max_bytes))
		die("memory for the source", ENOMEM);
	touch_fill(setting->src, setting->max_bytes, plan->seed);
	driver = getpid();
	if (!mkdtemp(dir))
		die(dir, errno);
	setting->dir = dir;
	atexit(clear_up);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &act, NULL);
}

int broadcast_bench(int argc, char **argv)
{
	struct request request = {
		.plan.rounds = 9,
		.plan.warmup = 1,
		.plan.seed = (uint64_t)time(NULL),
		.setting.engine = TA_ENGINE_AUTO,
	};
	struct plan *plan = &request.plan;
	struct gpu_about gpu;
	struct result result;
	json_t *machine;
	int code;

	code = options_parse(argc, argv, &request);
	if (code)
		return code - 1;
	gpu_look_for(&gpu);
	if (options_complete(plan, gpu.count > 0)) {
		fprintf(stderr, "bench: %s\n", gpu.why.text);
		return 1;
	}
	/* Whoever needs no GPU is not to be slowed down by having one. */
	request.setting.gpu = plan->modes >> MODE_GPU & 1;
	machine = machine_json(&gpu);
	prepare(&request.setting, plan);
	plan_run(plan, &request.setting, &result);
	return write_json(raw_json(plan, &result, machine), request.path);
}
