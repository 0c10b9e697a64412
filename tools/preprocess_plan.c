// SPDX-License-Identifier: MIT
/*
 * To which size an image is scaled: the published "smart_resize".
 */
#include <math.h>

#include "preprocess.h"

#define MIN_PIXELS (56.0 * 56.0)
#define MAX_ASPECT 200.0

/* To the nearest multiple; halves go to the even one, as in Python's round. */
static double nearest_multiple(double side)
{
	return nearbyint(side / PREPROCESS_FACTOR) * PREPROCESS_FACTOR;
}

static double multiple_below(double side)
{
	return fmax(floor(side / PREPROCESS_FACTOR), 1) * PREPROCESS_FACTOR;
}

static double multiple_above(double side)
{
	return ceil(side / PREPROCESS_FACTOR) * PREPROCESS_FACTOR;
}

int preprocess_plan(struct preprocess_plan *plan, uint32_t in_width,
		    uint32_t in_height, uint64_t max_pixels, struct reason *why)
{
	double w = in_width, h = in_height;
	double to_w, to_h, shrink, grow;

	if (!in_width || !in_height)
		return reason_set(why, "image without pixels");
	if (fmax(w, h) / fmin(w, h) > MAX_ASPECT)
		return reason_set(why,
				  "image of %u x %u pixels is too oblong; "
				  "the model takes up to %.0f to 1",
				  in_width, in_height, MAX_ASPECT);

	to_w = nearest_multiple(w);
	to_h = nearest_multiple(h);
	if (max_pixels && to_w * to_h > max_pixels) {
		shrink = sqrt(h * w / max_pixels);
		to_w = multiple_below(w / shrink);
		to_h = multiple_below(h / shrink);
	} else if (to_w * to_h < MIN_PIXELS) {
		grow = sqrt(MIN_PIXELS / (h * w));
		to_w = multiple_above(w * grow);
		to_h = multiple_above(h * grow);
	}

	*plan = (struct preprocess_plan){
		.in_width = in_width,
		.in_height = in_height,
		.width = to_w,
		.height = to_h,
	};
	return 0;
}
