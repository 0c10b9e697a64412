// SPDX-License-Identifier: MIT
/* What is left where system calls are forbidden. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load_bench.h"

static void forbid(int call, uint32_t flag)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flag, 0, flag ? 1 : 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = sizeof(code) / sizeof(code[0]),
		.filter = code,
	};

	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
	must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

static void be_child(const struct bench *b, int call, uint32_t flag,
		     void (*fn)(struct bench *b, struct sample *sample),
		     int out)
{
	struct bench own = *b;
	struct sample sample;

	ta_reader_close(own.reader);
	ta_writer_close(own.writer);
	make_arena(&own);
	forbid(call, flag);
	fn(&own, &sample);
	must(write(out, &sample, sizeof(sample)) == sizeof(sample), "write");
	ta_reader_close(own.reader);
	ta_writer_close(own.writer);
}

void in_sandbox(const struct bench *b, int call, uint32_t flag,
		void (*fn)(struct bench *b, struct sample *sample),
		struct sample *sample)
{
	int end[2], status;
	pid_t pid;

	must(!pipe(end), "pipe");
	pid = fork();
	must(pid >= 0, "fork");
	if (!pid) {
		be_child(b, call, flag, fn, end[1]);
		_exit(0);
	}
	close(end[1]);
	must(read(end[0], sample, sizeof(*sample)) == sizeof(*sample),
	     "the child in the sandbox");
	close(end[0]);
	must(waitpid(pid, &status, 0) == pid && !status, "waitpid");
}
