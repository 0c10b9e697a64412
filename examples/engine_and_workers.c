// SPDX-License-Identifier: MIT
/*
 * An engine and four workers, each of which needs every request's tensor.
 *
 *	cc -o engine_and_workers engine_and_workers.c \
 *		$(pkg-config --cflags --libs libtensorarena)
 *
 * The engine copies a tensor once, into a slot that all workers look at in
 * place; its ticket goes to them over pipes.  What the arena declines goes over
 * the pipes itself.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tensorarena.h>
#include <unistd.h>

#define WORKERS 4
#define REQUESTS 4

static const size_t request_bytes[REQUESTS] = { 6 << 20, 2 << 20, 24 << 20,
						1 << 20 };

/* What a worker is told of a request. */
struct message {
	uint64_t request;
	struct ta_ticket ticket;
	uint64_t nbytes; /* that follow, when the arena has declined; else 0 */
};

static void check(int result, const char *what)
{
	if (result)
		errx(EXIT_FAILURE, "%s: %s", what, ta_strerror(result));
}

static void send_all(FILE *worker, const void *data, size_t nbytes)
{
	if (fwrite(data, 1, nbytes, worker) < nbytes || fflush(worker))
		err(EXIT_FAILURE, "a worker is gone");
}

static unsigned char byte_of(uint64_t request, size_t i)
{
	return request * 31 + i * 7 + i / 251;
}

static void look_at(const unsigned char *tensor, size_t nbytes,
		    uint64_t request)
{
	size_t i = 0;

	while (i < nbytes && tensor[i] == byte_of(request, i))
		i++;
	if (i < request_bytes[request])
		errx(EXIT_FAILURE, "request %d: damaged", (int)request);
}

static void work(FILE *engine, int number)
{
	char handle[TA_HANDLE_MAX];
	struct ta_reader *reader;
	struct message message;
	struct ta_view *view;
	void *copy;

	if (!fread(handle, sizeof(handle), 1, engine))
		errx(EXIT_FAILURE, "worker %d: no engine", number);
	check(ta_attach(handle, &reader), "ta_attach");
	while (fread(&message, sizeof(message), 1, engine)) {
		if (!message.nbytes) {
			check(ta_view(reader, &message.ticket, &view),
			      "ta_view");
			look_at(view->data, view->nbytes, message.request);
			check(ta_release(view), "ta_release");
		} else {
			copy = malloc(message.nbytes);
			if (!copy || !fread(copy, message.nbytes, 1, engine))
				err(EXIT_FAILURE, "worker %d", number);
			look_at(copy, message.nbytes, message.request);
			free(copy);
		}
		printf("worker %d: request %d is intact\n", number,
		       (int)message.request);
	}
	ta_reader_close(reader);
}

/* Returns the engine's end of a pipe to it. */
static FILE *start_worker(int number, FILE **workers_before)
{
	FILE *engine, *worker;
	int ends[2];

	if (pipe(ends))
		err(EXIT_FAILURE, "pipe");
	engine = fdopen(ends[0], "r");
	worker = fdopen(ends[1], "w");
	if (!engine || !worker)
		err(EXIT_FAILURE, "fdopen");
	switch (fork()) {
	case -1:
		err(EXIT_FAILURE, "fork");
	case 0:
		/* Kept open here, they would never end for those workers. */
		for (int i = 0; i < number; i++)
			fclose(workers_before[i]);
		fclose(worker);
		work(engine, number);
		exit(EXIT_SUCCESS);
	}
	fclose(engine);
	return worker;
}

static void broadcast(struct ta_writer *writer, FILE **workers,
		      uint64_t request)
{
	struct message message = { .request = request };
	size_t nbytes = request_bytes[request];
	unsigned char *tensor = malloc(nbytes);
	int result;

	if (!tensor)
		err(EXIT_FAILURE, "malloc");
	for (size_t i = 0; i < nbytes; i++)
		tensor[i] = byte_of(request, i);

	/* Never waits; what it declines takes the way it would take without. */
	result = ta_put(writer, tensor, nbytes, NULL, &message.ticket);
	if (ta_is_decline(result)) {
		message.nbytes = nbytes;
		printf("request %d: %zu bytes through the pipes: %s\n",
		       (int)request, nbytes, ta_strerror(result));
	} else {
		check(result, "ta_put");
		printf("request %d: %zu bytes through slot %u\n", (int)request,
		       nbytes, message.ticket.slot);
	}
	for (int i = 0; i < WORKERS; i++) {
		send_all(workers[i], &message, sizeof(message));
		send_all(workers[i], tensor, message.nbytes);
	}
	free(tensor);
}

int main(void)
{
	char handle[TA_HANDLE_MAX] = "";
	struct ta_options options;
	struct ta_writer *writer;
	FILE *workers[WORKERS];
	bool failed = false;
	char why[256];
	int status;

	setlinebuf(stdout);
	signal(SIGPIPE, SIG_IGN);
	/* Before there is an arena: what a child inherits of one is dead. */
	for (int i = 0; i < WORKERS; i++)
		workers[i] = start_worker(i, workers);

	ta_options_init(&options);
	options.slot_bytes = 16 << 20;
	options.slots = 4;
	options.seats = WORKERS; /* tensors wait for them from the start */
	if (ta_create(&options, &writer, why, sizeof(why)))
		errx(EXIT_FAILURE, "%s", why);
	printf("%s engine, %d workers\n",
	       ta_writer_engine(writer) == TA_ENGINE_DEVICE ? "device" :
							      "embedded",
	       WORKERS);
	snprintf(handle, sizeof(handle), "%s", ta_handle(writer));
	for (int i = 0; i < WORKERS; i++)
		send_all(workers[i], handle, sizeof(handle));

	for (int request = 0; request < REQUESTS; request++)
		broadcast(writer, workers, request);

	for (int i = 0; i < WORKERS; i++)
		fclose(workers[i]);
	while (wait(&status) > 0)
		failed |= status != 0;
	ta_writer_close(writer);
	return failed;
}
