// SPDX-License-Identifier: MIT
/*
 * The report on a file of many tensors, for people.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broadcast_stream.h"
#include "checksum.h"
#include "median.h"

#define MIB (1024.0 * 1024.0)

double stream_load_ms(const struct stream_tensor *t)
{
	return t->sent ? median(t->ms, t->sent) : 0;
}

double stream_gbps(const struct stream_round *r)
{
	return r->load_ms > 0 ? (double)r->bytes / 1e6 / r->load_ms : 0;
}

/* As it is, but for what a terminal would take for a command. */
static void print_name(const struct ta_tensor *t)
{
	uint32_t i;

	for (i = 0; i < t->tag_bytes; i++)
		putchar(t->tag[i] < ' ' || t->tag[i] == 0x7f ? '?' : t->tag[i]);
}

static void print_shape(const struct ta_tensor *t)
{
	uint32_t i;

	putchar('[');
	for (i = 0; i < t->ndim; i++)
		printf("%s%" PRId64, i ? ", " : "", t->shape[i]);
	putchar(']');
}

static void print_tensor(const struct stream *s, const struct stream_tensor *t)
{
	char dtype[32];

	ta_dtype_name(&t->from->tensor, dtype, sizeof(dtype));
	printf("%12" PRIu64 "  ", t->from->nbytes);
	if (t->err)
		printf("%-25s  ", "declined");
	else
		printf("%9.3f %4u/%-4u %5s  ", t->ms[0], t->verified,
		       s->b->options->readers, "");
	printf("%-10s ", dtype);
	print_name(&t->from->tensor);
	putchar(' ');
	print_shape(&t->from->tensor);
	if (t->err)
		printf(": %s", ta_strerror(t->err));
	putchar('\n');
}

void stream_report_tensors(const struct stream *s)
{
	uint32_t i;

	puts("       bytes    load ms  verified        dtype      name, shape");
	for (i = 0; i < s->nr; i++)
		print_tensor(s, &s->tensor[i]);
	puts("\nround  tensors  verified        MiB    load ms   GB/s  "
	     "all verified ms  declines");
}

void stream_report_round(const struct stream *s, uint32_t i)
{
	const struct stream_round *r = &s->round[i];

	printf("%5u  %7u  %8u %10.1f %10.2f %6.2f %16.2f  %8u\n", i + 1,
	       r->tensors, r->verified, (double)r->bytes / MIB, r->load_ms,
	       stream_gbps(r), r->all_verified_ms, r->declined);
	fflush(stdout);
}

void stream_report_end(const struct stream *s)
{
	const struct ta_load_stats *l = &s->load;

	printf("\n%u of %u tensors were seen exactly by all %u workers in "
	       "every round (%s, computed by each process for itself%s).\n",
	       stream_verified(s), s->nr, s->b->options->readers, CHECKSUM_NAME,
	       s->b->options->gpu ? ", from what its GPU has" : "");
	printf("Slot memory: %.1f MiB, shared by all.\n",
	       (double)s->b->slot_memory / MIB);
	printf("Loaded: %.1f MiB straight from the disk, %.1f MiB from there "
	       "by "
	       "way of a buffer, %.1f MiB that were cached, %.1f MiB through "
	       "the cache.\n",
	       (double)l->direct_bytes / MIB, (double)l->bounced_bytes / MIB,
	       (double)l->cached_bytes / MIB, (double)l->buffered_bytes / MIB);
	puts("The first round has the file read once more, for the "
	     "checksums.");
}
