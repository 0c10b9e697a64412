// SPDX-License-Identifier: MIT
/* See machine.h. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <zmq.h>

#include "copies.h"
#include "machine.h"

static void set_string(json_t *object, const char *key, const char *value)
{
	json_object_set_new(object, key, json_string(value));
}

static void set_integer(json_t *object, const char *key, json_int_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

/* The first line of a file; empty when there is none. */
static void first_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "r");

	line[0] = '\0';
	if (!file)
		return;
	if (!fgets(line, size, file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(file);
}

/* What stands behind "KEY ... :" in a file of such lines. */
static void value_of(const char *path, const char *key, char *value, int size)
{
	FILE *file = fopen(path, "r");
	char line[4096], *colon;

	value[0] = '\0';
	while (file && fgets(line, sizeof(line), file)) {
		colon = strchr(line, ':');
		if (strncmp(line, key, strlen(key)) || !colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(value, (size_t)size, "%s", colon);
		break;
	}
	if (file)
		fclose(file);
}

/* The choice in brackets, as sysfs shows it. */
static void set_choice(json_t *object, const char *key, const char *path)
{
	char line[256], *open, *close;

	first_line(path, line, sizeof(line));
	open = strchr(line, '[');
	close = strchr(line, ']');
	if (!open || !close)
		return;
	*close = '\0';
	set_string(object, key, open + 1);
}

static void set_cpu(json_t *machine)
{
	char value[4096];
	cpu_set_t set;

	value_of("/proc/cpuinfo", "model name", value, sizeof(value));
	set_string(machine, "cpu", value);
	set_integer(machine, "cores", sysconf(_SC_NPROCESSORS_ONLN));
	if (!sched_getaffinity(0, sizeof(set), &set))
		set_integer(machine, "cores_allowed", CPU_COUNT(&set));
	value_of("/proc/self/status", "Cpus_allowed_list", value,
		 sizeof(value));
	set_string(machine, "affinity", value);
	value_of("/proc/cpuinfo", "flags", value, sizeof(value));
	json_object_set_new(machine, "virtual_machine",
			    json_boolean(!!strstr(value, " hypervisor")));
	first_line("/sys/devices/system/cpu/cpu0/cache/index3/size", value,
		   sizeof(value));
	set_string(machine, "cache_l3", value);
	first_line("/sys/devices/system/node/online", value, sizeof(value));
	set_string(machine, "numa_nodes", value);
	if (copies_vectors())
		set_string(machine, "vectors", copies_vectors());
}

static void set_memory(json_t *machine)
{
	char value[256];

	value_of("/proc/meminfo", "MemTotal", value, sizeof(value));
	set_integer(machine, "memory_kib", atoll(value));
	set_integer(machine, "page_bytes", sysconf(_SC_PAGESIZE));
	value_of("/proc/meminfo", "Hugepagesize", value, sizeof(value));
	set_string(machine, "huge_page", value);
	set_choice(machine, "huge_pages",
		   "/sys/kernel/mm/transparent_hugepage/enabled");
	set_choice(machine, "huge_pages_of_shared_memory",
		   "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
}

static void set_gpu(json_t *machine, const struct gpu_about *about)
{
	char value[256];
	json_t *gpu;

	if (!about->count) {
		set_string(machine, "no_gpu", about->why.text);
		return;
	}
	gpu = json_object();
	set_string(gpu, "name", about->name);
	set_integer(gpu, "count", about->count);
	set_integer(gpu, "runtime", about->runtime);
	set_integer(gpu, "driver_api", about->driver);
	first_line("/proc/driver/nvidia/version", value, sizeof(value));
	set_string(gpu, "driver", value);
	json_object_set_new(machine, "gpu", gpu);
}

json_t *machine_json(const struct gpu_about *gpu)
{
	json_t *machine = json_object();
	int major, minor, patch;
	struct utsname name;
	char value[256];

	set_cpu(machine);
	set_memory(machine);
	if (!uname(&name)) {
		snprintf(value, sizeof(value), "%.64s %.64s %.64s",
			 name.sysname, name.release, name.machine);
		set_string(machine, "kernel", value);
	}
	zmq_version(&major, &minor, &patch);
	snprintf(value, sizeof(value), "%d.%d.%d", major, minor, patch);
	set_string(machine, "libzmq", value);
	first_line("/proc/loadavg", value, sizeof(value));
	set_string(machine, "load_before", value);
	set_gpu(machine, gpu);
	return machine;
}
