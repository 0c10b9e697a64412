// SPDX-License-Identifier: MIT
/* What the commands that show arenas do alike. */
#include "arenas.h"

int arenas_option(struct arenas *arenas, const char *handle)
{
	struct reason why;

	if (!arenas_add(arenas, handle, &why))
		return 0;
	complain("%s", why.text);
	return -1;
}

json_t *arenas_look(const struct arenas *arenas)
{
	struct reason why;
	json_t *seen = arenas_read(arenas, &why);

	if (!seen)
		complain("%s", why.text);
	return seen;
}
