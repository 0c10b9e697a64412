// SPDX-License-Identifier: MIT
/* The handle string; see handle.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "handle.h"

#define DEVICE_PREFIX "tensorarena1:device:"
#define EMBEDDED_PREFIX "tensorarena1:embedded:"

/* "tensorarena1:embedded:" u64 ":" cookie ":" "@" name NUL */
_Static_assert(sizeof(EMBEDDED_PREFIX) - 1 + 20 + 1 +
			       2 * TENSORARENA_COOKIE_BYTES + 1 + 1 +
			       TA_SOCKET_NAME_MAX + 1 <=
		       TA_HANDLE_MAX,
	       "a handle must fit the buffer callers are told to have");

bool ta_socket_valid(const char *socket)
{
	size_t max = TA_SOCKET_NAME_MAX;
	size_t len = strlen(socket);
	size_t i;

	if (socket[0] == '@')
		max++;
	else if (socket[0] != '/')
		return false;
	if (len < 2 || len > max)
		return false;
	/* A handle is one line of text, so its last field must be too. */
	for (i = 0; i < len; i++)
		if ((unsigned char)socket[i] < ' ' || socket[i] == 0x7f)
			return false;
	return true;
}

void ta_handle_format(const struct ta_handle *handle, char *buf)
{
	bool device = handle->engine == TA_ENGINE_DEVICE;
	char hex[2 * TENSORARENA_COOKIE_BYTES + 1];
	size_t i;

	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", handle->cookie[i]);
	snprintf(buf, TA_HANDLE_MAX, "%s%" PRIu64 ":%s%s%s",
		 device ? DEVICE_PREFIX : EMBEDDED_PREFIX, handle->arena, hex,
		 device ? "" : ":", device ? "" : handle->socket);
}

/* Moves *@text past @prefix if it starts with it. */
static bool skip(const char **text, const char *prefix)
{
	size_t len = strlen(prefix);

	if (strncmp(*text, prefix, len))
		return false;
	*text += len;
	return true;
}

/* Only what printf writes: no sign, no space, no leading zero. */
static bool parse_u64(const char **text, uint64_t *value)
{
	const char *p = *text;
	uint64_t v = 0;

	if (*p == '0' && p[1] >= '0' && p[1] <= '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, *p - '0', &v))
			return false;
	if (p == *text)
		return false;
	*text = p;
	*value = v;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool parse_cookie(const char **text, uint8_t *cookie)
{
	int i;

	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++) {
		int high = hex_digit((*text)[0]);
		int low = high < 0 ? -1 : hex_digit((*text)[1]);

		if (low < 0)
			return false;
		cookie[i] = (uint8_t)(high << 4 | low);
		*text += 2;
	}
	return true;
}

int ta_handle_parse(const char *text, struct ta_handle *handle)
{
	struct ta_handle h = { 0 };

	if (skip(&text, DEVICE_PREFIX))
		h.engine = TA_ENGINE_DEVICE;
	else if (skip(&text, EMBEDDED_PREFIX))
		h.engine = TA_ENGINE_EMBEDDED;
	else
		return -EINVAL;
	if (!parse_u64(&text, &h.arena) || !skip(&text, ":") ||
	    !parse_cookie(&text, h.cookie))
		return -EINVAL;
	if (h.engine == TA_ENGINE_EMBEDDED) {
		if (!skip(&text, ":") || !ta_socket_valid(text))
			return -EINVAL;
		strcpy(h.socket, text);
	} else if (*text) {
		return -EINVAL;
	}
	*handle = h;
	return 0;
}
