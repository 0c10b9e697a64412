/* SPDX-License-Identifier: MIT */
/*
 * The handle string: everything a reader needs to attach.
 *
 *	tensorarena1:device:<arena>:<cookie>
 *	tensorarena1:embedded:<arena>:<cookie>:@<abstract socket name>
 *	tensorarena1:embedded:<arena>:<cookie>:<absolute socket path>
 *
 * <arena> is decimal, <cookie> 32 lower-case hex digits.  The digit after the
 * first word is the version of this format.
 */
#ifndef TA_HANDLE_H
#define TA_HANDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include <tensorarena.h>
#include <uapi/tensorarena.h>

/* sun_path, less the NUL that starts or ends it. */
#define TA_SOCKET_NAME_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

struct ta_handle {
	enum ta_engine_kind engine; /* device or embedded, never auto */
	uint64_t arena;
	uint8_t cookie[TENSORARENA_COOKIE_BYTES];
	char socket[TA_SOCKET_NAME_MAX + 2]; /* "@name", "/path" or "" */
};

/* Whether @socket can stand in a handle: as above, short enough, one line. */
bool ta_socket_valid(const char *socket);
/* Writes at most TA_HANDLE_MAX bytes with NUL. */
void ta_handle_format(const struct ta_handle *handle, char *buf);
/* 0, or -EINVAL for anything but exactly one well-formed handle. */
int ta_handle_parse(const char *text, struct ta_handle *handle);

#endif /* TA_HANDLE_H */
