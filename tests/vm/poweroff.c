// SPDX-License-Identifier: MIT
/*
 * Ends the virtual machine at once, with a status that a guest which panics does
 * not give: QEMU exits with twice the value plus one.  On x86 its isa-debug-exit
 * device makes that of a byte written to it.  On Arm, where there is none, it is
 * asked by semihosting to exit with that status.  A kernel that is a program can be
 * told its own: 64 more, since 1 is what such programs say of what they lack.
 *
 *	poweroff-vm VALUE SERIAL_PORT...
 */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/reboot.h>
#include <termios.h>
#include <unistd.h>

/*
 * On its way out the kernel ends the processes that run our programs.  Whoever is
 * scheduled after that waits for his for ever, so nobody must be.
 */
static void leave_program(int value)
{
	const struct sched_param first = { .sched_priority = 1 };
	FILE *f = fopen("/proc/exitcode", "w");

	if (!f)
		return;
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		perror("poweroff");
	fprintf(f, "%d\n", 64 + 2 * value + 1);
	if (fclose(f) || reboot(RB_POWER_OFF))
		perror("poweroff");
}

#ifdef __x86_64__

#include <sys/io.h>

#define DEBUG_EXIT_PORT 0xf4

static void leave(int value)
{
	if (iopl(3) < 0)
		perror("poweroff: iopl");
	else
		outb(value, DEBUG_EXIT_PORT);
}

#elif defined(__aarch64__)

#define SYS_EXIT 0x18
#define APPLICATION_EXIT 0x20026

static void leave(int value)
{
	const uint64_t block[] = { APPLICATION_EXIT, 2 * value + 1 };
	register uint64_t operation asm("x0") = SYS_EXIT;
	register const uint64_t *argument asm("x1") = block;

	asm volatile("hlt #0xf000"
		     : "+r"(operation)
		     : "r"(argument)
		     : "memory");
}

#endif

/* What a serial port still holds in its FIFO would be lost. */
static void drain(const char *path)
{
	int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || tcdrain(fd) < 0)
		perror(path);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("usage: poweroff-vm VALUE SERIAL_PORT...\n", stderr);
		return EXIT_FAILURE;
	}
	for (int i = 2; i < argc; i++)
		drain(argv[i]);
	leave_program(atoi(argv[1]));
	leave(atoi(argv[1]));
	fputs("poweroff: the machine has no way out\n", stderr);
	return EXIT_FAILURE;
}
