// SPDX-License-Identifier: MIT
/* See roudi.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "paths.h"
#include "roudi.h"

/* It clears all of its memory first. */
#define READY_MS 60000
#define READY_TEXT "RouDi is ready for clients"
/* A chunk carries a header; the pool's sizes are multiples of this. */
#define CHUNK_OVERHEAD 4096

static pid_t roudi;

static int configure(const char *path, size_t max_bytes, uint32_t chunks)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -1;
	fprintf(file,
		"[general]\nversion = 1\n[[segment]]\n[[segment.mempool]]\n"
		"size = %zu\ncount = %u\n",
		(max_bytes + CHUNK_OVERHEAD - 1) / CHUNK_OVERHEAD *
				CHUNK_OVERHEAD +
			CHUNK_OVERHEAD,
		chunks);
	return fclose(file);
}

/* The one that lies beside this program, or else the system's. */
static void run(const char *config, int out)
{
	char own[PATH_BYTES];
	int nothing = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(nothing, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	path_beside("iox-roudi", own);
	execl(own, "iox-roudi", "-m", "off", "-c", config, NULL);
	execlp("iox-roudi", "iox-roudi", "-m", "off", "-c", config, NULL);
	_exit(127);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* What it says goes to @said, until it is ready or gone. */
static bool becomes_ready(int out, char *said, size_t size)
{
	struct pollfd pfd = { .fd = out, .events = POLLIN };
	int64_t deadline = now_ms() + READY_MS;
	size_t have = 0;
	ssize_t n;

	while (now_ms() < deadline) {
		if (poll(&pfd, 1, (int)(deadline - now_ms())) <= 0)
			continue;
		/* The latest half is kept; it is enough to be understood. */
		if (have == size - 1) {
			memmove(said, said + size / 2, have - size / 2);
			have -= size / 2;
		}
		n = read(out, said + have, size - 1 - have);
		if (n <= 0)
			return false;
		have += (size_t)n;
		said[have] = '\0';
		if (strstr(said, READY_TEXT))
			return true;
	}
	return false;
}

int roudi_start(const char *dir, size_t max_bytes, uint32_t chunks,
		struct reason *why)
{
	char config[PATH_BYTES], said[2048] = "";
	bool ready;
	int fds[2];

	snprintf(config, sizeof(config), "%.200s/roudi.toml", dir);
	if (configure(config, max_bytes, chunks) || pipe2(fds, O_CLOEXEC))
		return reason_set(why, "%s", strerror(errno));
	roudi = fork();
	if (!roudi)
		run(config, fds[1]);
	close(fds[1]);
	ready = roudi > 0 && becomes_ready(fds[0], said, sizeof(said));
	unlink(config);
	/* The other end stays open, lest it die of what it says later. */
	if (ready)
		return 0;
	close(fds[0]);
	roudi_stop();
	return reason_set(why, "iox-roudi does not run: %.300s",
			  *said ? said : "it says nothing");
}

void roudi_stop(void)
{
	if (roudi <= 0)
		return;
	kill(roudi, SIGTERM);
	waitpid(roudi, NULL, 0);
	roudi = 0;
}
