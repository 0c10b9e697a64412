// SPDX-License-Identifier: MIT
/*
 * Eclipse iceoryx, a zero-copy library with a pool that a daemon owns: loan a
 * chunk, one memcpy, publish; a wait set, take, release.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <iceoryx_binding_c/log.h>
#include <iceoryx_binding_c/publisher.h>
#include <iceoryx_binding_c/runtime.h>
#include <iceoryx_binding_c/subscriber.h>
#include <iceoryx_binding_c/wait_set.h>

#include "contender.h"

/* How long the daemon may take to bring both sides together. */
#define MEET_TRIES 2000

/**
 * struct publishing, struct subscribing - an end's state
 * @place: where the library keeps its own
 */
struct publishing {
	iox_pub_storage_t place;
	iox_pub_t publisher;
};

struct subscribing {
	iox_sub_storage_t place;
	iox_ws_storage_t place_of_set;
	iox_sub_t subscriber;
	iox_ws_t set;
};

/* What goes before the tensor: its size, on a cache line of its own. */
struct header {
	uint64_t nbytes;
	uint64_t reserved[7];
};

static void join(const struct end *end, const char *role)
{
	char name[100];

	/* The library makes files of this name in /tmp. */
	snprintf(name, sizeof(name), "%.64s-%s-%u-%u",
		 strrchr(end->dir, '/') + 1, role, end->group, end->number);
	iox_set_loglevel(Iceoryx_LogLevel_Error);
	iox_runtime_init(name);
}

static void open_writer(struct end *end)
{
	struct publishing *p = calloc(1, sizeof(*p));
	iox_pub_options_t options;

	if (!p)
		die("iceoryx", ENOMEM);
	join(end, "writer");
	iox_pub_options_init(&options);
	options.subscriberTooSlowPolicy =
		ConsumerTooSlowPolicy_WAIT_FOR_CONSUMER;
	snprintf(end->address, sizeof(end->address), "%u", end->group);
	p->publisher = iox_pub_init(&p->place, "tensorarena", "bench",
				    end->address, &options);
	end->state = p;
}

static void put(struct end *end, const void *src, size_t nbytes)
{
	struct publishing *p = end->state;
	struct header *header;
	void *chunk;

	if (iox_pub_loan_aligned_chunk(
		    p->publisher, &chunk, (uint32_t)(sizeof(*header) + nbytes),
		    sizeof(*header)) != AllocationResult_SUCCESS)
		die("iceoryx has no chunk", 0);
	header = chunk;
	header->nbytes = nbytes;
	memcpy(header + 1, src, nbytes);
	iox_pub_publish_chunk(p->publisher, chunk);
}

static void close_writer(struct end *end)
{
	struct publishing *p = end->state;

	iox_pub_deinit(p->publisher);
	/*
	 * No iox_runtime_shutdown(): it has a thread of the library's tell the
	 * daemon at the time when exit() does, and each may get the other's
	 * answer, or none for ever.
	 */
}

/* The daemon brings both together, in its own time. */
static void await_subscription(iox_sub_t subscriber)
{
	const struct timespec moment = { .tv_nsec = 5000000 };
	int i;

	for (i = 0; i < MEET_TRIES; i++) {
		if (iox_sub_get_subscription_state(subscriber) ==
		    SubscribeState_SUBSCRIBED)
			return;
		nanosleep(&moment, NULL);
	}
	die("iceoryx: the publisher is not found", 0);
}

static void open_reader(struct end *end)
{
	struct subscribing *s = calloc(1, sizeof(*s));
	iox_sub_options_t options;

	if (!s)
		die("iceoryx", ENOMEM);
	join(end, "reader");
	iox_sub_options_init(&options);
	options.queueFullPolicy = QueueFullPolicy_BLOCK_PRODUCER;
	options.queueCapacity = 2;
	s->subscriber = iox_sub_init(&s->place, "tensorarena", "bench",
				     end->address, &options);
	s->set = iox_ws_init(&s->place_of_set);
	if (iox_ws_attach_subscriber_state(s->set, s->subscriber,
					   SubscriberState_HAS_DATA, 0,
					   NULL) != WaitSetResult_SUCCESS)
		die("iceoryx: no wait set", 0);
	await_subscription(s->subscriber);
	end->state = s;
}

static void take(struct end *end, struct bytes *bytes)
{
	struct subscribing *s = end->state;
	iox_notification_info_t info;
	const struct header *header;
	const void *chunk;
	uint64_t missed;

	while (iox_sub_take_chunk(s->subscriber, &chunk) !=
	       ChunkReceiveResult_SUCCESS)
		iox_ws_wait(s->set, &info, 1, &missed);
	header = chunk;
	*bytes = (struct bytes){ header + 1, header->nbytes, (void *)chunk };
}

static void drop(struct end *end, struct bytes *bytes)
{
	struct subscribing *s = end->state;

	iox_sub_release_chunk(s->subscriber, bytes->hold);
}

static void close_reader(struct end *end)
{
	struct subscribing *s = end->state;

	iox_ws_deinit(s->set);
	iox_sub_deinit(s->subscriber);
}

const struct contender contender_iceoryx = {
	.name = "iceoryx",
	.about = "Eclipse iceoryx, a zero-copy pool owned by a daemon: loan, "
		 "memcpy(), publish; pageable",
	.copies_put = 1,
	.copies_gpu = 1,
	.open_writer = open_writer,
	.put = put,
	.close_writer = close_writer,
	.open_reader = open_reader,
	.take = take,
	.drop = drop,
	.close_reader = close_reader,
};
