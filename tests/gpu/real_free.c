// SPDX-License-Identifier: MIT
/*
 * How late a slot is free while nobody calls, and what a view costs its caller.
 *
 * Every other round makes the CUDA calls by itself that the library makes, in
 * the same state of things: what is more than that is the library's.
 */
#include <pthread.h>
#include <stdio.h>

#include "real_bench.h"

#define ROUNDS 200
#define RELAXED 2
#define EVENT_FLAGS 3 /* no timing, blocking */

static struct {
	double late[2 * ROUNDS];
	double view[2 * ROUNDS];
	double copy[ROUNDS];
	double release[ROUNDS];
	double cuda_copy[ROUNDS];
	double cuda_release[ROUNDS];
} us;

struct putting {
	struct ta_writer *writer;
	size_t nbytes;
	struct ta_ticket ticket;
};

/* In a thread, as an engine's would be: its caches are not the worker's. */
static void *put(void *arg)
{
	struct putting *p = arg;

	OK(real_put(p->writer, p->nbytes, 1, &p->ticket));
	return NULL;
}

static void put_elsewhere(struct putting *p)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, put, p));
	pthread_join(thread, NULL);
}

/* Asking without end would keep others from doing their work. */
static void breathe(void)
{
	double until = real_us() + 2;

	while (real_us() < until)
		;
}

/* The calls of ta_copy_to_device() for a pinned slot. */
static void copy_by_hand(void *device, const void *data, size_t nbytes,
			 void *stream, void *event)
{
	unsigned long long id;
	int status;
	void *ctx;

	MUST(!du.StreamGetCtx(stream, &ctx));
	MUST(!du.CtxGetCurrent(&ctx));
	MUST(!du.CtxGetId(ctx, &id));
	MUST(!du.StreamIsCapturing(stream, &status));
	MUST(!du.MemcpyHtoDAsync((uintptr_t)device, data, nbytes, stream));
	MUST(!du.EventRecord(event, stream));
}

/* Those of ta_release(). */
static void look_by_hand(void *event)
{
	unsigned long long id;
	int mode = RELAXED;
	void *ctx;

	MUST(!du.CtxGetCurrent(&ctx));
	MUST(!du.CtxGetId(ctx, &id));
	du.ThreadExchangeStreamCaptureMode(&mode);
	du.EventQuery(event);
	du.ThreadExchangeStreamCaptureMode(&mode);
}

static void round_by_hand(int i, struct ta_view *view, void *device,
			  void *stream, void *event)
{
	double start = real_thread_cpu_us();

	copy_by_hand(device, view->data, view->nbytes, stream, event);
	us.cuda_copy[i] = real_thread_cpu_us() - start;
	start = real_thread_cpu_us();
	look_by_hand(event);
	us.cuda_release[i] = real_thread_cpu_us() - start;
	OK(ta_release_after(view, stream));
	OK(ta_release(view));
}

static void round_by_library(int i, struct ta_view *view, void *device,
			     void *stream)
{
	double start = real_thread_cpu_us();

	OK(ta_copy_to_device(view, device, 0, view->nbytes, stream));
	us.copy[i] = real_thread_cpu_us() - start;
	start = real_thread_cpu_us();
	OK(ta_release(view));
	us.release[i] = real_thread_cpu_us() - start;
}

static void await_free(int i, struct ta_writer *writer, void *stream)
{
	double end;

	while (cu.StreamQuery(stream) == NOT_READY)
		breathe();
	end = real_us();
	while (!real_free_slots(writer))
		breathe();
	us.late[i] = real_us() - end;
}

static void print(const char *key, double *value, size_t n, const char *end)
{
	printf("    \"%s\": ", key);
	real_print_spread(value, n);
	printf("%s\n", end);
}

void bench_free(size_t nbytes, const char *name)
{
	struct putting p = { real_writer(1, nbytes, 1), nbytes, { 0 } };
	void *stream = real_stream(), *event;
	void *device = real_malloc(nbytes);
	struct ta_reader *reader;
	struct ta_view *view;
	double start;
	int i;

	MUST(!du.EventCreate(&event, EVENT_FLAGS));
	OK(ta_attach(ta_handle(p.writer), &reader));
	for (i = 0; i < 2 * ROUNDS; i++) {
		put_elsewhere(&p);
		start = real_thread_cpu_us();
		OK(ta_view(reader, &p.ticket, &view));
		us.view[i] = real_thread_cpu_us() - start;
		if (i % 2)
			round_by_library(i / 2, view, device, stream);
		else
			round_by_hand(i / 2, view, device, stream, event);
		await_free(i, p.writer, stream);
	}
	printf("  \"%s\": {\n", name);
	print("slot_free_after_dma_us", us.late, 2 * ROUNDS, ",");
	print("cpu_us_ta_view", us.view, 2 * ROUNDS, ",");
	print("cpu_us_ta_copy_to_device", us.copy, ROUNDS, ",");
	print("cpu_us_cudas_part_of_copy", us.cuda_copy, ROUNDS, ",");
	print("cpu_us_ta_release", us.release, ROUNDS, ",");
	print("cpu_us_cudas_part_of_release", us.cuda_release, ROUNDS, "");
	printf("  },\n");
	MUST(!du.EventDestroy(event));
	CUDA(Free(device));
	ta_reader_close(reader);
	ta_writer_close(p.writer);
}
