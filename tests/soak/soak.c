// SPDX-License-Identifier: MIT
/*
 * Many tensors of mixed sizes through eight readers that come, go and die, for
 * as long as it takes to see what grows.
 *
 *	soak [--rounds TENSORS] [--seed S]
 *
 * TENSORARENA_SECONDS in the environment ends it earlier.  Memory, descriptors
 * and counters are looked at twenty times; what they were after the first tenth
 * they must be in the end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tensorarena.h>

#include "tests/campaign/campaign.h"
#include "tests/kill/pattern.h"

#define READERS 8
#define SLOTS 16
#define SLOT_BYTES ((size_t)4 << 20)
#define HANG_SECONDS 120.0
#define SAMPLES 20
/* Of the writer's memory: what the C library keeps for itself. */
#define RSS_NOISE_KB 2048
/* Of the machine's, in the virtual one, where there is nothing else: no slot. */
#define MACHINE_NOISE_KB (SLOT_BYTES * 3 / 4 >> 10)
#define SETTLED_KB 1024
/* Between two looks that have to agree. */
#define PEACE_US 50000

#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "# %s:%d: %s: %m\n", __FILE__,         \
				__LINE__, #condition);                         \
			abort();                                               \
		}                                                              \
	} while (0)

/* ---- readers ---- */

/* How a reader comes to its end; the last is the writer's doing. */
enum end {
	END_CLOSE,
	END_EXIT,
	END_KILLED,
	ENDS,
};

enum status {
	STATUS_GOOD = 0,
	STATUS_BAD_BYTES = 10,
	STATUS_ERROR = 11,
};

static int read_tensors(struct ta_reader *reader, uint64_t nr, bool keep)
{
	struct ta_view *view;
	uint64_t seed;
	int err;

	while (nr--) {
		err = ta_next(reader, (int)(HANG_SECONDS * 1000), &view);
		if (err == -EPIPE)
			return STATUS_GOOD;
		if (err)
			return STATUS_ERROR;
		memcpy(&seed, view->tensor.tag, sizeof(seed));
		if (!is_pattern(view->data, view->nbytes, seed))
			return STATUS_BAD_BYTES;
		/* The last is never given back by one who dies. */
		if (!(keep && !nr) && ta_release(view))
			return STATUS_ERROR;
	}
	return STATUS_GOOD;
}

/* argv: soak reader HANDLE TENSORS END */
static int reader_main(char **argv)
{
	enum end end = (enum end)atoi(argv[4]);
	struct ta_reader *reader;
	int err, status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	err = ta_attach(argv[2], &reader);
	if (err == -EPIPE || err == -EACCES || err == -ECONNREFUSED)
		return STATUS_GOOD;
	if (err)
		return STATUS_ERROR;
	status = read_tensors(reader, strtoull(argv[3], NULL, 10),
			      end != END_CLOSE);
	if (status)
		_exit(status);
	if (end == END_CLOSE)
		ta_reader_close(reader);
	/* For those who are to be killed this is early enough, too. */
	_exit(STATUS_GOOD);
}

struct crew {
	pid_t pid[READERS];
	uint64_t random;
	uint64_t started, died, bad;
};

static pid_t start_reader(const char *handle, uint64_t nr, enum end end)
{
	char tensors[32], how[16];
	pid_t pid;

	snprintf(tensors, sizeof(tensors), "%" PRIu64, nr);
	snprintf(how, sizeof(how), "%d", end);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		execl("/proc/self/exe", "soak", "reader", handle, tensors, how,
		      (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void fill_crew(struct crew *c, const char *handle)
{
	int i;

	for (i = 0; i < READERS; i++) {
		enum end end;

		if (c->pid[i])
			continue;
		end = (enum end)random_below(&c->random, ENDS);
		c->pid[i] = start_reader(
			handle, 1 + random_below(&c->random, 4000), end);
		c->started++;
	}
}

static void reap_crew(struct crew *c, int flags)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, flags)) > 0) {
		for (i = 0; i < READERS; i++)
			if (c->pid[i] == pid)
				c->pid[i] = 0;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
			c->died++;
		} else if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			printf("# a reader ended with status 0x%x\n", status);
			c->bad++;
		}
	}
}

static void kill_one(struct crew *c)
{
	int i = (int)random_below(&c->random, READERS);

	if (c->pid[i])
		MUST(!kill(c->pid[i], SIGKILL));
}

/* ---- what must not grow ---- */

struct sample {
	uint64_t rss_kb;
	uint64_t fds;
	uint64_t free_kb; /* of the machine, in a virtual one */
};

/* The sum, where a file has the key more than once. */
static uint64_t figure(const char *path, const char *key)
{
	size_t length = strlen(key);
	uint64_t value = 0;
	char line[256];
	FILE *f = fopen(path, "re");

	MUST(f);
	while (fgets(line, sizeof(line), f)) {
		const char *word = line + strspn(line, " ");

		if (!strncmp(word, key, length))
			value += strtoull(word + length, NULL, 10);
	}
	fclose(f);
	return value;
}

/*
 * Pages that are free, but on the lists that each processor keeps for itself,
 * which MemAvailable leaves out: tens of MiB where huge pages go there, too.
 */
static uint64_t listed_kb(void)
{
	return figure("/proc/zoneinfo", "count:") *
	       ((uint64_t)sysconf(_SC_PAGESIZE) >> 10);
}

static uint64_t available_kb(void)
{
	return figure("/proc/meminfo", "MemAvailable:") + listed_kb();
}

/*
 * The two are read one after the other: what goes to a list or comes from one in
 * between is in both or in neither, until nothing does.
 */
static uint64_t settled_available_kb(void)
{
	double end = now_seconds() + HANG_SECONDS;
	uint64_t before, now = available_kb();

	do {
		before = now;
		usleep(PEACE_US);
		now = available_kb();
	} while (now_seconds() < end &&
		 (now + SETTLED_KB < before || before + SETTLED_KB < now));
	return now;
}

static uint64_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	MUST(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/*
 * @most: there may be, or 0.  A reader that was killed before it had attached is
 * none yet; the server closes its socket, but nobody waits for that.
 */
static uint64_t settled_fds(uint64_t most)
{
	double end = now_seconds() + HANG_SECONDS;
	uint64_t before, now = open_fds();

	do {
		before = now;
		usleep(PEACE_US);
		now = open_fds();
	} while (now_seconds() < end &&
		 (now != before || (most && now > most)));
	return now;
}

static bool is_device(struct ta_writer *writer)
{
	return ta_writer_engine(writer) == TA_ENGINE_DEVICE;
}

/*
 * What the kernel has freed, but keeps: empty slabs and, where KASAN waits for
 * somebody to use it nevertheless, a thirty-second of all memory.
 */
static void shrink_caches(void)
{
	glob_t caches;
	size_t i;

	if (glob("/sys/kernel/slab/*/shrink", 0, NULL, &caches))
		return;
	for (i = 0; i < caches.gl_pathc; i++) {
		int fd = open(caches.gl_pathv[i], O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		/* A cache may refuse. */
		if (write(fd, "1", 1) != 1)
			errno = 0;
		close(fd);
	}
	globfree(&caches);
}

/* With the arena empty, so that only what should not be there is there. */
static struct sample sample(struct ta_writer *writer, uint64_t most_fds)
{
	double end = now_seconds() + HANG_SECONDS;
	struct sample s;

	while (ta_trim(writer, 0, NULL) == -EBUSY && now_seconds() < end)
		usleep(1000);
	s.rss_kb = figure("/proc/self/status", "VmRSS:");
	s.fds = settled_fds(most_fds);
	if (is_device(writer)) {
		shrink_caches();
		s.free_kb = settled_available_kb();
	} else {
		s.free_kb = available_kb();
	}
	return s;
}

/* ---- the writer ---- */

static struct ta_writer *open_writer(void)
{
	const char *engine = getenv("TENSORARENA_TEST_ENGINE");
	struct ta_writer *writer;
	struct ta_options o;

	ta_options_init(&o);
	o.engine = engine && !strcmp(engine, "device") ? TA_ENGINE_DEVICE :
							 TA_ENGINE_EMBEDDED;
	o.slots = SLOTS;
	o.slot_bytes = SLOT_BYTES;
	o.flags = TA_NO_MEMORY_CHECK;
	MUST(!ta_create(&o, &writer, NULL, 0));
	return writer;
}

/* Small ones mostly; one in a hundred fills a slot. */
static size_t some_bytes(uint64_t *random)
{
	switch (random_below(random, 100)) {
	case 0:
		return SLOT_BYTES - random_below(random, 4096);
	case 1 ... 9:
		return 1 + random_below(random, 512 << 10);
	default:
		return 1 + random_below(random, 16 << 10);
	}
}

static void put_one(struct ta_writer *writer, struct crew *crew,
		    uint64_t *random)
{
	double end = now_seconds() + HANG_SECONDS;
	size_t bytes = some_bytes(random);
	uint64_t seed = random_next(random);
	struct pollfd pfd;
	int err;

	pfd.fd = ta_writer_poll_fd(writer, &pfd.events);
	for (;;) {
		err = put_pattern(writer, bytes, seed, NULL);
		if (err != -EAGAIN && err != -ENOTCONN)
			break;
		MUST(now_seconds() < end);
		reap_crew(crew, WNOHANG);
		fill_crew(crew, ta_handle(writer));
		if (err == -EAGAIN)
			poll(&pfd, 1, 10);
		else
			usleep(200);
	}
	MUST(!err);
}

/* Everybody leaves; then nothing may be held, by anyone. */
static void empty(struct ta_writer *writer, struct crew *crew)
{
	double end = now_seconds() + HANG_SECONDS;
	struct ta_stats st;
	int i;

	for (i = 0; i < READERS; i++)
		if (crew->pid[i])
			MUST(!kill(crew->pid[i], SIGKILL));
	reap_crew(crew, 0);
	do {
		MUST(!ta_stats(writer, &st, NULL, 0));
		if (st.free == SLOTS && !st.readers)
			return;
		usleep(1000);
	} while (now_seconds() < end);
	printf("# %u readers, %u slots free\n", st.readers, st.free);
	abort();
}

static bool check(bool good, int nr, const char *text)
{
	printf("%sok %d - %s\n", good ? "" : "not ", nr, text);
	return good;
}

static int judge(struct ta_writer *writer, const struct crew *crew,
		 uint64_t tensors, const struct sample *first,
		 const struct sample *last)
{
	struct ta_stats st;
	bool good;

	MUST(!ta_stats(writer, &st, NULL, 0));
	printf("# %" PRIu64 " tensors, %" PRIu64 " bytes; %" PRIu64
	       " readers came, %" PRIu64 " were killed, %" PRIu64
	       " reclaimed as dead\n",
	       st.puts, st.put_bytes, crew->started, crew->died,
	       st.reclaimed_dead_readers);
	printf("# memory of the writer: %" PRIu64 " KiB, then %" PRIu64
	       " KiB; descriptors: %" PRIu64 ", then %" PRIu64
	       "; available: %" PRIu64 " KiB, then %" PRIu64 " KiB\n",
	       first->rss_kb, last->rss_kb, first->fds, last->fds,
	       first->free_kb, last->free_kb);
	good = check(!crew->bad, 1, "every reader saw the right bytes");
	good &= check(last->rss_kb <= first->rss_kb + RSS_NOISE_KB, 2,
		      "the writer's memory does not grow");
	good &= check(last->fds <= first->fds, 3,
		      "its descriptors do not get more");
	good &= check(!is_device(writer) || last->free_kb + MACHINE_NOISE_KB >=
						    first->free_kb,
		      4, "the machine's memory does not shrink");
	good &= check(st.puts == tensors && !st.writing && !st.published &&
			      st.allocated_bytes == 0 &&
			      st.attached == st.detached + st.evicted +
						     st.reclaimed_dead_readers,
		      5, "the counters add up");
	campaign_fact("soak", tensors, "tensors", !good);
	return !good;
}

int main(int argc, char **argv)
{
	struct sample first = { 0 }, last = { 0 };
	struct ta_writer *writer;
	struct campaign c;
	struct crew crew = { 0 };
	uint64_t random, n;
	double end;

	if (argc == 5 && !strcmp(argv[1], "reader"))
		return reader_main(argv);
	c = campaign_start(argc, argv, 2000);
	printf("1..5\n");
	random = campaign_random(&c, 0, 0);
	crew.random = campaign_random(&c, 0, 1);
	end = campaign_end();
	writer = open_writer();
	for (n = 0; n < c.rounds && now_seconds() < end; n++) {
		if (n >= c.rounds / 10 &&
		    (n - c.rounds / 10) % (c.rounds / SAMPLES + 1) == 0) {
			empty(writer, &crew);
			last = sample(writer, 0);
			if (!first.fds)
				first = last;
		}
		fill_crew(&crew, ta_handle(writer));
		put_one(writer, &crew, &random);
		if (!random_below(&random, 997))
			kill_one(&crew);
		if (n % 16 == 0)
			reap_crew(&crew, WNOHANG);
	}
	empty(writer, &crew);
	last = sample(writer, first.fds);
	if (!first.fds)
		first = last;
	return judge(writer, &crew, n, &first, &last);
}
