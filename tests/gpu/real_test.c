// SPDX-License-Identifier: MIT
/*
 * The library and a real GPU.  Each test is a process of its own, because a
 * context cannot be left again and because some do not end well.
 *
 * Results as TAP, without a framework, so that the program runs where there is
 * nothing but a driver and a runtime.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real_cuda.h"

#define TENSOR (64 * MIB)

/* A test ends with this when there are not GPUs enough for it. */
#define SKIP_CODE 77

static struct ta_writer *writer;
static struct ta_reader *reader;
static void *stream;
static char *device;

/* This process is engine and worker at once, on GPU 0. */
static void open_all(uint32_t slots, size_t slot_bytes)
{
	CUDA(SetDevice(0));
	stream = real_stream();
	device = real_malloc(slot_bytes);
	writer = real_writer(slots, slot_bytes, 1);
	OK(ta_attach(ta_handle(writer), &reader));
}

static void close_all(void)
{
	ta_reader_close(reader);
	ta_writer_close(writer);
	CUDA(GetLastError());
}

static struct ta_view *view_of(size_t nbytes, uint64_t seed)
{
	struct ta_ticket ticket;
	struct ta_view *view;

	OK(real_put(writer, nbytes, seed, &ticket));
	OK(ta_view(reader, &ticket, &view));
	return view;
}

static struct ta_cuda_stats stats(void)
{
	struct ta_cuda_stats s;

	OK(ta_cuda_stats(reader, &s, NULL, 0));
	return s;
}

static void no_context_is_made_for_a_process_that_has_none(void)
{
	struct ta_view *view;

	MUST(real_contexts() == 0);
	writer = real_writer(2, TENSOR, 1);
	OK(ta_attach(ta_handle(writer), &reader));
	view = view_of(TENSOR, 1);
	MUST(ta_copy_to_device(view, &view, 0, 1, NULL) == -ENODEV);
	MUST(ta_cuda_prepare(reader, NULL) == -ENODEV);
	OK(ta_release(view));
	MUST(stats().pins == 0);
	ta_reader_close(reader);
	ta_writer_close(writer);
	MUST(real_contexts() == 0);
}

static bool is_mapped_read_only(const void *at)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512], prot[8];
	bool found = false;

	MUST(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, prot) == 3 &&
		    (unsigned long)at >= start && (unsigned long)at < end)
			found = !strcmp(prot, "r--s");
	fclose(maps);
	return found;
}

static void read_only_mapping_is_registered_and_copied(void)
{
	struct ta_view *view;

	open_all(2, TENSOR);
	view = view_of(TENSOR, 1);
	MUST(is_mapped_read_only(view->data));
	MUST(stats().pinned_bytes == TENSOR);
	MUST(stats().pins == 1 && stats().pin_failures == 0);
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	OK(ta_release(view));
	CUDA(StreamSynchronize(stream));
	MUST(real_check(device, TENSOR, 1));
	printf("# 64 MiB pinned in %.2f ms\n", stats().pin_ns / 1e6);
	close_all();
}

static void slot_is_not_used_again_while_a_dma_is_in_flight(void)
{
	static volatile int go;
	struct ta_view *view;
	struct ta_ticket ticket;

	open_all(1, TENSOR);
	view = view_of(TENSOR, 1);
	real_hold(stream, &go);
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	OK(ta_release(view));
	usleep(100000);
	MUST(real_put(writer, TENSOR, 2, &ticket) == -EAGAIN);
	MUST(stats().pending == 1);
	go = 1;
	/* Nothing is called on the reader from here on. */
	MUST(real_await_free(writer, 1));
	OK(real_put(writer, TENSOR, 2, &ticket));
	CUDA(StreamSynchronize(stream));
	MUST(real_check(device, TENSOR, 1));
	close_all();
}

static void retained_views_stay_right_across_many_steps(void)
{
	struct ta_view *kept[3];
	struct ta_view *view;
	int i, step;

	open_all(5, MIB);
	for (i = 0; i < 3; i++)
		kept[i] = view_of(MIB, 100 + i);
	for (step = 0; step < 200; step++) {
		MUST(real_await_free(writer, 1));
		view = view_of(MIB, step);
		OK(ta_copy_to_device(view, device, 0, MIB, stream));
		OK(ta_release(view));
		CUDA(StreamSynchronize(stream));
		MUST(real_check(device, MIB, step));
		i = step % 3;
		OK(ta_copy_to_device(kept[i], device, 0, MIB, stream));
		CUDA(StreamSynchronize(stream));
		MUST(real_check(device, MIB, 100 + i));
	}
	for (i = 0; i < 3; i++)
		OK(ta_release(kept[i]));
	MUST(real_await_free(writer, 5));
	close_all();
}

static void slot_waits_for_several_streams(void)
{
	static volatile int go[2];
	struct ta_view *view;
	char *second;
	void *side;

	open_all(1, TENSOR);
	side = real_stream();
	second = real_malloc(TENSOR);
	view = view_of(TENSOR, 1);
	real_hold(stream, &go[0]);
	real_hold(side, &go[1]);
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	/* The caller's own copy in a side stream. */
	CUDA(MemcpyAsync(second, view->data, TENSOR, H2D, side));
	OK(ta_release_after(view, side));
	OK(ta_release(view));
	go[0] = 1;
	CUDA(StreamSynchronize(stream));
	usleep(50000);
	MUST(real_free_slots(writer) == 0);
	go[1] = 1;
	MUST(real_await_free(writer, 1));
	CUDA(StreamSynchronize(side));
	MUST(real_check(device, TENSOR, 1) && real_check(second, TENSOR, 1));
	close_all();
}

static void two_gpus_get_the_same_slot(void)
{
	struct ta_view *view;
	void *other_stream;
	char *other;

	if (real_devices() < 2)
		exit(SKIP_CODE);
	CUDA(SetDevice(1));
	other_stream = real_stream();
	other = real_malloc(TENSOR);
	open_all(1, TENSOR);
	view = view_of(TENSOR, 1);
	/* GPU 0 is current; the second stream is not its. */
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	OK(ta_copy_to_device(view, other, 0, TENSOR, other_stream));
	OK(ta_release(view));
	MUST(real_await_free(writer, 1));
	MUST(stats().pins == 1 && stats().errors == 0);
	MUST(real_check(device, TENSOR, 1));
	CUDA(SetDevice(1));
	MUST(real_check(other, TENSOR, 1));
	CUDA(SetDevice(0));
	close_all();
}

static void capture_is_refused_and_not_disturbed(void)
{
	static volatile int go;
	struct ta_view *view, *waiting;
	void *captured, *graph;

	open_all(2, TENSOR);
	captured = real_stream();
	waiting = view_of(MIB, 1);
	real_hold(stream, &go);
	OK(ta_copy_to_device(waiting, device, 0, MIB, stream));
	OK(ta_release(waiting));
	view = view_of(MIB, 2);
	/* Global mode: what the helper asks must not break it. */
	CUDA(StreamBeginCapture(captured, 0));
	MUST(ta_copy_to_device(view, device, 0, MIB, captured) == -EINPROGRESS);
	MUST(ta_release_after(view, captured) == -EINPROGRESS);
	usleep(20000);
	OK(ta_copy_to_device(view, device + MIB, 0, MIB, stream));
	MUST(stats().pending == 1);
	CUDA(StreamEndCapture(captured, &graph));
	MUST(graph);
	go = 1;
	OK(ta_release(view));
	MUST(real_await_free(writer, 2));
	MUST(real_check(device, MIB, 1) && real_check(device + MIB, MIB, 2));
	close_all();
}

static void device_error_frees_the_slot_and_is_reported(void)
{
	static volatile int go;
	struct ta_view *view;
	void *trap;

	open_all(1, TENSOR);
	trap = real_trap_load();
	view = view_of(TENSOR, 1);
	real_hold(stream, &go);
	real_trap(trap, stream);
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	OK(ta_release(view));
	MUST(real_free_slots(writer) == 0);
	go = 1;
	MUST(real_await_free(writer, 1));
	MUST(stats().error != 0);
	MUST(strstr(stats().error_text, "CUDA_ERROR_LAUNCH_FAILED"));
	printf("# %s\n", stats().error_text);
	view = view_of(MIB, 2);
	MUST(ta_copy_to_device(view, device, 0, MIB, stream) == -EREMOTEIO);
	OK(ta_release(view));
	MUST(real_free_slots(writer) == 1);
	ta_reader_close(reader);
	ta_writer_close(writer);
}

static long rss_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kib = 0;

	MUST(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "RssAnon: %ld", &kib);
	fclose(status);
	return kib;
}

static void ten_thousand_tensors_leave_no_trace(void)
{
	struct ta_cuda_stats early = { 0 }, late;
	struct ta_view *view;
	long before = 0;
	int i;

	open_all(4, MIB);
	for (i = 0; i < 10000; i++) {
		MUST(real_await_free(writer, 1));
		view = view_of(64 * KIB, i);
		OK(ta_copy_to_device(view, device, 0, 64 * KIB, stream));
		OK(ta_release(view));
		if (i == 500) {
			early = stats();
			before = rss_kib();
		}
	}
	CUDA(StreamSynchronize(stream));
	MUST(real_check(device, 64 * KIB, 9999));
	late = stats();
	MUST(late.pins == early.pins);
	MUST(late.pinned_bytes == early.pinned_bytes);
	MUST(late.events <= 5);
	MUST(late.errors == 0);
	printf("# anonymous memory: %ld KiB after 500 tensors, %ld after "
	       "10,000\n",
	       before, rss_kib());
	MUST(rss_kib() < before + 4096);
	close_all();
}

static void tensor_goes_from_the_gpu_into_a_loan(void)
{
	struct ta_loan *loan;
	struct ta_view *view;
	char *host, *back;

	open_all(1, TENSOR);
	host = malloc(TENSOR);
	back = real_malloc(TENSOR);
	MUST(host);
	real_fill(host, TENSOR, 7);
	CUDA(Memcpy(device, host, TENSOR, H2D));
	OK(ta_loan(writer, TENSOR, &loan));
	/* Half by the library, half by the caller. */
	OK(ta_copy_from_device(loan, 0, device, TENSOR / 2, stream));
	CUDA(MemcpyAsync((char *)loan->data + TENSOR / 2, device + TENSOR / 2,
			 TENSOR / 2, D2H, stream));
	OK(ta_commit_after(loan, stream, TENSOR, NULL, NULL));
	OK(ta_next(reader, 1000, &view));
	MUST(!memcmp(view->data, host, TENSOR));
	OK(ta_copy_to_device(view, back, 0, TENSOR, stream));
	OK(ta_release(view));
	CUDA(StreamSynchronize(stream));
	MUST(real_check(back, TENSOR, 7));
	close_all();
}

static void process_may_attach_twice_and_prepare(void)
{
	struct ta_reader *first, *second;
	uint32_t pinned;

	CUDA(SetDevice(0));
	CUDA(Free(NULL));
	writer = real_writer(4, TENSOR, 2);
	OK(ta_populate(writer, 4, TENSOR));
	OK(ta_attach(ta_handle(writer), &first));
	OK(ta_attach(ta_handle(writer), &second));
	OK(ta_cuda_prepare(first, &pinned));
	MUST(pinned == 4);
	OK(ta_cuda_prepare(second, &pinned));
	MUST(pinned == 4);
	ta_reader_close(first);
	ta_reader_close(second);
	ta_writer_close(writer);
	CUDA(GetLastError());
}

static void program_without_a_runtime_of_its_own_is_served(void)
{
	struct ta_view *view;

	real_driver_context();
	writer = real_writer(1, TENSOR, 1);
	OK(ta_attach(ta_handle(writer), &reader));
	view = view_of(TENSOR, 1);
	MUST(stats().pins == 1 && stats().cuda_version > 0);
	OK(ta_release(view));
	ta_reader_close(reader);
	ta_writer_close(writer);
}

static void programs_own_error_stays_for_it_to_find(void)
{
	static volatile int go;
	struct ta_view *view;
	int pending;

	open_all(1, TENSOR);
	pending = cu.Memcpy(NULL, NULL, 1, -1);
	MUST(pending);
	view = view_of(TENSOR, 1);
	real_hold(stream, &go);
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	OK(ta_release(view));
	MUST(stats().pending == 1);
	go = 1;
	MUST(real_await_free(writer, 1));
	MUST(cu.GetLastError() == pending);
	MUST(real_check(device, TENSOR, 1));
	close_all();
}

static void copy_and_free(uint64_t seed)
{
	struct ta_view *view = view_of(TENSOR, seed);

	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	OK(ta_release(view));
	MUST(real_await_free(writer, 1));
	MUST(real_check(device, TENSOR, seed));
}

static void work_goes_on_after_a_device_reset(void)
{
	struct ta_view *view;

	open_all(1, TENSOR);
	copy_and_free(1);
	CUDA(DeviceReset());
	MUST(real_contexts() == 0);
	view = view_of(TENSOR, 2);
	MUST(ta_copy_to_device(view, device, 0, 1, NULL) == -ENODEV);
	OK(ta_release(view));
	MUST(real_contexts() == 0);

	stream = real_stream();
	device = real_malloc(TENSOR);
	copy_and_free(3);
	printf("# errors %d, %s\n", (int)stats().errors, stats().error_text);
	copy_and_free(4);
	MUST(stats().pinned_slots == 1 && stats().pins == 2);
	close_all();
}

/* ---- deaths: engine and reader are processes of their own ---- */

static int pair[2];

static void tell(char what)
{
	MUST(send(pair[1], &what, 1, MSG_NOSIGNAL) == 1);
}

static void hear(char what)
{
	char c = 0;

	MUST(recv(pair[0], &c, 1, 0) == 1);
	MUST(c == what);
}

/* A child that dies with its parent, with its end of the pair in pair[1]. */
static pid_t start(void (*role)(const char *handle), const char *handle)
{
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		close(pair[0]);
		role(handle);
		_exit(0);
	}
	close(pair[1]);
	return pid;
}

static void kill_and_reap(pid_t pid)
{
	MUST(!kill(pid, SIGKILL));
	MUST(waitpid(pid, NULL, 0) == pid);
}

static void reader_that_hangs(const char *handle)
{
	static volatile int never;
	struct ta_view *view;

	MUST(!real_load());
	CUDA(SetDevice(0));
	stream = real_stream();
	device = real_malloc(TENSOR);
	OK(ta_attach(handle, &reader));
	OK(ta_next(reader, 10000, &view));
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	real_hold(stream, &never);
	OK(ta_release_after(view, stream));
	OK(ta_release(view));
	tell('c');
	pause();
}

static void killed_reader_gives_its_slot_back(void)
{
	struct ta_ticket ticket;
	pid_t pid;

	writer = real_writer(1, TENSOR, 1);
	OK(real_put(writer, TENSOR, 1, &ticket));
	pid = start(reader_that_hangs, ta_handle(writer));
	hear('c');
	MUST(real_free_slots(writer) == 0);
	kill_and_reap(pid);
	MUST(real_await_free(writer, 1));
	ta_writer_close(writer);
}

static void engine_that_dies(const char *unused)
{
	char handle[TA_HANDLE_MAX] = "";

	(void)unused;
	writer = real_writer(1, TENSOR, 1);
	strcpy(handle, ta_handle(writer));
	MUST(send(pair[1], handle, sizeof(handle), 0) == sizeof(handle));
	OK(real_put(writer, TENSOR, 1, NULL));
	pause();
}

static void copy_completes_though_the_engine_is_killed(void)
{
	static volatile int go;
	char handle[TA_HANDLE_MAX];
	struct ta_view *view;
	pid_t pid;

	pid = start(engine_that_dies, NULL);
	MUST(recv(pair[0], handle, sizeof(handle), 0) == sizeof(handle));
	MUST(!real_load());
	CUDA(SetDevice(0));
	stream = real_stream();
	device = real_malloc(TENSOR);
	OK(ta_attach(handle, &reader));
	OK(ta_next(reader, 10000, &view));
	real_hold(stream, &go);
	OK(ta_copy_to_device(view, device, 0, TENSOR, stream));
	kill_and_reap(pid);
	usleep(100000);
	go = 1;
	CUDA(StreamSynchronize(stream));
	MUST(real_check(device, TENSOR, 1));
	OK(ta_release(view));
	MUST(ta_next(reader, 0, &view) == -EPIPE);
	ta_reader_close(reader);
	CUDA(GetLastError());
}

static void bandwidth_is_that_of_cudas_own_pinned_memory(void)
{
	enum {
		ROUNDS = 15
	};
	double own[ROUNDS], slot[ROUNDS], start, ratio;
	size_t nbytes = 200 * MIB;
	struct ta_view *view;
	void *host;
	int i;

	open_all(1, nbytes);
	view = view_of(nbytes, 1);
	CUDA(MallocHost(&host, nbytes));
	memset(host, 1, nbytes);
	for (i = 0; i < ROUNDS; i++) {
		start = real_us();
		CUDA(MemcpyAsync(device, host, nbytes, H2D, stream));
		CUDA(StreamSynchronize(stream));
		own[i] = real_us() - start;
		start = real_us();
		OK(ta_copy_to_device(view, device, 0, nbytes, stream));
		CUDA(StreamSynchronize(stream));
		slot[i] = real_us() - start;
	}
	MUST(real_check(device, nbytes, 1));
	ratio = real_median(own, ROUNDS) / real_median(slot, ROUNDS);
	printf("# slot %.2f GB/s, cudaMallocHost %.2f GB/s: %.1f%%\n",
	       nbytes / real_median(slot, ROUNDS) / 1e3,
	       nbytes / real_median(own, ROUNDS) / 1e3, ratio * 100);
	MUST(ratio >= 0.95);
	OK(ta_release(view));
	close_all();
}

/* ---- running them ---- */

#define TEST(function)                                                         \
	{                                                                      \
#function, function, false                                     \
	}
/*
 * It begins without CUDA: one that forks must, because a child cannot use what
 * its parent has initialised.
 */
#define BARE_TEST(function)                                                    \
	{                                                                      \
#function, function, true                                      \
	}

static const struct {
	const char *name;
	void (*run)(void);
	bool bare;
} tests[] = {
	TEST(no_context_is_made_for_a_process_that_has_none),
	TEST(read_only_mapping_is_registered_and_copied),
	TEST(slot_is_not_used_again_while_a_dma_is_in_flight),
	TEST(retained_views_stay_right_across_many_steps),
	TEST(slot_waits_for_several_streams),
	TEST(two_gpus_get_the_same_slot),
	TEST(capture_is_refused_and_not_disturbed),
	TEST(device_error_frees_the_slot_and_is_reported),
	TEST(ten_thousand_tensors_leave_no_trace),
	TEST(tensor_goes_from_the_gpu_into_a_loan),
	TEST(process_may_attach_twice_and_prepare),
	BARE_TEST(program_without_a_runtime_of_its_own_is_served),
	BARE_TEST(killed_reader_gives_its_slot_back),
	BARE_TEST(copy_completes_though_the_engine_is_killed),
	TEST(bandwidth_is_that_of_cudas_own_pinned_memory),
	TEST(programs_own_error_stays_for_it_to_find),
	TEST(work_goes_on_after_a_device_reset),
};

#define NR_TESTS ((int)(sizeof(tests) / sizeof(*tests)))

/* Test -1 is whether there is anything to test on. */
static int run_test(int i)
{
	const char *why = NULL;

	if (i < 0 || !tests[i].bare)
		why = real_load();
	if (why) {
		printf("# %s\n", why);
		return SKIP_CODE;
	}
	/* A hang is a failure as well. */
	alarm(60);
	if (i >= 0)
		tests[i].run();
	return 0;
}

static int status_of(int i)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(run_test(i));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* With numbers, counted from 1, as arguments: only those. */
static bool wanted(int i, int argc, char **argv)
{
	int a;

	for (a = 1; a < argc; a++)
		if (atoi(argv[a]) == i + 1)
			return true;
	return argc < 2;
}

static bool is_skip(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == SKIP_CODE;
}

int main(int argc, char **argv)
{
	int failed = 0;
	int i, status;

	if (is_skip(status_of(-1))) {
		puts("1..0 # SKIP there is no GPU here, or no CUDA");
		return 0;
	}
	printf("1..%d\n", argc < 2 ? NR_TESTS : argc - 1);
	for (i = 0; i < NR_TESTS; i++) {
		if (!wanted(i, argc, argv))
			continue;
		status = status_of(i);
		if (!status) {
			printf("ok %d - %s\n", i + 1, tests[i].name);
		} else if (is_skip(status)) {
			printf("ok %d - %s # SKIP needs more GPUs\n", i + 1,
			       tests[i].name);
		} else {
			printf("not ok %d - %s\n# wait status %d\n", i + 1,
			       tests[i].name, status);
			failed++;
		}
	}
	return failed ? 1 : 0;
}
