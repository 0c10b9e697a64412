/* SPDX-License-Identifier: MIT */
/* A made-up machine: a directory with files as /proc and /sys have them. */
#ifndef TA_TEST_MACHINE_H
#define TA_TEST_MACHINE_H

/* What to put before the paths of files there. */
const char *machine_root(void);
/* @path in there, with the directories above it. */
void put_file(const char *path, const char *text);

/* For ON_A_MACHINE(). */
int machine_make(void **state);
int machine_remove(void **state);

/* A test that begins with an empty machine. */
#define ON_A_MACHINE(test)                                                     \
	cmocka_unit_test_setup_teardown(test, machine_make, machine_remove)

#endif /* TA_TEST_MACHINE_H */
