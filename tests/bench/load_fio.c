// SPDX-License-Identifier: MIT
/* fio's sequential O_DIRECT rate on the same file, in its own words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "load_bench.h"

void run_fio(const struct bench *b, const char *how, struct sample *sample)
{
	char command[1024];
	json_t *root, *job;
	double user, sys, ms;
	json_error_t error;
	json_int_t bytes;
	FILE *out;
	int status;

	must(snprintf(command, sizeof(command),
		      "%s --name=bench --filename='%s' --rw=read --direct=1 "
		      "--ioengine=io_uring --readonly --size=%llu %s "
		      "--output-format=json",
		      b->fio, b->path, (unsigned long long)b->nbytes,
		      how) < (int)sizeof(command),
	     "the file's name is too long");
	out = popen(command, "r");
	must(out, command);
	root = json_loadf(out, 0, &error);
	status = pclose(out);
	if (!root || status) {
		fprintf(stderr, "load_bench: %s: status 0x%x, %s\n", command,
			status, root ? "a report" : error.text);
		exit(1);
	}
	job = json_array_get(json_object_get(root, "jobs"), 0);
	must(!json_unpack(job, "{s:{s:I,s:F},s:F,s:F}", "read", "io_bytes",
			  &bytes, "runtime", &ms, "usr_cpu", &user, "sys_cpu",
			  &sys),
	     "fio's report lacks a figure");
	sample->nbytes = (uint64_t)bytes;
	sample->seconds = ms / 1000;
	sample->cpu_seconds = (user + sys) / 100 * sample->seconds;
	json_decref(root);
}

void fio_version(const struct bench *b, char *buf, size_t size)
{
	char command[256];
	FILE *out;

	snprintf(command, sizeof(command), "%s --version", b->fio);
	out = popen(command, "r");
	must(out && fgets(buf, (int)size, out), command);
	buf[strcspn(buf, "\n")] = '\0';
	pclose(out);
}
