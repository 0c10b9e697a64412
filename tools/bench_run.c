// SPDX-License-Identifier: MIT
/*
 * The measuring.  What is compared is measured in turn, round by round, so that
 * whatever else the machine does meets both.
 */
#include <string.h>

#include "bench.h"
#include "cuda.h"
#include "median.h"

#define SMALL_BYTES 4096
#define SMALL_ROUNDS 500

/* ---- the tensor ---- */

/* Bytes that no two places have in common, so that a mix-up is seen. */
static int fill(struct input *in, void *dst, int stop, struct reason *why)
{
	uint64_t state = 88172645463325252u, n;
	unsigned char *to = dst;

	(void)stop;
	(void)why;
	for (n = in->nbytes; n; n -= n < 8 ? n : 8, to += 8) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(to, &state, n < 8 ? n : 8);
	}
	return 0;
}

static const struct input_ops pattern = {
	.produce = fill,
};

static void tensor_of(struct input *in, uint64_t nbytes)
{
	*in = (struct input){
		.ops = &pattern,
		.fd = -1,
		.nbytes = nbytes,
		.tensor = {
			.code = TA_UINT,
			.bits = 8,
			.lanes = 1,
			.ndim = 1,
			.shape = { (int64_t)nbytes },
		},
	};
}

/* ---- broadcasts ---- */

static int round_of(struct broadcast *b, struct reason *why)
{
	if (broadcast_round_run(b, why))
		return -1;
	if (b->round[b->rounds - 1].verified != b->options->readers)
		return reason_set(why, "not every reader saw its bytes");
	return 0;
}

/* As many as there are to be, of each in turn. */
static int rounds_of(struct broadcast *b, size_t nr, struct reason *why)
{
	uint32_t round;
	size_t i;

	for (round = 0; round < b->options->repeat; round++)
		for (i = 0; i < nr; i++)
			if (round_of(&b[i], why))
				return -1;
	return 0;
}

/* ---- the operations ---- */

static void reckon_small(struct bench_small *small, const struct broadcast *b,
			 const struct broadcast_figures *f)
{
	const struct worker *w = &b->crew.worker[0];

	/* Without the first, as in @f. */
	small->put_us = f->put_ms * 1e3;
	small->view_us = median(w->view_ms + 1, w->verified - 1) * 1e3;
	small->release_us = median(w->release_ms + 1, w->verified - 1) * 1e3;
}

static int measure_small(struct bench *bench, int stop, struct reason *why)
{
	const struct broadcast_options options = {
		.readers = 1,
		.repeat = SMALL_ROUNDS,
		.slots = 2,
		.engine = bench->options->engine,
	};
	struct broadcast b = { .options = &options, .stop = stop };
	struct broadcast_figures f;
	int err;

	tensor_of(&b.in, SMALL_BYTES);
	if (broadcast_open(&b, why))
		return -1;
	err = rounds_of(&b, 1, why);
	if (!err && broadcast_figures(&b, &f))
		err = reason_set(why, "no memory for the figures");
	if (!err) {
		bench->device = ta_writer_engine(b.writer) == TA_ENGINE_DEVICE;
		reckon_small(&bench->small, &b, &f);
		if (!bench->options->json)
			bench_say_small(bench, &b);
	}
	broadcast_close(&b, err);
	return err;
}

/* ---- the ways ---- */

static int take_figures(struct bench *bench, const struct broadcast *b,
			struct reason *why)
{
	struct bench_way *way = &bench->way[bench->ways];

	way->socket = b->options->socket;
	way->readers = b->options->readers;
	way->gpu = b->options->gpu;
	if (broadcast_figures(b, &way->figures))
		return reason_set(why, "no memory for the figures");
	bench->ways++;
	if (!bench->options->json)
		bench_say_way(way);
	return 0;
}

/* An arena and sockets, side by side. */
static int measure_ways(struct bench *bench, uint32_t readers, bool gpu,
			int stop, struct reason *why)
{
	struct broadcast_options options[2] = { {
		.readers = readers,
		.repeat = bench->options->rounds + 1,
		.slots = 2,
		.engine = bench->options->engine,
		.gpu = gpu,
	} };
	struct broadcast b[2];
	int err, i;

	options[1] = options[0];
	options[1].socket = true;
	for (i = 0; i < 2; i++) {
		b[i] = (struct broadcast){
			.options = &options[i],
			.stop = stop,
		};
		tensor_of(&b[i].in, bench->options->nbytes);
	}
	if (broadcast_open(&b[0], why))
		return -1;
	err = broadcast_open(&b[1], why);
	if (!err) {
		err = rounds_of(b, 2, why);
		for (i = 0; i < 2 && !err; i++)
			err = take_figures(bench, &b[i], why);
		broadcast_close(&b[1], err);
	}
	broadcast_close(&b[0], err);
	return err;
}

/* Makes no context: the workers do that. */
static bool find_gpu(struct reason *why)
{
	struct cuda_driver driver;
	struct cuda cuda;
	int count = 0;

	if (cuda_driver_load(&driver, why) || cuda_load(&cuda, why))
		return false;
	if (driver.Init(0) || driver.DeviceGetCount(&count) || !count) {
		reason_set(why, "NVIDIA's driver finds no GPU");
		return false;
	}
	return true;
}

int bench_run(struct bench *bench, int stop, struct reason *why)
{
	const struct bench_options *o = bench->options;

	if (measure_small(bench, stop, why))
		return -1;
	if (!o->json)
		bench_say_heading(bench);
	if (measure_ways(bench, 1, false, stop, why))
		return -1;
	if (o->readers > 1 && measure_ways(bench, o->readers, false, stop, why))
		return -1;
	if (find_gpu(&bench->no_gpu)) {
		bench->no_gpu.text[0] = '\0';
		if (measure_ways(bench, o->readers, true, stop, why))
			return -1;
	}
	if (!o->json)
		bench_say_end(bench);
	return 0;
}
