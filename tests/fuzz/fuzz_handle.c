// SPDX-License-Identifier: MIT
/* Handle strings: what is accepted is exactly what would have been written. */
#include "fuzz.h"
#include "lib/handle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char again[TA_HANDLE_MAX];
	struct ta_handle handle;
	char *text;

	/* To the last byte, so that the sanitizer sees who reads on. */
	text = malloc(size + 1);
	MUST(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (!ta_handle_parse(text, &handle)) {
		MUST(handle.engine == TA_ENGINE_DEVICE ||
		     ta_socket_valid(handle.socket));
		ta_handle_format(&handle, again);
		MUST(!strcmp(again, text));
	}
	free(text);
	return 0;
}
