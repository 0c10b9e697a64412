// SPDX-License-Identifier: MIT
/* Memory headroom on made-up machines: no limits, cgroup v1, v2, both. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <lib/memory_check.h>
#include <lib/why.h>
#include <tensorarena.h>

#include "machine.h"
#include "test.h"

#define MIB (1ULL << 20)
#define V2_MOUNT                                                               \
	"30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,"          \
	"nsdelegate\n"
#define V1_MOUNT                                                               \
	"22 20 0:19 / / rw - ext4 /dev/root rw\n"                              \
	"31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"          \
	"32 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define MEMINFO_GIB "MemTotal: 9999999 kB\nMemAvailable:    1048576 kB\n"

static void put_v2(const char *dir, const char *max, uint64_t current,
		   uint64_t cache)
{
	char path[PATH_MAX], text[256];

	snprintf(path, sizeof(path), "%s/memory.max", dir);
	snprintf(text, sizeof(text), "%s\n", max);
	put_file(path, text);
	snprintf(path, sizeof(path), "%s/memory.current", dir);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)current);
	put_file(path, text);
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	snprintf(text, sizeof(text),
		 "anon 7\nfile 999999999\ninactive_file %llu\n"
		 "active_file %llu\nshmem 999999999\n",
		 (unsigned long long)cache / 2,
		 (unsigned long long)(cache - cache / 2));
	put_file(path, text);
}

static void put_v1(const char *dir, uint64_t limit, uint64_t hierarchical,
		   uint64_t usage, uint64_t cache)
{
	char path[PATH_MAX], text[256];

	snprintf(path, sizeof(path), "%s/memory.limit_in_bytes", dir);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)limit);
	put_file(path, text);
	snprintf(path, sizeof(path), "%s/memory.usage_in_bytes", dir);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)usage);
	put_file(path, text);
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	snprintf(text, sizeof(text),
		 "cache 999999999\ninactive_file 3\nactive_file 3\n"
		 "hierarchical_memory_limit %llu\ntotal_cache 99999999\n"
		 "total_inactive_file %llu\ntotal_active_file 0\n",
		 (unsigned long long)hierarchical, (unsigned long long)cache);
	put_file(path, text);
	snprintf(path, sizeof(path), "%s/memory.use_hierarchy", dir);
	put_file(path, "1\n");
}

static void expect(uint64_t bytes, const char *word)
{
	uint64_t got = 1;
	char why[256];

	assert_ok(
		ta_memory_headroom_at(machine_root(), &got, why, sizeof(why)));
	if (got != bytes)
		fail_msg("%llu, not %llu: %s", (unsigned long long)got,
			 (unsigned long long)bytes, why);
	if (!strstr(why, word))
		fail_msg("\"%s\" lacks \"%s\"", why, word);
}

static void nothing_to_read_is_unlimited(void **state)
{
	(void)state;
	expect(TA_MEMORY_UNLIMITED, "no limit");
}

static void available_memory_limits(void **state)
{
	(void)state;
	put_file("/proc/meminfo", MEMINFO_GIB);
	expect(1024 * MIB, "1 GiB of available memory");
}

static void garbage_is_unlimited(void **state)
{
	(void)state;
	put_file("/proc/meminfo", "MemAvailable: lots\n");
	put_file("/proc/self/cgroup", "\n:\n::\n0:\nx\n0::/a");
	put_file("/proc/self/mountinfo",
		 "\n - \n1 2 3\n1 2 3 4 5 - cgroup2\n" V2_MOUNT);
	put_v2("/sys/fs/cgroup/a", "plenty", 0, 0);
	expect(TA_MEMORY_UNLIMITED, "no limit");
}

static void v2_limit_counts_without_reclaimable_cache(void **state)
{
	(void)state;
	put_file("/proc/meminfo", MEMINFO_GIB);
	put_file("/proc/self/cgroup", "0::/job\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_v2("/sys/fs/cgroup/job", "67108864", 60 * MIB, 10 * MIB);
	expect(14 * MIB, "memory cgroup /sys/fs/cgroup/job has 14 MiB left "
			 "(limit 64 MiB, in use 60 MiB, of that 10 MiB");
}

static void v2_max_is_no_limit(void **state)
{
	(void)state;
	put_file("/proc/meminfo", MEMINFO_GIB);
	put_file("/proc/self/cgroup", "0::/job\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_v2("/sys/fs/cgroup/job", "max", 60 * MIB, 0);
	expect(1024 * MIB, "available memory");
}

static void v2_tightest_ancestor_decides(void **state)
{
	(void)state;
	put_file("/proc/meminfo", MEMINFO_GIB);
	put_file("/proc/self/cgroup", "0::/a/b/c\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_v2("/sys/fs/cgroup/a/b/c", "104857600", 0, 0);
	put_v2("/sys/fs/cgroup/a/b", "209715200", 195 * MIB, 0);
	put_v2("/sys/fs/cgroup/a", "max", 500 * MIB, 0);
	expect(5 * MIB, "/sys/fs/cgroup/a/b has");
	put_v2("/sys/fs/cgroup/a", "524288000", 499 * MIB, 0);
	expect(1 * MIB, "/sys/fs/cgroup/a has");
}

static void usage_over_the_limit_leaves_nothing(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "0::/job\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_v2("/sys/fs/cgroup/job", "1048576", 2 * MIB, 0);
	expect(0, "0 bytes left");
	put_v2("/sys/fs/cgroup/job", "1048576", 0, 2 * MIB);
	expect(1 * MIB, "1 MiB left");
}

static void namespaced_container_sees_its_own_root(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "0::/\n");
	put_file("/proc/self/mountinfo", V2_MOUNT);
	put_v2("/sys/fs/cgroup", "8388608", MIB, 0);
	expect(7 * MIB, "memory cgroup /sys/fs/cgroup has");
}

static void cgroups_of_others_do_not_count(void **state)
{
	(void)state;
	put_file("/proc/meminfo", MEMINFO_GIB);
	put_file("/proc/self/cgroup", "0::/../outside\n");
	put_file("/proc/self/mountinfo",
		 V2_MOUNT "33 25 0:26 /outsider /mnt rw - cgroup2 none rw\n");
	put_v2("/sys/fs/cgroup", "1", 0, 0);
	put_v2("/mnt", "1", 0, 0);
	expect(1024 * MIB, "available memory");
	put_file("/proc/self/cgroup", "0::/outside\n");
	put_v2("/sys/fs/cgroup", "max", 0, 0);
	expect(1024 * MIB, "available memory");
}

static void mount_points_are_unescaped(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "0::/job\n");
	put_file("/proc/self/mountinfo",
		 "30 25 0:26 / /my\\040cgroups rw shared:4 - cgroup2 x rw\n");
	put_v2("/my cgroups/job", "1048576", 0, 0);
	expect(MIB, "/my cgroups/job");
}

static void v1_limit_counts(void **state)
{
	(void)state;
	put_file("/proc/meminfo", MEMINFO_GIB);
	put_file("/proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/x\n");
	put_file("/proc/self/mountinfo", V1_MOUNT);
	put_v1("/sys/fs/cgroup/memory/job", 64 * MIB, INT64_MAX, 60 * MIB,
	       10 * MIB);
	expect(14 * MIB, "/sys/fs/cgroup/memory/job has 14 MiB left");
}

static void v1_limit_of_a_hidden_ancestor_counts(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "5:memory:/docker/abc\n");
	put_file("/proc/self/mountinfo",
		 "32 25 0:28 /docker/abc /sys/fs/cgroup/memory ro master:9 - "
		 "cgroup cgroup rw,memory\n");
	put_v1("/sys/fs/cgroup/memory", INT64_MAX, 32 * MIB, 30 * MIB, 0);
	expect(2 * MIB, "limit 32 MiB");
}

static void v1_ancestors_count_when_hierarchical(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "5:memory:/a/b\n");
	put_file("/proc/self/mountinfo", V1_MOUNT);
	put_v1("/sys/fs/cgroup/memory/a/b", 64 * MIB, 64 * MIB, 0, 0);
	put_v1("/sys/fs/cgroup/memory/a", 64 * MIB, 64 * MIB, 63 * MIB, 0);
	expect(1 * MIB, "/sys/fs/cgroup/memory/a has");
	put_file("/sys/fs/cgroup/memory/a/memory.use_hierarchy", "0\n");
	expect(64 * MIB, "/sys/fs/cgroup/memory/a/b has");
}

static void hybrid_layout_uses_the_memory_controller(void **state)
{
	(void)state;
	put_file("/proc/self/cgroup", "5:memory:/a\n0::/u\n");
	put_file("/proc/self/mountinfo", V1_MOUNT
		 "40 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 c rw\n");
	put_v1("/sys/fs/cgroup/memory/a", 64 * MIB, 64 * MIB, 0, 0);
	put_file("/sys/fs/cgroup/unified/u/cgroup.procs", "1\n");
	expect(64 * MIB, "/sys/fs/cgroup/memory/a has");
}

static void lack_of_descriptors_is_an_error(void **state)
{
	struct rlimit limit, none;
	uint64_t bytes = 17;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_err(ta_memory_headroom(&bytes, NULL, 0), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(bytes, 17);
}

static void the_real_machine_answers(void **state)
{
	uint64_t bytes;
	char why[256];

	(void)state;
	assert_ok(ta_memory_headroom(&bytes, why, sizeof(why)));
	assert_true(bytes > 0);
	assert_true(strlen(why) > 0);
	print_message("# %s\n", why);
}

static void sizes_read_well(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {
		{ 0, "0 bytes" },	    { 1, "1 byte" },
		{ 1023, "1023 bytes" },	    { 1024, "1 KiB" },
		{ 1536, "1.5 KiB" },	    { 2 * MIB - 1, "1.9 MiB" },
		{ 256 * MIB, "256 MiB" },   { 2560 * MIB, "2.5 GiB" },
		{ UINT64_MAX, "15.9 EiB" },
	};
	char text[TA_SIZE_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_string_equal(ta_size(sizes[i].bytes, text),
				    sizes[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_MACHINE(nothing_to_read_is_unlimited),
		ON_A_MACHINE(available_memory_limits),
		ON_A_MACHINE(garbage_is_unlimited),
		ON_A_MACHINE(v2_limit_counts_without_reclaimable_cache),
		ON_A_MACHINE(v2_max_is_no_limit),
		ON_A_MACHINE(v2_tightest_ancestor_decides),
		ON_A_MACHINE(usage_over_the_limit_leaves_nothing),
		ON_A_MACHINE(namespaced_container_sees_its_own_root),
		ON_A_MACHINE(cgroups_of_others_do_not_count),
		ON_A_MACHINE(mount_points_are_unescaped),
		ON_A_MACHINE(v1_limit_counts),
		ON_A_MACHINE(v1_limit_of_a_hidden_ancestor_counts),
		ON_A_MACHINE(v1_ancestors_count_when_hierarchical),
		ON_A_MACHINE(hybrid_layout_uses_the_memory_controller),
		cmocka_unit_test(lack_of_descriptors_is_an_error),
		cmocka_unit_test(the_real_machine_answers),
		cmocka_unit_test(sizes_read_well),
	};

	return run_all(tests, NULL, NULL);
}
