/* SPDX-License-Identifier: MIT */
/*
 * What the subcommands of tarena have in common.
 */
#ifndef TARENA_H
#define TARENA_H

/* EXIT_GO_ON is no exit code: the command line asks for the work to be done. */
enum {
	EXIT_GO_ON = -1,
	EXIT_OK,
	EXIT_FAILED,
	EXIT_USAGE
};

int doctor_main(int argc, char **argv);
int metrics_main(int argc, char **argv);
int stat_main(int argc, char **argv);
int top_main(int argc, char **argv);

#endif /* TARENA_H */
