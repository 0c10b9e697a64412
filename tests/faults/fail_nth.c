// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation and every copy from or to user memory of every call fails
 * in turn: each call is made again and again, the n-th chance to fail taken in
 * the n-th attempt, until an attempt has no n-th.
 *
 * A call that fails must say so with a documented error, the arena must go on
 * as if nothing had been, and nothing may be left when it is closed: no page
 * stays charged to this program's memory cgroup.  Other memory that is leaked,
 * the kernel finds at the end of the run.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "inject.h"
#include "tests/campaign/campaign.h"

#define SLOTS 4
#define SLOT_BYTES (2 * CHUNK)
#define BYTES (CHUNK - 12345)
#define SEED 7
#define CGROUP "/sys/fs/cgroup/tensorarena-faults/"
/* Of the second part, in which chances are taken at random. */
#define PERCENT 10
#define OFTEN 310

/**
 * struct scene - what every attempt begins with
 * @control: the control node
 * @a: its writer, mapped; a slot of it is being written, two are published, and
 *	one is free and has memory for a small tensor
 * @r: a reader, mapped, which has seen one of the two
 * @acq: the slot being written
 * @more: another, if the call under test has acquired one
 * @seen: what the reader has seen
 * @other: what it has not
 * @told: whether NEXT has told it
 * @fd: what the call under test has made, or -1
 * @map: likewise, or NULL
 * @extra: a second mapping of the first slot
 */
struct scene {
	int control;
	struct arena a;
	struct reader r;
	struct tensorarena_acquire acq, more;
	struct tensorarena_ticket seen, other;
	bool told;
	int fd;
	void *map;
	uint8_t *extra;
};

enum aftermath {
	GOES_ON, /* writer and reader can work as before */
	TELLS_AGAIN, /* likewise, and NEXT if it has not told what there is */
	READER_GONE,
	WRITER_GONE,
};

/**
 * struct call - a call under test
 * @name: for the report
 * @run: makes it; 0 or -errno
 * @flags: of CREATE, and EMPTY: the free slot has no memory, so that what builds
 *	it has some of it in hand when the next piece fails
 * @after: what the arena can do after it
 */
struct call {
	const char *name;
	int (*run)(struct scene *s);
	uint32_t flags;
	enum aftermath after;
};

#define EMPTY (1U << 31)

static void scene_open(struct scene *s, uint32_t flags)
{
	struct tensorarena_ticket small;
	struct tensorarena_borrow b;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->control = control_open();
	MUST(!arena_try(&s->a, SLOTS, SLOT_BYTES, 0, flags));
	arena_map(&s->a);
	reader_attach(&s->a, &s->r);
	reader_map(&s->r);
	s->extra = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, s->r.fd, 0);
	MUST(s->extra != MAP_FAILED);
	s->seen = put(&s->a, BYTES, SEED);
	s->other = put(&s->a, BYTES, SEED + 1);
	MUST(!next(&s->r, &b) && delivered(&s->r, &b));
	MUST(!acquire_patiently(&s->a, BYTES, &s->acq));
	small = put(&s->a, 100, SEED);
	MUST(!release(&s->r, &small));
}

/* What each of its three slots in use has. */
static uint64_t slot_memory(const struct scene *s)
{
	return s->a.made.flags & TENSORARENA_CREATE_CONTIGUOUS ? SLOT_BYTES :
								 CHUNK;
}

static void scene_close(struct scene *s)
{
	if (s->map)
		MUST(!munmap(s->map, CHUNK));
	if (s->fd >= 0)
		MUST(!close(s->fd));
	MUST(!munmap(s->extra, CHUNK));
	MUST(!close(s->control));
	MUST(!munmap(s->r.map, s->r.bytes));
	MUST(!munmap(s->a.map, s->a.bytes));
	MUST(!close(s->r.fd));
	MUST(!close(s->a.fd));
}

/* ---- calls ---- */

static int call_open(struct scene *s)
{
	s->fd = open("/dev/tensorarena", O_RDWR | O_CLOEXEC);
	return s->fd < 0 ? -errno : 0;
}

static int call_info(struct scene *s)
{
	struct tensorarena_info info = { 0 };

	return request(s->control, TENSORARENA_INFO, &info);
}

static int create(struct scene *s, uint32_t flags)
{
	struct tensorarena_create args = {
		.slot_bytes = SLOT_BYTES,
		.slots = SLOTS,
		.seats = 2,
		.flags = flags,
		.node = TENSORARENA_NODE_LOCAL,
	};
	int err = request(s->control, TENSORARENA_CREATE, &args);

	s->fd = err ? -1 : args.fd;
	return err;
}

static int call_create(struct scene *s)
{
	return create(s, 0);
}

static int call_create_contiguous(struct scene *s)
{
	return create(s, TENSORARENA_CREATE_CONTIGUOUS);
}

static int call_attach(struct scene *s)
{
	struct tensorarena_attach args = { .arena = s->a.made.arena };
	int err;

	memcpy(args.cookie, s->a.made.cookie, sizeof(args.cookie));
	err = request(s->control, TENSORARENA_ATTACH, &args);
	s->fd = err ? -1 : args.fd;
	return err;
}

/* A slot that has too little memory. */
static int call_acquire(struct scene *s)
{
	return acquire(&s->a, 2 * CHUNK, &s->more);
}

static int call_publish(struct scene *s)
{
	int n = publish(&s->a, s->acq.slot, s->acq.generation, BYTES);

	return n < 0 ? n : 0;
}

static int call_publish_to(struct scene *s)
{
	const uint64_t reader = s->r.made.reader;
	int n = publish_to(&s->a, s->acq.slot, s->acq.generation, BYTES,
			   &reader, 1);

	return n < 0 ? n : 0;
}

static int call_abort(struct scene *s)
{
	return abort_slot(&s->a, s->acq.slot, s->acq.generation);
}

static int call_retract(struct scene *s)
{
	int n = retract(&s->a, s->other.slot, s->other.generation);

	return n < 0 ? n : 0;
}

static int call_populate(struct scene *s)
{
	struct tensorarena_populate args = { .nbytes = 2 * CHUNK, .slots = 1 };

	return request(s->a.fd, TENSORARENA_POPULATE, &args);
}

static int call_trim(struct scene *s)
{
	return trim(&s->a, 0);
}

static int call_evict(struct scene *s)
{
	int n = evict(&s->a, s->r.made.reader, 0);

	return n < 0 ? n : 0;
}

static int call_stats(struct scene *s)
{
	struct tensorarena_reader_stats row[4];
	struct tensorarena_stats st = { .readers = (uintptr_t)row,
					.row_bytes = sizeof(row[0]),
					.nr_readers = 4 };

	return request(s->a.fd, TENSORARENA_STATS, &st);
}

static int call_next(struct scene *s)
{
	struct tensorarena_borrow b;
	int err = next(&s->r, &b);

	s->told = !err;
	return err;
}

static int call_borrow(struct scene *s)
{
	struct tensorarena_borrow b;

	return borrow(&s->r, &s->other, &b);
}

static int call_release(struct scene *s)
{
	return release(&s->r, &s->other);
}

static int call_detach_reader(struct scene *s)
{
	int n = detach(&s->r);

	return n < 0 ? n : 0;
}

static int call_detach_writer(struct scene *s)
{
	struct tensorarena_detach args = { 0 };

	return request(s->a.fd, TENSORARENA_DETACH, &args);
}

static int call_mmap(struct scene *s)
{
	void *p = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, s->r.fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	s->map = p;
	return 0;
}

/* Page tables are what can be wanting; the kernel tries again then. */
static int call_fault(struct scene *s)
{
	uint8_t *p = mmap(NULL, CHUNK, PROT_READ, MAP_SHARED, s->r.fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	s->map = p;
	/* A signal here ends the program, which is a failure, too. */
	(void)*(volatile uint8_t *)(s->r.map + s->r.made.stride + PAGE);
	(void)*(volatile uint8_t *)(p + PAGE);
	return 0;
}

static int call_munmap(struct scene *s)
{
	return munmap(s->extra + CHUNK / 2, PAGE) ? -errno : 0;
}

static int call_poll(struct scene *s)
{
	struct pollfd pfd[2] = { { .fd = s->a.fd, .events = POLLOUT },
				 { .fd = s->r.fd, .events = POLLIN } };

	return poll(pfd, 2, 0) < 0 ? -errno : 0;
}

static int call_epoll(struct scene *s)
{
	struct epoll_event ev = { .events = EPOLLIN };

	s->fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	return epoll_ctl(s->fd, EPOLL_CTL_ADD, s->r.fd, &ev) ? -errno : 0;
}

static int call_fork(struct scene *s)
{
	pid_t pid = fork();

	(void)s;
	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(0);
	MUST(waitpid(pid, NULL, 0) == pid);
	return 0;
}

static int call_sysfs(struct scene *s)
{
	char path[160], text[4096];
	size_t used;
	int fd, err;

	arena_dir(path, sizeof(path), s->a.made.arena);
	used = strlen(path);
	snprintf(path + used, sizeof(path) - used, "/slot_huge_bytes");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = read(fd, text, sizeof(text)) < 0 ? -errno : 0;
	MUST(!close(fd));
	return err;
}

static int call_close_reader(struct scene *s)
{
	int err = call_attach(s);

	if (!err && close(s->fd))
		err = -errno;
	s->fd = -1;
	return err;
}

static int call_procfs(struct scene *s)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	(void)s;
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		;
	fclose(f);
	return 0;
}

#define SMALL TENSORARENA_CREATE_FALLBACK_SMALL
#define EXTENT TENSORARENA_CREATE_CONTIGUOUS

static const struct call calls[] = {
	{ "open", call_open, 0, GOES_ON },
	{ "INFO", call_info, 0, GOES_ON },
	{ "CREATE", call_create, 0, GOES_ON },
	{ "CREATE, contiguous", call_create_contiguous, 0, GOES_ON },
	{ "ATTACH", call_attach, 0, GOES_ON },
	{ "ATTACH and close", call_close_reader, 0, GOES_ON },
	{ "ACQUIRE", call_acquire, 0, GOES_ON },
	{ "ACQUIRE, small pages", call_acquire, SMALL, GOES_ON },
	{ "ACQUIRE, all of it", call_acquire, EMPTY, GOES_ON },
	{ "ACQUIRE, all of it in small pages", call_acquire, EMPTY | SMALL,
	  GOES_ON },
	{ "ACQUIRE, contiguous", call_acquire, EMPTY | EXTENT, GOES_ON },
	{ "PUBLISH", call_publish, 0, GOES_ON },
	{ "PUBLISH to some", call_publish_to, 0, GOES_ON },
	{ "ABORT", call_abort, 0, GOES_ON },
	{ "RETRACT", call_retract, 0, GOES_ON },
	{ "POPULATE", call_populate, 0, GOES_ON },
	{ "POPULATE, small pages", call_populate, SMALL, GOES_ON },
	{ "POPULATE, all of it", call_populate, EMPTY, GOES_ON },
	{ "TRIM", call_trim, 0, GOES_ON },
	{ "EVICT", call_evict, 0, READER_GONE },
	{ "STATS", call_stats, 0, GOES_ON },
	{ "NEXT", call_next, 0, TELLS_AGAIN },
	{ "BORROW", call_borrow, 0, GOES_ON },
	{ "RELEASE", call_release, 0, GOES_ON },
	{ "DETACH of a reader", call_detach_reader, 0, READER_GONE },
	{ "DETACH of a writer", call_detach_writer, 0, WRITER_GONE },
	{ "mmap", call_mmap, 0, GOES_ON },
	{ "a fault", call_fault, 0, GOES_ON },
	{ "a fault, small pages", call_fault, SMALL, GOES_ON },
	{ "munmap in the middle", call_munmap, 0, GOES_ON },
	{ "poll", call_poll, 0, GOES_ON },
	{ "epoll", call_epoll, 0, GOES_ON },
	{ "fork", call_fork, 0, GOES_ON },
	{ "sysfs", call_sysfs, 0, GOES_ON },
	{ "/proc/self/maps", call_procfs, 0, GOES_ON },
};

/* ---- whether all is well after ---- */

/* Compaction looks at a page for a moment, and so makes it busy. */
static bool trims_to_nothing(struct scene *s)
{
	const double end = now_ms() + HANG_MS;
	int err, tries = 0;

	do {
		err = trim(&s->a, 0);
		if (!err && !stats_get(&s->a).allocated_bytes)
			break;
		usleep(1000);
	} while (++tries && now_ms() < end);
	if (tries)
		printf("# trim: %d tries more, then %d, %llu bytes\n", tries,
		       err,
		       (unsigned long long)stats_get(&s->a).allocated_bytes);
	return now_ms() < end;
}

/* All that is not being written or read. */
static bool trims_idle(struct scene *s)
{
	const double end = now_ms() + HANG_MS;
	const uint64_t busy = 3 * slot_memory(s);

	do {
		trim(&s->a, 0);
		if (stats_get(&s->a).allocated_bytes == busy)
			return true;
		usleep(1000);
	} while (now_ms() < end);
	return false;
}

/* The reader gives back what it has; then a tensor goes from end to end. */
static const char *goes_on(struct scene *s)
{
	struct tensorarena_borrow b;
	struct tensorarena_stats st;

	/* A second reader would have to give back what it is sent. */
	if (s->fd >= 0)
		MUST(!close(s->fd));
	s->fd = -1;
	release(&s->r, &s->seen);
	release(&s->r, &s->other);
	abort_slot(&s->a, s->acq.slot, s->acq.generation);
	abort_slot(&s->a, s->more.slot, s->more.generation);
	while (!next(&s->r, &b))
		MUST(!release(&s->r, &b.ticket));
	st = stats_get(&s->a);
	if (st.free != SLOTS || st.writing || st.published)
		return "not all slots are free";
	put(&s->a, BYTES, SEED);
	if (next(&s->r, &b) || !delivered(&s->r, &b) ||
	    release(&s->r, &b.ticket))
		return "no tensor arrives any more";
	return trims_to_nothing(s) ? NULL : "memory is left after a trim";
}

/* What a call could not tell is told the next one. */
static const char *tells_again(struct scene *s)
{
	struct tensorarena_borrow b;

	if (!s->told && (next(&s->r, &b) || b.ticket.slot != s->other.slot ||
			 b.ticket.generation != s->other.generation))
		return "a publication is lost";
	return goes_on(s);
}

static const char *writer_goes_on(struct scene *s)
{
	struct tensorarena_stats st;
	struct reader r;

	abort_slot(&s->a, s->acq.slot, s->acq.generation);
	/* The call may have failed before it did anything. */
	detach(&s->r);
	st = stats_get(&s->a);
	if (st.free != SLOTS || st.nr_readers)
		return "the reader left something behind";
	if (attach(&s->a, &r) || close(r.fd))
		return "nobody can attach any more";
	return NULL;
}

static const char *check(struct scene *s, const struct call *call)
{
	switch (call->after) {
	case GOES_ON:
		return goes_on(s);
	case TELLS_AGAIN:
		return tells_again(s);
	case READER_GONE:
		return writer_goes_on(s);
	case WRITER_GONE:
		break;
	}
	return NULL;
}

static bool is_documented(int err)
{
	/* EAGAIN is fork()'s. */
	return !err || err == -ENOMEM || err == -EFAULT || err == -EAGAIN;
}

/*
 * NULL and whether there was an n-th chance, or what went wrong.  @nth 0: every
 * so many chances.
 */
static const char *attempt(const struct call *call, int inject_fd,
			   unsigned int nth, bool *struck)
{
	const double end = now_ms() + HANG_MS;
	const char *why;
	struct scene s;
	int err;

	scene_open(&s, call->flags & ~EMPTY);
	if (call->flags & EMPTY)
		MUST(trims_idle(&s));
	if (nth) {
		inject(inject_fd, nth);
		err = call->run(&s);
		*struck = injected(inject_fd);
	} else {
		inject_often(PERCENT);
		err = call->run(&s);
		inject_often(0);
		*struck = true;
	}
	why = check(&s, call);
	scene_close(&s);
	while (info_get().arenas && now_ms() < end)
		usleep(1000);
	if (!why && info_get().arenas)
		why = "the arena outlives its files";
	if (!why && !is_documented(err))
		why = strerror(-err);
	if (!why && !*struck && err)
		why = "an error without a cause";
	return why;
}

/* ---- what stays charged ---- */

/* So that page tables and the like of other programs are not in it. */
static void charge_to_ourselves(void)
{
	MUST(!write_to("/sys/fs/cgroup/cgroup.subtree_control", "+memory"));
	MUST(!mkdir(CGROUP, 0755) || errno == EEXIST);
	MUST(!write_to(CGROUP "cgroup.procs", "0"));
}

static uint64_t charged(void)
{
	return figure_in(CGROUP "memory.current", "");
}

/* An arena's memory goes in the background, and charges in batches. */
static bool charge_is_again(uint64_t before)
{
	const double end = now_ms() + HANG_MS;

	while (charged() > before + NOISE && now_ms() < end)
		usleep(10000);
	if (charged() <= before + NOISE)
		return true;
	printf("# %" PRIu64 " KiB are charged, %" PRIu64 " KiB before\n",
	       charged() >> 10, before >> 10);
	return false;
}

/* ---- all of it ---- */

static uint64_t run_call(const struct call *call, int inject_fd,
			 unsigned int index, uint64_t *failures)
{
	const uint64_t before = charged();
	const char *why = NULL;
	unsigned int nth = 0;
	bool struck = true;

	while (struck && !why)
		why = attempt(call, inject_fd, ++nth, &struck);
	if (!why && !charge_is_again(before))
		why = "memory is lost";
	if (why)
		printf("# the %u-th chance: %s\n", nth, why);
	else
		printf("# %u chances to fail\n", nth - 1);
	printf("%sok %u - %s fails cleanly wherever it can\n",
	       why ? "not " : "", index, call->name);
	MUST(!fflush(stdout));
	*failures += why != NULL;
	return nth - 1;
}

/* More than one thing fails: a fallback, and what it falls back to. */
static uint64_t run_all_often(int inject_fd, unsigned int index,
			      uint64_t *failures)
{
	const unsigned int nr = sizeof(calls) / sizeof(calls[0]);
	const uint64_t before = charged();
	const char *why = NULL;
	unsigned int i = 0;
	bool struck;

	for (i = 0; i < OFTEN && !why; i++)
		why = attempt(&calls[i % nr], inject_fd, 0, &struck);
	if (!why && !charge_is_again(before))
		why = "memory is lost";
	if (why)
		printf("# %s: %s\n", calls[(i - 1) % nr].name, why);
	printf("%sok %u - nothing is lost when much fails at once\n",
	       why ? "not " : "", index);
	*failures += why != NULL;
	return i;
}

int main(void)
{
	const unsigned int nr = sizeof(calls) / sizeof(calls[0]);
	uint64_t chances = 0, failures = 0;
	unsigned int i;
	int fd;

	if (!inject_setup()) {
		printf("1..0 # SKIP no fault injection in this kernel\n");
		return 4;
	}
	printf("1..%u\n", nr + 1);
	charge_to_ourselves();
	fd = inject_open();
	for (i = 0; i < nr; i++)
		chances += run_call(&calls[i], fd, i + 1, &failures);
	chances += run_all_often(fd, nr + 1, &failures);
	campaign_fact("fault-injection", chances, "injected faults", failures);
	return failures != 0;
}
