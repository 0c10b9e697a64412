// SPDX-License-Identifier: MIT
/* See gpu.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contender.h"
#include "gpu.h"

#define HOST_TO_DEVICE 1

/* Calls a function of CUDA, which must not fail. */
#define CUDA(gpu, call) must(gpu, #call, (gpu)->cuda.call)

static void must(const struct gpu *gpu, const char *call, int err)
{
	char text[160] = "cuda";

	if (!err)
		return;
	strncat(text, call, 100);
	strncat(text, ": ", 3);
	strncat(text, gpu->cuda.GetErrorName(err), 40);
	die(text, 0);
}

static int look(struct gpu_about *about)
{
	struct cuda_driver driver;
	struct cuda cuda;
	int device;

	if (cuda_driver_load(&driver, &about->why) ||
	    cuda_load(&cuda, &about->why))
		return -1;
	if (driver.Init(0) || driver.DriverGetVersion(&about->driver) ||
	    driver.DeviceGet(&device, 0) ||
	    driver.DeviceGetName(about->name, sizeof(about->name), device) ||
	    cuda.RuntimeGetVersion(&about->runtime) ||
	    cuda.GetDeviceCount(&about->count))
		return reason_set(&about->why, "there is no GPU");
	return 0;
}

void gpu_look_for(struct gpu_about *about)
{
	int fds[2];
	pid_t pid;

	memset(about, 0, sizeof(*about));
	if (pipe(fds))
		die("pipe", errno);
	pid = fork();
	if (pid < 0)
		die("fork", errno);
	if (!pid) {
		if (look(about))
			about->count = 0;
		_exit(write(fds[1], about, sizeof(*about)) !=
		      (ssize_t)sizeof(*about));
	}
	close(fds[1]);
	if (read(fds[0], about, sizeof(*about)) != (ssize_t)sizeof(*about))
		reason_set(&about->why, "looking for a GPU went wrong");
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

void gpu_open(struct gpu *gpu, uint32_t number, size_t max_bytes)
{
	struct reason why;
	int count = 0;

	if (cuda_load(&gpu->cuda, &why))
		die(why.text, 0);
	CUDA(gpu, GetDeviceCount(&count));
	CUDA(gpu, SetDevice((int)(number % (uint32_t)count)));
	CUDA(gpu,
	     StreamCreateWithFlags(&gpu->stream, CUDA_STREAM_NON_BLOCKING));
	CUDA(gpu, Malloc(&gpu->memory, max_bytes));
	gpu->back = NULL;
}

void gpu_wait(struct gpu *gpu)
{
	CUDA(gpu, StreamSynchronize(gpu->stream));
}

void gpu_copy(struct gpu *gpu, const void *src, size_t nbytes)
{
	CUDA(gpu, MemcpyAsync(gpu->memory, src, nbytes, HOST_TO_DEVICE,
			      gpu->stream));
	gpu_wait(gpu);
}

void *gpu_pinned(struct gpu *gpu, size_t nbytes)
{
	void *memory;

	CUDA(gpu, MallocHost(&memory, nbytes));
	return memory;
}

const void *gpu_fetch(struct gpu *gpu, size_t nbytes)
{
	gpu->back = realloc(gpu->back, nbytes);
	if (!gpu->back)
		die("memory for what a GPU has", ENOMEM);
	CUDA(gpu, MemcpyAsync(gpu->back, gpu->memory, nbytes,
			      CUDA_DEVICE_TO_HOST, gpu->stream));
	gpu_wait(gpu);
	return gpu->back;
}
