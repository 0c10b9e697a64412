// SPDX-License-Identifier: MIT
/* Images of this program, and how they are cleared away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kill.h"

enum ta_engine_kind test_engine(void)
{
	const char *name = getenv("TENSORARENA_TEST_ENGINE");

	if (!name || !strcmp(name, "embedded"))
		return TA_ENGINE_EMBEDDED;
	MUST(!strcmp(name, "device"));
	return TA_ENGINE_DEVICE;
}

const char *wrong(const char *format, ...)
{
	static char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

/* Reads end of file in every image when this process is gone. */
static int lifeline(void)
{
	static int end[2] = { -1, -1 };

	if (end[0] < 0) {
		MUST(!pipe2(end, O_CLOEXEC));
		MUST(fcntl(end[0], F_SETFD, 0) != -1);
	}
	return end[0];
}

pid_t spawn(const char *what, int *sock, const char *a, const char *b,
	    const char *c, bool own_group)
{
	static char path[4096];
	char fd[16], life[16];
	int pair[2];
	pid_t pid;

	if (!path[0])
		MUST(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	snprintf(life, sizeof(life), "%d", lifeline());
	fflush(NULL);
	/* Not vfork(): a thread of the arena's must not run in its image. */
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		if (own_group)
			setpgid(0, 0);
		fcntl(pair[1], F_SETFD, 0);
		execl(path, path, what, fd, life, a, b, c, (char *)NULL);
		_exit(127);
	}
	if (own_group)
		setpgid(pid, pid);
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

void victim_linger(int lifeline_fd)
{
	char byte;

	while (read(lifeline_fd, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

int linger_main(char **argv)
{
	if (!strcmp(argv[4], "traced"))
		raise(SIGTRAP);
	victim_linger(atoi(argv[3]));
}

void sweep_up(pid_t victim)
{
	/* Nobody is left in the group when there was no child. */
	if (kill(-victim, SIGKILL))
		MUST(errno == ESRCH);
}

uint32_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	MUST(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
