// SPDX-License-Identifier: MIT
/* What tarena bench says, in text and in JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"
#include "checksum.h"
#include "json_parts.h"

#define MIB (1024.0 * 1024.0)

static double gbps(uint64_t nbytes, double ms)
{
	return ms > 0 ? (double)nbytes / 1e6 / ms : 0;
}

static long processors(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

void bench_say_small(const struct bench *bench, const struct broadcast *b)
{
	const struct bench_small *s = &bench->small;
	struct utsname name;

	if (uname(&name))
		snprintf(name.release, sizeof(name.release), "unknown");
	report_engine(b);
	printf("machine: %ld processors, Linux %s\n\n"
	       "4 KiB to one reader: put %.1f us, view %.1f us, "
	       "release %.1f us\n\n",
	       processors(), name.release, s->put_us, s->view_us,
	       s->release_us);
	fflush(stdout);
}

void bench_say_heading(const struct bench *bench)
{
	const struct bench_options *o = bench->options;

	printf("%.1f MiB, of which each reader verifies every byte (%s); "
	       "medians of %u:\n\n"
	       "way     readers      put ms  all verified ms  bare work ms    "
	       "over\n",
	       (double)o->nbytes / MIB, CHECKSUM_NAME, o->rounds);
	fflush(stdout);
}

void bench_say_way(const struct bench_way *way)
{
	const struct broadcast_figures *f = &way->figures;

	printf("%-6s  %7u  %10.2f  %15.2f", way->socket ? "socket" : "arena",
	       way->readers, f->put_ms, f->all_verified_ms);
	if (way->gpu)
		printf("  to GPUs with %.1f GB/s\n", f->h2d_gbps);
	else
		printf("  %12.2f  %+5.0f%%\n", f->bound_ms,
		       f->over_bound * 100);
	fflush(stdout);
}

/* The last arena, and the sockets beside it. */
static void say_comparison(const struct bench *bench)
{
	const struct bench_way *arena = &bench->way[bench->ways - 2];
	const struct broadcast_figures *a = &arena->figures;
	const struct broadcast_figures *s = &arena[1].figures;

	printf("With %u readers%s all have verified it %.1f times as soon as "
	       "by sockets.\n",
	       arena->readers, arena->gpu ? " and GPUs" : "",
	       s->all_verified_ms / a->all_verified_ms);
	if (arena->gpu)
		printf("The slot is pinned once, in at most %.1f ms, and free "
		       "%.3f ms after the last copy.\n"
		       "What comes over a socket is not pinned.\n",
		       a->pin_ms, a->slot_free_ms);
}

void bench_say_end(const struct bench *bench)
{
	const struct broadcast_figures *f = &bench->way[0].figures;
	uint64_t nbytes = bench->options->nbytes;

	printf("\nThe bare work is one memcpy, and as many passes over the "
	       "bytes at once as there\nare readers.  A put makes %.1f GB/s, "
	       "memcpy alone %.1f GB/s.\n",
	       gbps(nbytes, f->put_ms), gbps(nbytes, f->bare.memcpy_ms));
	say_comparison(bench);
	if (bench->no_gpu.text[0])
		printf("No copies to a GPU: %s.\n", bench->no_gpu.text);
}

static json_t *way_json(const struct bench *bench, const struct bench_way *way)
{
	const struct broadcast_figures *f = &way->figures;
	json_t *object = json_object();

	set_string(object, "way", way->socket ? "socket" : "arena");
	set_integer(object, "readers", way->readers);
	set_boolean(object, "gpu", way->gpu);
	set_integer(object, "verified", f->verified);
	set_real(object, "put_ms", f->put_ms);
	set_real(object, "put_gbps", gbps(bench->options->nbytes, f->put_ms));
	set_real(object, "all_verified_ms", f->all_verified_ms);
	set_real(object, "memcpy_ms", f->bare.memcpy_ms);
	set_real(object, "checksum_ms", f->bare.checksum_ms);
	set_real(object, "passes_ms", f->bare.passes_ms);
	if (way->gpu) {
		set_real(object, "h2d_gbps", f->h2d_gbps);
		if (!way->socket) {
			set_real(object, "pin_ms", f->pin_ms);
			set_real(object, "slot_free_ms", f->slot_free_ms);
		}
		return object;
	}
	set_real(object, "bound_ms", f->bound_ms);
	set_real(object, "over_bound", f->over_bound);
	return object;
}

int bench_json(const struct bench *bench, struct reason *why)
{
	json_t *object = json_object(), *ways = json_array();
	uint32_t i;

	set_string(object, "engine", bench->device ? "device" : "embedded");
	set_integer(object, "processors", (uint64_t)processors());
	set_integer(object, "bytes", bench->options->nbytes);
	set_integer(object, "rounds", bench->options->rounds);
	set_real(object, "put_us", bench->small.put_us);
	set_real(object, "view_us", bench->small.view_us);
	set_real(object, "release_us", bench->small.release_us);
	for (i = 0; i < bench->ways; i++)
		json_array_append_new(ways, way_json(bench, &bench->way[i]));
	json_object_set_new(object, "ways", ways);
	if (bench->no_gpu.text[0])
		set_string(object, "no_gpu", bench->no_gpu.text);
	return json_report(object, why);
}
