// SPDX-License-Identifier: MIT
/* See roudi.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "paths.h"
#include "roudi.h"

/* It clears all of its memory first. */
#define READY_TRIES 6000
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
	/* It waits for its clients, one second and not 45: we have killed them. */
	execl(own, "iox-roudi", "-m", "off", "-k", "1", "-c", config, NULL);
	execlp("iox-roudi", "iox-roudi", "-m", "off", "-k", "1", "-c", config,
	       NULL);
	_exit(127);
}

/* Whether it comes to say that it is ready; @said is what it says last. */
static bool becomes_ready(int out, char *said, size_t size)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	int i;
	ssize_t n;

	for (i = 0; i < READY_TRIES; i++) {
		n = pread(out, said, size - 1, 0);
		said[n > 0 ? n : 0] = '\0';
		if (strstr(said, READY_TEXT))
			return true;
		if (waitpid(roudi, NULL, WNOHANG)) {
			roudi = 0;
			return false;
		}
		nanosleep(&moment, NULL);
	}
	return false;
}

int roudi_start(const char *dir, size_t max_bytes, uint32_t chunks,
		struct reason *why)
{
	char config[PATH_BYTES], said[4096] = "";
	/* It may say any amount until the end; a pipe would stop it. */
	int out = memfd_create("iox-roudi", MFD_CLOEXEC);
	bool ready;

	snprintf(config, sizeof(config), "%.200s/roudi.toml", dir);
	if (out < 0 || configure(config, max_bytes, chunks))
		return reason_set(why, "%s", strerror(errno));
	roudi = fork();
	if (!roudi)
		run(config, out);
	ready = roudi > 0 && becomes_ready(out, said, sizeof(said));
	unlink(config);
	close(out);
	if (ready)
		return 0;
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
