// SPDX-License-Identifier: MIT
#include "broadcast.h"

int main(int argc, char **argv)
{
	return broadcast_bench(argc, argv);
}
