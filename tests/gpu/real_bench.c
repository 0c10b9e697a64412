// SPDX-License-Identifier: MIT
/*
 * Figures of the library on a real GPU, as one JSON object.  They assert
 * nothing; real_test.c does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "real_bench.h"

#define ROUNDS 31
#define LARGE (204 * MIB)

static void say_machine(void)
{
	int runtime, driver;
	char name[128];

	CUDA(RuntimeGetVersion(&runtime));
	CUDA(DriverGetVersion(&driver));
	real_device_name(name, sizeof(name));
	printf("  \"gpu\": \"%s\", \"gpus\": %d, \"runtime\": %d, "
	       "\"driver_api\": %d, \"cores\": %ld,\n",
	       name, real_devices(), runtime, driver,
	       sysconf(_SC_NPROCESSORS_ONLN));
}

/* What registering costs, on the first view and ahead of it. */
static void bench_pin(void)
{
	struct ta_writer *writer = real_writer(4, 256 * MIB, 1);
	struct ta_cuda_slot rows[4];
	struct ta_cuda_stats stats;
	struct ta_reader *reader;
	struct ta_ticket ticket;
	struct ta_view *view;
	double start, first, second, prepare;

	OK(ta_attach(ta_handle(writer), &reader));
	OK(real_put(writer, LARGE, 1, &ticket));
	start = real_us();
	OK(ta_view(reader, &ticket, &view));
	first = real_us() - start;
	OK(ta_cuda_stats(reader, &stats, rows, 4));
	OK(ta_release(view));
	OK(real_put(writer, LARGE, 1, &ticket));
	start = real_us();
	OK(ta_view(reader, &ticket, &view));
	second = real_us() - start;
	OK(ta_release(view));
	OK(ta_populate(writer, 4, 256 * MIB));
	start = real_us();
	OK(ta_cuda_prepare(reader, NULL));
	prepare = real_us() - start;
	printf("  \"pin\": {\"first_view_ms\": %.2f, \"of_that_register_ms\": "
	       "%.2f, \"registered_bytes\": %llu, \"later_view_us\": %.1f, "
	       "\"prepare_3_more_slots_ms\": %.2f, ",
	       first / 1e3, stats.pin_ns / 1e6,
	       (unsigned long long)stats.pinned_bytes, second, prepare / 1e3);
	start = real_us();
	ta_reader_close(reader);
	printf("\"close_4_slots_ms\": %.2f},\n", (real_us() - start) / 1e3);
	ta_writer_close(writer);
}

static double copied_us(void *dst, const void *src, size_t nbytes, int kind,
			void *stream)
{
	double start = real_us();

	CUDA(MemcpyAsync(dst, src, nbytes, kind, stream));
	CUDA(StreamSynchronize(stream));
	return real_us() - start;
}

static double gbs(double *us, size_t nbytes)
{
	return nbytes / real_median(us, ROUNDS) / 1e3;
}

static void bench_bandwidth(void)
{
	struct ta_writer *writer = real_writer(1, LARGE, 2);
	double own[ROUNDS], slot[ROUNDS], bare[ROUNDS], back[ROUNDS];
	void *stream = real_stream();
	void *device = real_malloc(LARGE), *host;
	struct ta_reader *reader, *unpinned;
	struct ta_view *view, *plain;
	struct ta_ticket ticket;
	struct ta_loan *loan;
	int i;

	OK(ta_attach(ta_handle(writer), &reader));
	OK(ta_attach(ta_handle(writer), &unpinned));
	OK(ta_cuda_pin_budget(unpinned, 0));
	OK(real_put(writer, LARGE, 1, &ticket));
	OK(ta_view(reader, &ticket, &view));
	OK(ta_view(unpinned, &ticket, &plain));
	CUDA(MallocHost(&host, LARGE));
	memset(host, 1, LARGE);
	for (i = 0; i < ROUNDS; i++) {
		double start;

		own[i] = copied_us(device, host, LARGE, H2D, stream);
		start = real_us();
		OK(ta_copy_to_device(view, device, 0, LARGE, stream));
		CUDA(StreamSynchronize(stream));
		slot[i] = real_us() - start;
		start = real_us();
		OK(ta_copy_to_device(plain, device, 0, LARGE, stream));
		CUDA(StreamSynchronize(stream));
		bare[i] = real_us() - start;
	}
	OK(ta_release(view));
	OK(ta_release(plain));
	for (i = 0; i < ROUNDS; i++) {
		double start = real_us();

		OK(ta_loan(writer, LARGE, &loan));
		OK(ta_copy_from_device(loan, 0, device, LARGE, stream));
		OK(ta_commit_after(loan, stream, LARGE, NULL, &ticket));
		back[i] = real_us() - start;
		OK(ta_view(reader, &ticket, &view));
		OK(ta_release(view));
		OK(ta_view(unpinned, &ticket, &view));
		OK(ta_release(view));
	}
	printf("  \"h2d_204MiB_GBps\": {\"slot\": %.2f, \"cudaMallocHost\": "
	       "%.2f, \"slot_not_pinned\": %.2f},\n"
	       "  \"d2h_204MiB_loan_to_commit_GBps\": %.2f,\n",
	       gbs(slot, LARGE), gbs(own, LARGE), gbs(bare, LARGE),
	       gbs(back, LARGE));
	CUDA(FreeHost(host));
	CUDA(Free(device));
	ta_reader_close(reader);
	ta_reader_close(unpinned);
	ta_writer_close(writer);
}

int main(void)
{
	const char *why = real_load();

	if (why) {
		fprintf(stderr, "no figures: %s\n", why);
		return 1;
	}
	CUDA(SetDevice(0));
	CUDA(Free(NULL));
	printf("{\n");
	say_machine();
	bench_pin();
	bench_bandwidth();
	bench_free(MIB, "idle_1MiB");
	bench_free(32 * MIB, "idle_32MiB");
	bench_free(LARGE, "idle_204MiB");
	bench_idle();
	printf("}\n");
	return 0;
}
