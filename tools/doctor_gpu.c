// SPDX-License-Identifier: MIT
/*
 * The doctor on CUDA: whether slots can be pinned and sent to GPUs.  Makes no
 * context.
 */
#include "cuda.h"
#include "doctor.h"

#define READ_ONLY_REGISTER 113 /* CU_DEVICE_ATTRIBUTE_... */

static void look_at_device(const struct cuda_driver *driver, int ordinal)
{
	int device, works = 0;
	char name[128];

	if (driver->DeviceGet(&device, ordinal) ||
	    driver->DeviceGetName(name, sizeof(name), device) ||
	    driver->DeviceGetAttribute(&works, READ_ONLY_REGISTER, device)) {
		doctor_say(BAD, "GPU %d does not answer", ordinal);
		doctor_advise("see nvidia-smi and the kernel's log");
		return;
	}
	if (works) {
		doctor_say(OK,
			   "GPU %d, %s, registers read-only memory: slots are "
			   "pinned",
			   ordinal, name);
		return;
	}
	doctor_say(NOTE,
		   "GPU %d, %s, cannot register read-only memory: slots stay "
		   "unpinned and copies are slower",
		   ordinal, name);
	doctor_advise("where that matters, create arenas with "
		      "TA_WRITABLE_READERS");
}

static void look_at_runtime(void)
{
	struct reason why;
	struct cuda cuda;
	int version = 0;

	if (cuda_load(&cuda, &why)) {
		doctor_say(NOTE, "CUDA: %s", why.text);
		doctor_advise("nothing for the library; tarena broadcast --gpu "
			      "needs a libcudart.so in LD_LIBRARY_PATH");
		return;
	}
	cuda.RuntimeGetVersion(&version);
	doctor_say(OK,
		   "CUDA: runtime %d.%d is there for tarena broadcast --gpu",
		   version / 1000, version % 1000 / 10);
}

void doctor_gpu(void)
{
	struct cuda_driver driver;
	const char *name = NULL;
	struct reason why;
	int version = 0, count = 0;
	int err, i;

	if (cuda_driver_load(&driver, &why)) {
		doctor_say(NOTE, "CUDA: %s", why.text);
		doctor_advise("nothing without a GPU, everything else works; "
			      "with one, install NVIDIA's driver");
		return;
	}
	err = driver.Init(0);
	if (!err)
		err = driver.DeviceGetCount(&count);
	if (err) {
		driver.GetErrorName(err, &name);
		doctor_say(NOTE,
			   "CUDA: the driver finds no GPU for this process "
			   "(%s)",
			   name ? name : "unknown error");
		doctor_advise("in a container, start it with GPUs: --gpus all");
		return;
	}
	driver.DriverGetVersion(&version);
	doctor_say(OK,
		   "CUDA: the driver is there, for CUDA up to %d.%d, with %d "
		   "GPUs",
		   version / 1000, version % 1000 / 10, count);
	for (i = 0; i < count; i++)
		look_at_device(&driver, i);
	look_at_runtime();
}
