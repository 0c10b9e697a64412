// SPDX-License-Identifier: MIT
/*
 * A worker process: attaches to the arena, looks at every tensor it gets a
 * ticket for, and says what it saw.  It does not know what it ought to see.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "broadcast.h"
#include "broadcast_worker.h"
#include "checksum.h"
#include "clock.h"
#include "tarena.h"

int worker_get(void *message, size_t nbytes)
{
	ssize_t n;

	do
		n = recv(WIRE_FD, message, nbytes, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)nbytes ? 0 : -1;
}

int worker_answer(const void *message, size_t nbytes)
{
	ssize_t n;

	do
		n = send(WIRE_FD, message, nbytes, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)nbytes ? 0 : -1;
}

/* What the GPU got; what went wrong there is said here, by its own name. */
static int look_there(struct gpu *gpu, struct ta_reader *reader,
		      struct ta_view *view, struct wire_seen *seen)
{
	struct gpu_seen there = { 0 };
	struct ta_cuda_stats stats;
	struct reason why;
	int err;

	err = gpu_look(gpu, view, &there, &why);
	if (ta_cuda_stats(reader, &stats, NULL, 0))
		memset(&stats, 0, sizeof(stats));
	if (err) {
		complain("%s %s", why.text, stats.error_text);
		return -EREMOTEIO;
	}
	seen->digest = there.digest;
	seen->h2d_ms = there.h2d_ms;
	seen->end_ms = there.end_ms;
	seen->pin_ms = stats.pin_ns / 1e6;
	return 0;
}

/* @gpu: where the tensor is to go, or NULL. */
static void look(struct ta_reader *reader, struct gpu *gpu,
		 const struct ta_ticket *ticket, struct wire_seen *seen)
{
	double start = clock_ms(), releasing;
	struct ta_view *view;

	memset(seen, 0, sizeof(*seen));
	seen->err = ta_view(reader, ticket, &view);
	if (seen->err)
		return;
	seen->view_ms = clock_ms() - start;
	seen->nbytes = view->nbytes;
	seen->tensor = view->tensor;
	if (gpu) {
		seen->err = look_there(gpu, reader, view, seen);
	} else {
		seen->digest = checksum(view->data, view->nbytes);
		releasing = clock_ms();
		seen->err = ta_release(view);
		seen->release_ms = clock_ms() - releasing;
	}
	seen->ms = clock_ms() - start;
}

static int work(struct ta_reader *reader, struct gpu *gpu)
{
	struct ta_ticket ticket;
	struct wire_seen seen;

	while (!worker_get(&ticket, sizeof(ticket))) {
		look(reader, gpu, &ticket, &seen);
		if (worker_answer(&seen, sizeof(seen)))
			return EXIT_FAILED;
	}
	return EXIT_OK;
}

/*
 * Whatever ends the engine process ends its workers: the kernel kills them,
 * or, should it have died before this was asked for, the socket hangs up.
 * What reaches the whole process group (Ctrl-C, a service manager's SIGTERM) is
 * the engine's to answer.
 */
static void live_and_die_with_engine(void)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Attaches, with a GPU if there is to be one. */
static void join(const struct wire_handle *handle, struct gpu *gpu,
		 struct ta_reader **reader, struct wire_attached *attached)
{
	struct reason why;

	if (handle->gpu &&
	    gpu_open(gpu, handle->number, handle->most_bytes, &why)) {
		attached->err = -ENODEV;
		snprintf(attached->why, sizeof(attached->why), "%.199s",
			 why.text);
		return;
	}
	attached->device = gpu->device;
	if (handle->socket)
		return;
	attached->err = ta_attach(handle->text, reader);
	if (!attached->err)
		attached->seat = ta_reader_seat(*reader);
}

int broadcast_worker_main(int argc, char **argv)
{
	struct wire_attached attached = { 0 };
	struct gpu gpu = { .device = -1 };
	struct wire_handle handle;
	struct ta_reader *reader = NULL;
	struct gpu *use;
	int code;

	(void)argc;
	(void)argv;
	live_and_die_with_engine();
	if (worker_get(&handle, sizeof(handle))) {
		complain("a worker is started by tarena broadcast, not by "
			 "hand");
		return EXIT_USAGE;
	}
	handle.text[sizeof(handle.text) - 1] = '\0';

	join(&handle, &gpu, &reader, &attached);
	if (attached.err) {
		worker_answer(&attached, sizeof(attached));
		return EXIT_FAILED;
	}
	use = handle.gpu ? &gpu : NULL;
	code = EXIT_FAILED;
	if (!worker_answer(&attached, sizeof(attached))) {
		/* Called "exe", as /proc/self/exe is, it is not one yet. */
		prctl(PR_SET_NAME, "tarena-worker");
		code = handle.socket ? worker_receive(use, handle.most_bytes) :
				       work(reader, use);
	}
	ta_reader_close(reader);
	return code;
}
