// SPDX-License-Identifier: MIT
/* Arenas to play on. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fuzz.h"

const char *disagree(struct stage *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->why, sizeof(s->why), format, args);
	va_end(args);
	return s->why;
}

void stage_open(struct stage *s, uint32_t seats)
{
	const char *engine = getenv("TENSORARENA_TEST_ENGINE");
	struct ta_options options;

	memset(s, 0, sizeof(*s));
	world_init(&s->w, seats);
	s->device = engine && !strcmp(engine, "device");
	s->engine = s->device ? &ta_engine_device : &ta_engine_embedded;
	s->made.slot_bytes = MODEL_SLOT_BYTES;
	s->made.slots = MODEL_SLOTS;
	s->made.seats = seats;
	s->made.node = TENSORARENA_NODE_LOCAL;
	ta_options_init(&options);
	MUST(!s->engine->create(&options, &s->made, &s->handle, &s->writer));
}

/* The arenas of the module; this process makes one at a time. */
static uint32_t arenas(void)
{
	struct tensorarena_info info = { 0 };
	int fd = open(TA_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	MUST(fd >= 0);
	MUST(!ioctl(fd, TENSORARENA_INFO, &info));
	close(fd);
	return info.arenas;
}

const char *stage_close(struct stage *s)
{
	double end = now_seconds() + 30;
	bool good;
	uint8_t i;

	for (i = 0; i < MODEL_SEATS; i++) {
		struct op leave = { .kind = OP_LEAVE,
				    .slot = i,
				    .arg = s->seat[i].child ?
						   TA_LEAVE_DIED :
						   TA_LEAVE_DETACHED };
		const char *why;

		if (!s->w.m.seat[i].reader)
			continue;
		why = modelled_op(s, &leave, &good);
		if (why)
			return why;
	}
	if (s->writer)
		s->writer->ops->close(s->writer, false);
	if (!s->device)
		return NULL;
	while (arenas()) {
		if (now_seconds() > end)
			return "the arena outlives its files";
		usleep(200);
	}
	return NULL;
}
