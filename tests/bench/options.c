// SPDX-License-Identifier: MIT
/* See options.h. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include <tensorarena.h>

#include "options.h"
#include "tools/number.h"

#define KIB 1024
/* What chunks of the pool can be asked for, with its header. */
#define LARGEST (UINT32_MAX - 4096)

static const char usage[] =
	"usage: broadcast [options]\n"
	"\n"
	"  --json FILE        where every sample goes (default: stdout)\n"
	"  --sizes LIST       KiB (default: 1, 8, 32, 100, 200, 256 MiB)\n"
	"  --readers LIST     (default 1,2,4,8)\n"
	"  --contenders LIST  NAME or NAME:N+N..., with numbers of readers of "
	"its\n"
	"                     own (default: all but the messages)\n"
	"  --engine ENGINE    auto, device or embedded (default auto)\n"
	"  --modes LIST       pointer, read, gpu (default: all there are)\n"
	"  --rounds N         of each size and mode (default 9)\n"
	"  --warmup N         rounds before that, not counted (default 1)\n"
	"  --budget SECONDS   measure no longer than this, but three rounds\n"
	"  --seed N           (default: from the clock)\n"
	"  --list             say who the contenders are\n";

/* Calls @take for each part of a list; what it says ends it. */
static int each(char *list, int (*take)(struct plan *plan, char *part),
		struct plan *plan)
{
	char *part, *rest;

	for (part = strtok_r(list, ",", &rest); part;
	     part = strtok_r(NULL, ",", &rest))
		if (take(plan, part))
			return -1;
	return 0;
}

static int take_size(struct plan *plan, char *part)
{
	uint64_t kib;

	if (plan->sizes == SIZES_MAX ||
	    number_u64(part, 1, LARGEST / KIB, &kib))
		return -1;
	plan->size[plan->sizes++] = kib * KIB;
	return 0;
}

static int take_count(struct plan *plan, char *part)
{
	return plan->counts == COUNTS_MAX ?
		       -1 :
		       number_u32(part, 1, READERS_MAX,
				  &plan->count[plan->counts++]);
}

/* NAME or NAME:N+N... */
static int take_contender(struct plan *plan, char *part)
{
	char *counts = strchr(part, ':'), *count, *rest;
	struct entry *entry = plan->entry;

	if (counts)
		*counts++ = '\0';
	while (entry->contender)
		entry++;
	/* One place is the end of the list. */
	entry->contender = contender_named(part);
	if (!entry->contender || entry == &plan->entry[ENTRIES_MAX - 1])
		return -1;
	for (count = counts ? strtok_r(counts, "+", &rest) : NULL; count;
	     count = strtok_r(NULL, "+", &rest))
		if (entry->counts == COUNTS_MAX ||
		    number_u32(count, 1, READERS_MAX,
			       &entry->count[entry->counts++]))
			return -1;
	return 0;
}

static int take_mode(struct plan *plan, char *part)
{
	enum mode mode;

	for (mode = 0; mode <= MODE_GPU; mode++)
		if (!strcmp(part, mode_names[mode])) {
			plan->modes |= 1u << mode;
			return 0;
		}
	return -1;
}

static int take_engine(struct setting *setting, const char *name)
{
	static const struct {
		const char *name;
		enum ta_engine_kind kind;
	} engines[] = {
		{ "auto", TA_ENGINE_AUTO },
		{ "device", TA_ENGINE_DEVICE },
		{ "embedded", TA_ENGINE_EMBEDDED },
	};
	size_t i;

	for (i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (!strcmp(name, engines[i].name)) {
			setting->engine = engines[i].kind;
			return 0;
		}
	return -1;
}

static void list_contenders(void)
{
	size_t i;

	for (i = 0; contenders[i]; i++)
		printf("%-12s %s\n", contenders[i]->name, contenders[i]->about);
}

static int parse_option(int c, char *value, struct request *request)
{
	struct plan *plan = &request->plan;

	switch (c) {
	case 'j':
		request->path = value;
		return 0;
	case 'e':
		return take_engine(&request->setting, value);
	case 's':
		return each(value, take_size, plan);
	case 'n':
		return each(value, take_count, plan);
	case 'c':
		return each(value, take_contender, plan);
	case 'm':
		return each(value, take_mode, plan);
	case 'k':
		return number_u32(value, 1, 100000, &plan->rounds);
	case 'w':
		return number_u32(value, 0, 1000, &plan->warmup);
	case 'b':
		return number_u32(value, 1, 86400, &plan->budget_s);
	default:
		return number_u64(value, 0, UINT64_MAX, &plan->seed);
	}
}

int options_parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "sizes", required_argument, NULL, 's' },
		{ "readers", required_argument, NULL, 'n' },
		{ "contenders", required_argument, NULL, 'c' },
		{ "engine", required_argument, NULL, 'e' },
		{ "modes", required_argument, NULL, 'm' },
		{ "rounds", required_argument, NULL, 'k' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "budget", required_argument, NULL, 'b' },
		{ "seed", required_argument, NULL, 'r' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, which = 0;

	while ((c = getopt_long(argc, argv, "", options, &which)) != -1) {
		if (c == '?')
			return 3;
		if (c == 'h' || c == 'l') {
			if (c == 'h')
				fputs(usage, stdout);
			else
				list_contenders();
			return 1;
		}
		if (parse_option(c, optarg, request)) {
			fprintf(stderr, "bench: --%s cannot be that\n",
				options[which].name);
			return 3;
		}
	}
	if (optind == argc)
		return 0;
	fputs(usage, stderr);
	return 3;
}

static void all_contenders(struct plan *plan)
{
	uint32_t i, nr = 0;

	for (i = 0; contenders[i]; i++)
		if (!contenders[i]->message)
			plan->entry[nr++].contender = contenders[i];
}

int options_complete(struct plan *plan, bool gpu)
{
	static const uint32_t mib[] = { 1, 8, 32, 100, 200, 256 };
	struct entry *entry;
	size_t i;

	if (!plan->sizes)
		for (i = 0; i < sizeof(mib) / sizeof(mib[0]); i++)
			plan->size[plan->sizes++] = (size_t)mib[i] * KIB * KIB;
	if (!plan->counts)
		for (i = 1; i <= 8; i *= 2)
			plan->count[plan->counts++] = (uint32_t)i;
	if (!plan->entry[0].contender)
		all_contenders(plan);
	for (entry = plan->entry; entry->contender; entry++)
		if (!entry->counts) {
			entry->counts = plan->counts;
			memcpy(entry->count, plan->count, sizeof(plan->count));
		}
	if (plan->modes >> MODE_GPU & 1 && !gpu)
		return -1;
	if (!plan->modes)
		plan->modes = 1u << MODE_POINTER | 1u << MODE_READ |
			      (gpu ? 1u << MODE_GPU : 0);
	return 0;
}
