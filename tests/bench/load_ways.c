// SPDX-License-Identifier: MIT
/* One pass over the file, each way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "load_bench.h"

/* As cp and cat read. */
#define READ_CHUNK MIB

const char *const way_name[WAYS] = {
	[FIO_LARGE] = "fio_1m_16",
	[FIO_SMALL] = "fio_128k_32",
	[FIO_WIDE] = "fio_128k_2048",
	[LOAD_COLD] = "load_cold",
	[LOAD_COLD_ODD] = "load_cold_odd",
	[READ_COLD] = "read_cold",
	[COLD_UNREGISTERED] = "load_cold_unregistered",
	[COLD_NO_RING] = "load_cold_no_io_uring",
	[COLD_NO_DIRECT] = "load_cold_no_o_direct",
	[LOAD_CACHED] = "load_cached",
	[LOAD_CACHED_ODD] = "load_cached_odd",
	[READ_CACHED] = "read_cached",
};

void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "load_bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must_ta(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "load_bench: %s: %s\n", what, ta_strerror(err));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of this process and the kernel's threads that work for it. */
static double cpu_now(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void evict(const struct bench *b)
{
	must(!posix_fadvise(b->fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
}

static void cache(const struct bench *b)
{
	char *scratch = malloc(READ_CHUNK);
	uint64_t at;

	must(scratch, "malloc");
	for (at = 0; at < b->nbytes; at += READ_CHUNK)
		must(pread(b->fd, scratch, READ_CHUNK, (off_t)at) > 0, "pread");
	free(scratch);
}

static void load(struct bench *b, uint64_t offset, size_t nbytes)
{
	struct ta_view *view;

	must_ta(ta_load_file(b->writer, b->fd, offset, nbytes, NULL, NULL),
		"ta_load_file");
	must_ta(ta_next(b->reader, 0, &view), "ta_next");
	must_ta(ta_release(view), "ta_release");
}

/* What a program without ta_load_file() would do: read() into a loan. */
static void read_into_slot(struct bench *b, uint64_t offset, size_t nbytes)
{
	struct ta_loan *loan;
	struct ta_view *view;
	size_t done, want;
	ssize_t n;

	must_ta(ta_loan(b->writer, nbytes, &loan), "ta_loan");
	for (done = 0; done < nbytes; done += (size_t)n) {
		want = nbytes - done < READ_CHUNK ? nbytes - done : READ_CHUNK;
		n = pread(b->fd, (char *)loan->data + done, want,
			  (off_t)(offset + done));
		must(n > 0, "pread");
	}
	must_ta(ta_commit(loan, nbytes, NULL, NULL), "ta_commit");
	must_ta(ta_next(b->reader, 0, &view), "ta_next");
	must_ta(ta_release(view), "ta_release");
}

typedef void pass_fn(struct bench *b, uint64_t offset, size_t nbytes);

/* From @offset to the end, tensor by tensor. */
static void pass(struct bench *b, pass_fn *fn, uint64_t offset,
		 struct sample *sample)
{
	double start = now(), cpu = cpu_now();
	uint64_t at, left;

	for (at = offset; at < b->nbytes; at += TENSOR_BYTES) {
		left = b->nbytes - at;
		fn(b, at, left < TENSOR_BYTES ? left : TENSOR_BYTES);
	}
	sample->seconds = now() - start;
	sample->cpu_seconds = cpu_now() - cpu;
	sample->nbytes = b->nbytes - offset;
}

static void load_all(struct bench *b, struct sample *sample)
{
	pass(b, load, 0, sample);
}

void measure(struct bench *b, enum way way, struct sample *sample)
{
	if (way == LOAD_CACHED || way == LOAD_CACHED_ODD || way == READ_CACHED)
		cache(b);
	else
		evict(b);
	switch (way) {
	case FIO_LARGE:
		run_fio(b, "--bs=1m --iodepth=16", sample);
		break;
	case FIO_SMALL:
		run_fio(b, "--bs=128k --iodepth=32", sample);
		break;
	case FIO_WIDE:
		/* Into as much memory as a tensor takes, as loads have to. */
		run_fio(b, "--bs=128k --iodepth=2048", sample);
		break;
	case COLD_UNREGISTERED:
		in_sandbox(b, SYS_io_uring_register, 0, load_all, sample);
		break;
	case COLD_NO_RING:
		in_sandbox(b, SYS_io_uring_setup, 0, load_all, sample);
		break;
	case COLD_NO_DIRECT:
		in_sandbox(b, SYS_openat, O_DIRECT, load_all, sample);
		break;
	case READ_COLD:
	case READ_CACHED:
		pass(b, read_into_slot, 0, sample);
		break;
	case LOAD_COLD_ODD:
	case LOAD_CACHED_ODD:
		pass(b, load, ODD_OFFSET, sample);
		break;
	default:
		load_all(b, sample);
		break;
	}
}

static double time_one(struct bench *b, pass_fn *fn, uint64_t offset,
		       size_t nbytes, bool cold)
{
	char *scratch;
	double start;

	if (cold) {
		evict(b);
	} else {
		scratch = malloc(nbytes);
		must(scratch && pread(b->fd, scratch, nbytes, (off_t)offset) ==
					(ssize_t)nbytes,
		     "pread");
		free(scratch);
	}
	start = now();
	fn(b, offset, nbytes);
	return now() - start;
}

double time_load(struct bench *b, uint64_t offset, size_t nbytes, bool cold)
{
	return time_one(b, load, offset, nbytes, cold);
}

double time_read(struct bench *b, uint64_t offset, size_t nbytes, bool cold)
{
	return time_one(b, read_into_slot, offset, nbytes, cold);
}
