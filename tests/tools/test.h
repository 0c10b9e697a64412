/* SPDX-License-Identifier: MIT */
/* What every test of the tool includes: cmocka, in the order it wants. */
#ifndef TESTS_TOOLS_TEST_H
#define TESTS_TOOLS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))

#endif /* TESTS_TOOLS_TEST_H */
