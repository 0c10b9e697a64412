// SPDX-License-Identifier: MIT
/*
 * Ends the virtual machine at once: a byte written to QEMU's isa-debug-exit
 * device makes QEMU exit with twice the byte plus one.  A guest that panics
 * makes it exit with 0, so 0 must not mean success outside.
 *
 *	poweroff-vm VALUE SERIAL_PORT...
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>
#include <termios.h>
#include <unistd.h>

#define DEBUG_EXIT_PORT 0xf4

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
	if (iopl(3) < 0) {
		perror("poweroff: iopl");
		return EXIT_FAILURE;
	}
	outb(atoi(argv[1]), DEBUG_EXIT_PORT);
	fputs("poweroff: the machine has no debug-exit device\n", stderr);
	return EXIT_FAILURE;
}
