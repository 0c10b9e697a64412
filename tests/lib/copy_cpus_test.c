// SPDX-License-Identifier: MIT
/* How many threads a copy may have, on made-up machines and on this one. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <lib/copy_cpus.h>
#include <tensorarena.h>

#include "machine.h"
#include "test.h"

#define V2_MOUNT "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define V1_MOUNT                                                               \
	"31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"

/* What this thread may run on, which no made-up machine changes. */
static struct ta_cpus here;
static uint32_t here_count;
static int first_here;

static int look_around(void **state)
{
	(void)state;
	if (sched_getaffinity(0, sizeof(here.set), here.set))
		return -1;
	here_count = (uint32_t)CPU_COUNT_S(sizeof(here.set), here.set);
	while (!CPU_ISSET_S((size_t)first_here, sizeof(here.set), here.set))
		first_here++;
	return 0;
}

static uint32_t threads_for(int node)
{
	struct ta_cpus_found found;

	ta_cpus_find_at(machine_root(), node, &found);
	return found.threads;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void without_limits_there_is_a_thread_a_processor(void **state)
{
	struct ta_cpus_found found;

	(void)state;
	ta_cpus_find_at(machine_root(), -1, &found);
	assert_int_equal(found.threads, here_count);
	assert_false(found.on_node);
	assert_memory_equal(&found.cpus, &here, sizeof(here));
}

static void a_v2_quota_bounds_threads(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "0::/job\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_file("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
	assert_int_equal(threads_for(-1), 1);
	put_file("/sys/fs/cgroup/job/cpu.max", "200000 100000\n");
	assert_int_equal(threads_for(-1), least(here_count, 2));
	put_file("/sys/fs/cgroup/job/cpu.max", "99999999 100\n");
	assert_int_equal(threads_for(-1), here_count);
}

static void less_than_one_processor_is_one_thread(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "0::/job\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_file("/sys/fs/cgroup/job/cpu.max", "1000 100000\n");
	assert_int_equal(threads_for(-1), 1);
}

static void the_tightest_ancestor_decides(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "0::/a/b\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	put_file("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
	assert_int_equal(threads_for(-1), 1);
}

static void a_v1_quota_bounds_threads(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/job\n");
	put_file("/proc/self/mountinfo", V1_MOUNT);
	put_file("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
	put_file("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
	assert_int_equal(threads_for(-1), here_count);
	put_file("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
	assert_int_equal(threads_for(-1), 1);
}

static void what_cannot_be_read_does_not_limit(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "0::/job\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_file("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
	assert_int_equal(threads_for(-1), here_count);
	put_file("/sys/fs/cgroup/job/cpu.max", "plenty\n");
	assert_int_equal(threads_for(-1), here_count);
	put_file("/sys/fs/cgroup/job/cpu.max", "100000 0\n");
	assert_int_equal(threads_for(-1), here_count);
	put_file("/sys/fs/cgroup/job/cpu.max", "");
	assert_int_equal(threads_for(-1), here_count);
}

static void threads_go_to_the_processors_of_the_node(void **state)
{
	struct ta_cpus_found found;
	char list[64];

	(void)state;
	if (here_count < 2) {
		print_message("# one processor only\n");
		skip();
	}
	snprintf(list, sizeof(list), "%d,%d-%d\n", first_here, TA_MAX_CPUS + 5,
		 TA_MAX_CPUS + 9);
	put_file("/sys/devices/system/node/node3/cpulist", list);
	ta_cpus_find_at(machine_root(), 3, &found);
	assert_true(found.on_node);
	assert_int_equal(found.threads, 1);
	assert_int_equal(CPU_COUNT_S(sizeof(found.cpus.set), found.cpus.set),
			 1);
	assert_true(CPU_ISSET_S((size_t)first_here, sizeof(found.cpus.set),
				found.cpus.set));
	/* Another node is another matter, and so is none. */
	assert_int_equal(threads_for(2), here_count);
	assert_int_equal(threads_for(-1), here_count);
}

/* Lists that say the same as none, or are none. */
static void a_node_that_does_not_help_changes_nothing(void **state)
{
	static const char *const lists[] = {
		"0-8191\n", "8191\n", "", "\n", "x\n", "-\n", "9000-\n", ",\n",
	};
	struct ta_cpus_found found;
	size_t i;

	(void)state;
	if (CPU_ISSET_S(8191, sizeof(here.set), here.set))
		skip();
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		put_file("/sys/devices/system/node/node0/cpulist", lists[i]);
		ta_cpus_find_at(machine_root(), 0, &found);
		assert_false(found.on_node);
		assert_int_equal(found.threads, here_count);
		assert_memory_equal(&found.cpus, &here, sizeof(here));
	}
}

static void a_list_has_ranges_and_single_processors(void **state)
{
	struct ta_cpus_found found;
	char list[256];
	size_t cpu;

	(void)state;
	if (here_count < 2)
		skip();
	/* All but the first. */
	snprintf(list, sizeof(list), "%d,%d-8000,8002,8005-8006\n",
		 first_here + 1, first_here + 1);
	put_file("/sys/devices/system/node/node0/cpulist", list);
	ta_cpus_find_at(machine_root(), 0, &found);
	assert_true(found.on_node);
	assert_int_equal(found.threads, here_count - 1);
	for (cpu = 0; cpu < 8000; cpu++)
		assert_int_equal(
			CPU_ISSET_S(cpu, sizeof(here.set), found.cpus.set),
			cpu != (size_t)first_here &&
				CPU_ISSET_S(cpu, sizeof(here.set), here.set));
}

static void the_threads_own_mask_is_what_counts(void **state)
{
	struct ta_cpus one = { 0 };
	struct ta_cpus_found found;

	(void)state;
	CPU_SET_S((size_t)first_here, sizeof(one.set), one.set);
	ta_cpus_move_to(&one);
	ta_cpus_find(-1, &found);
	assert_int_equal(found.threads, 1);
	assert_int_equal(ta_cpus_allowed(), 1);
	assert_memory_equal(&found.cpus, &one, sizeof(one));
	ta_cpus_move_to(&here);
	ta_cpus_find(-1, &found);
	assert_int_equal(ta_cpus_allowed(), here_count);
	assert_memory_equal(&found.cpus, &here, sizeof(here));
	assert_in_range(found.threads, 1, here_count);
}

static void a_move_that_is_not_possible_is_not_made(void **state)
{
	const struct ta_cpus none = { 0 };
	struct ta_cpus now = { 0 };

	(void)state;
	ta_cpus_move_to(&none);
	assert_int_not_equal(sched_getaffinity(0, sizeof(now.set), now.set),
			     -1);
	assert_memory_equal(&now, &here, sizeof(here));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_MACHINE(without_limits_there_is_a_thread_a_processor),
		ON_A_MACHINE(a_v2_quota_bounds_threads),
		ON_A_MACHINE(less_than_one_processor_is_one_thread),
		ON_A_MACHINE(the_tightest_ancestor_decides),
		ON_A_MACHINE(a_v1_quota_bounds_threads),
		ON_A_MACHINE(what_cannot_be_read_does_not_limit),
		ON_A_MACHINE(threads_go_to_the_processors_of_the_node),
		ON_A_MACHINE(a_node_that_does_not_help_changes_nothing),
		ON_A_MACHINE(a_list_has_ranges_and_single_processors),
		cmocka_unit_test(the_threads_own_mask_is_what_counts),
		cmocka_unit_test(a_move_that_is_not_possible_is_not_made),
	};

	return run_all(tests, look_around, NULL);
}
