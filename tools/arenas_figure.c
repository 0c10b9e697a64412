// SPDX-License-Identifier: MIT
/*
 * Figures out of the JSON of an arena; see arenas.h.
 */
#include "arenas.h"

long long arenas_figure(const json_t *arena, const char *name)
{
	return json_integer_value(json_object_get(arena, name));
}

long long arenas_figure_at(const json_t *arena, const char *name, size_t i)
{
	return json_integer_value(
		json_array_get(json_object_get(arena, name), i));
}

const char *arenas_name(const json_t *arena)
{
	return json_string_value(json_object_get(arena, "arena"));
}
