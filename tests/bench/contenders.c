// SPDX-License-Identifier: MIT
/* All contenders, in the order in which they are reported. */
#include <string.h>

#include "contender.h"

const struct contender *const contenders[] = {
	&contender_arena,
	&contender_socket,
	&contender_pickle,
	&contender_shm,
	&contender_iceoryx,
	&contender_memcpy,
	&contender_best_copy,
	&contender_pinned,
	&contender_message,
	&contender_message_arena,
	NULL,
};

const struct contender *contender_named(const char *name)
{
	size_t i;

	for (i = 0; contenders[i]; i++)
		if (!strcmp(contenders[i]->name, name))
			return contenders[i];
	return NULL;
}
