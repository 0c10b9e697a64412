// SPDX-License-Identifier: MIT
/* The handle string: what is written reads back; nothing else is accepted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <lib/handle.h>

#include "test.h"

#define COOKIE "000102030405060708090a0b0c0d0eff"

static struct ta_handle device_handle(void)
{
	struct ta_handle h = { .engine = TA_ENGINE_DEVICE, .arena = 42 };
	int i;

	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++)
		h.cookie[i] = (uint8_t)i;
	h.cookie[15] = 0xff;
	return h;
}

static void expect_round_trip(const struct ta_handle *handle)
{
	char text[TA_HANDLE_MAX];
	struct ta_handle back;

	memset(text, 'x', sizeof(text));
	ta_handle_format(handle, text);
	assert_non_null(memchr(text, '\0', sizeof(text)));
	assert_ok(ta_handle_parse(text, &back));
	assert_int_equal(back.engine, handle->engine);
	assert_int_equal(back.arena, handle->arena);
	assert_memory_equal(back.cookie, handle->cookie, sizeof(back.cookie));
	assert_string_equal(back.socket, handle->socket);
}

static void device_handle_is_spelled_as_documented(void **state)
{
	struct ta_handle h = device_handle();
	char text[TA_HANDLE_MAX];

	(void)state;
	ta_handle_format(&h, text);
	assert_string_equal(text, "tensorarena1:device:42:" COOKIE);
	expect_round_trip(&h);
}

static void embedded_handle_is_spelled_as_documented(void **state)
{
	struct ta_handle h = device_handle();
	char text[TA_HANDLE_MAX];

	(void)state;
	h.engine = TA_ENGINE_EMBEDDED;
	strcpy(h.socket, "@tensorarena-7");
	ta_handle_format(&h, text);
	assert_string_equal(text, "tensorarena1:embedded:42:" COOKIE
				  ":@tensorarena-7");
	expect_round_trip(&h);
	strcpy(h.socket, "/run/a b:c/socket");
	expect_round_trip(&h);
}

static void largest_handles_fit(void **state)
{
	struct ta_handle h = device_handle();

	(void)state;
	h.engine = TA_ENGINE_EMBEDDED;
	h.arena = UINT64_MAX;
	memset(h.cookie, 0xff, sizeof(h.cookie));
	memset(h.socket, 'n', sizeof(h.socket) - 1);
	h.socket[sizeof(h.socket) - 1] = '\0';
	h.socket[0] = '@';
	expect_round_trip(&h);
	h.socket[0] = '/';
	h.socket[TA_SOCKET_NAME_MAX] = '\0';
	expect_round_trip(&h);
	h.arena = 0;
	expect_round_trip(&h);
}

static void malformed_handles_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"tensorarena",
		"tensorarena1",
		"tensorarena1:",
		"tensorarena1:device",
		"tensorarena1:device:",
		"tensorarena1:device:42",
		"tensorarena1:device:42:",
		"tensorarena2:device:42:" COOKIE,
		"tensorarena:device:42:" COOKIE,
		"Tensorarena1:device:42:" COOKIE,
		"tensorarena1:auto:42:" COOKIE,
		"tensorarena1:DEVICE:42:" COOKIE,
		" tensorarena1:device:42:" COOKIE,
		"tensorarena1:device:42:" COOKIE " ",
		"tensorarena1:device:42:" COOKIE "\n",
		"tensorarena1:device:42:" COOKIE ":",
		"tensorarena1:device:42:" COOKIE "0",
		"tensorarena1:device:42:" COOKIE ":@x",
		"tensorarena1:device::" COOKIE,
		"tensorarena1:device:-1:" COOKIE,
		"tensorarena1:device:+1:" COOKIE,
		"tensorarena1:device: 1:" COOKIE,
		"tensorarena1:device:042:" COOKIE,
		"tensorarena1:device:00:" COOKIE,
		"tensorarena1:device:0x2a:" COOKIE,
		"tensorarena1:device:4 2:" COOKIE,
		"tensorarena1:device:18446744073709551616:" COOKIE,
		"tensorarena1:device:99999999999999999999999:" COOKIE,
		"tensorarena1:device:42:000102030405060708090a0b0c0d0ef",
		"tensorarena1:device:42:000102030405060708090A0B0C0D0EFF",
		"tensorarena1:device:42:000102030405060708090a0b0c0d0egg",
		"tensorarena1:device:42:-00102030405060708090a0b0c0d0eff",
		"tensorarena1:device:42:0x0102030405060708090a0b0c0d0eff",
		"tensorarena1:embedded:42:" COOKIE,
		"tensorarena1:embedded:42:" COOKIE ":",
		"tensorarena1:embedded:42:" COOKIE ":@",
		"tensorarena1:embedded:42:" COOKIE ":/",
		"tensorarena1:embedded:42:" COOKIE ":name",
		"tensorarena1:embedded:42:" COOKIE "@name",
		"tensorarena1:embedded:42:" COOKIE ":./name",
		"tensorarena1:embedded:42:" COOKIE ":@name\n",
		"tensorarena1:embedded:42:" COOKIE ":/run/\tname",
		"tensorarena1:embedded:42:" COOKIE ":/run/\x7fname",
	};
	struct ta_handle h;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (ta_handle_parse(bad[i], &h) != -EINVAL)
			fail_msg("accepted: \"%s\"", bad[i]);
}

static void overlong_sockets_are_refused(void **state)
{
	char text[2 * TA_HANDLE_MAX];
	struct ta_handle h;
	int prefix;

	(void)state;
	prefix = sprintf(text, "tensorarena1:embedded:42:%s:", COOKIE);
	memset(text + prefix, 'n', sizeof(text) - (size_t)prefix);
	text[prefix] = '/';
	text[(size_t)prefix + TA_SOCKET_NAME_MAX + 1] = '\0';
	assert_err(ta_handle_parse(text, &h), -EINVAL);
	text[(size_t)prefix + TA_SOCKET_NAME_MAX + 1] = 'n';
	text[prefix] = '@';
	text[(size_t)prefix + TA_SOCKET_NAME_MAX + 2] = '\0';
	assert_err(ta_handle_parse(text, &h), -EINVAL);
}

/* Every handle cut short anywhere, and with any one byte changed. */
static void damaged_handles_never_read_past_their_end(void **state)
{
	static const char good[] = "tensorarena1:embedded:7:" COOKIE ":@s";
	char text[sizeof(good)];
	struct ta_handle h;
	size_t i;
	int c;

	(void)state;
	for (i = 0; i + 2 < sizeof(good); i++) {
		memcpy(text, good, sizeof(good));
		text[i] = '\0';
		assert_err(ta_handle_parse(text, &h), -EINVAL);
	}
	for (i = 0; i + 1 < sizeof(good); i++) {
		for (c = 1; c < 256; c++) {
			memcpy(text, good, sizeof(good));
			text[i] = (char)c;
			if (!ta_handle_parse(text, &h)) {
				char back[TA_HANDLE_MAX];

				ta_handle_format(&h, back);
				assert_string_equal(back, text);
			}
		}
	}
}

static void refused_handle_leaves_the_result_alone(void **state)
{
	struct ta_handle h, before;

	(void)state;
	memset(&h, 0x5a, sizeof(h));
	before = h;
	assert_err(ta_handle_parse("tensorarena1:device:1:00", &h), -EINVAL);
	assert_memory_equal(&h, &before, sizeof(h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_handle_is_spelled_as_documented),
		cmocka_unit_test(embedded_handle_is_spelled_as_documented),
		cmocka_unit_test(largest_handles_fit),
		cmocka_unit_test(malformed_handles_are_refused),
		cmocka_unit_test(overlong_sockets_are_refused),
		cmocka_unit_test(damaged_handles_never_read_past_their_end),
		cmocka_unit_test(refused_handle_leaves_the_result_alone),
	};

	return run_all(tests, NULL, NULL);
}
