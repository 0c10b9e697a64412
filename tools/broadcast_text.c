// SPDX-License-Identifier: MIT
/*
 * The report for people.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broadcast.h"
#include "checksum.h"

#define MIB (1024.0 * 1024.0)

/* As the library finds it. */
static const char *device_path(void)
{
	const char *path = secure_getenv("TENSORARENA_DEVICE");

	return path ? path : TA_DEVICE_PATH;
}

/* Why the library, left to choose, did not use the module. */
static void say_why_embedded(void)
{
	int fd = open(device_path(), O_RDWR | O_CLOEXEC);
	int err = errno;

	printf("engine: embedded, a thread of the engine process");
	if (fd >= 0)
		close(fd);
	else if (err == ENOENT)
		printf(" (the kernel module is not loaded: there is no %s)",
		       device_path());
	else
		printf(" (%s cannot be opened: %s)", device_path(),
		       strerror(err));
	putchar('\n');
}

void report_engine(const struct broadcast *b)
{
	if (ta_writer_engine(b->writer) == TA_ENGINE_DEVICE)
		printf("engine: device, the kernel module through %s\n",
		       device_path());
	else if (b->options->engine == TA_ENGINE_EMBEDDED)
		puts("engine: embedded, a thread of the engine process (as "
		     "asked for)");
	else
		say_why_embedded();
}

static void say_tensor(const struct broadcast *b)
{
	const struct ta_tensor *t = &b->in.tensor;
	char dtype[32];
	uint32_t i;

	ta_dtype_name(t, dtype, sizeof(dtype));
	printf("tensor: %s [", dtype);
	for (i = 0; i < t->ndim; i++)
		printf("%s%" PRId64, i ? ", " : "", t->shape[i]);
	printf("], %" PRIu64 " bytes (%.1f MiB)\n", b->in.nbytes,
	       b->in.nbytes / MIB);
}

void report_start(const struct broadcast *b)
{
	printf("file:   %s, %s\n", b->options->path, b->in.about);
	if (!b->in.list.nr)
		say_tensor(b);
	report_engine(b);
	printf("readers: %u worker processes, each with a read-only mapping of "
	       "its own%s\n\n",
	       b->options->readers,
	       b->options->gpu ? ", pinned and copied to a GPU" : "");
	if (b->in.list.nr)
		return;
	printf("round  way   produce ms   put ms  all verified ms  verified  "
	       "declines\n");
	fflush(stdout);
}

void report_round(const struct broadcast *b, uint32_t i)
{
	const struct broadcast_round *r = &b->round[i];

	printf("%5u  %-4s %11.1f %8.2f %16.2f %5u/%-4u %8u\n", i + 1,
	       r->loaned ? "loan" : "put", r->produce_ms, r->put_ms,
	       r->all_verified_ms, r->verified, b->options->readers,
	       r->declined);
	fflush(stdout);
}

void report_end(const struct broadcast *b)
{
	struct broadcast_figures f;

	if (broadcast_figures(b, &f))
		return;
	printf("\n%u of %u workers saw exactly these bytes in every round (%s "
	       "%016" PRIx64 ", computed by each process for itself%s).\n",
	       f.verified, b->options->readers, CHECKSUM_NAME, b->digest,
	       b->options->gpu ? ", from what its GPU has" : "");
	printf("Slot memory: %.1f MiB, shared by all.\n", b->slot_memory / MIB);
	if (b->round[0].loaned)
		puts("Way: \"loan\" produced the tensor right in the slot; "
		     "\"put\" copied it there once.");
	printf("%s: put %.2f ms, all verified %.2f ms.\n",
	       b->rounds > 1 ? "Median of the warm rounds" : "This round",
	       f.put_ms, f.all_verified_ms);
	if (b->options->gpu) {
		printf("GPUs: %.1f GB/s from the slot to each worker's, pinned "
		       "once in at most %.1f ms; the slot is free %.3f ms "
		       "after the last copy.\n",
		       f.h2d_gbps, f.pin_ms, f.slot_free_ms);
		/* What follows is not all that had to be done. */
		return;
	}
	printf("The bare work: memcpy %.2f ms + %u checksum passes at once "
	       "%.2f ms (one alone: %.2f ms) = %.2f ms; %+.1f%%.\n",
	       f.bare.memcpy_ms, b->options->readers, f.bare.passes_ms,
	       f.bare.checksum_ms, f.bound_ms, f.over_bound * 100);
}
