// SPDX-License-Identifier: MIT
/*
 * The device engine: the kernel module answers every command, so a port is a
 * file descriptor and a mapping.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"
#include "why.h"

struct device_port {
	struct ta_port port;
	int fd;
	bool reader;
};

static struct device_port *to_device(struct ta_port *port)
{
	return (struct device_port *)port;
}

static const char *node_path(void)
{
	const char *path = secure_getenv("TENSORARENA_DEVICE");

	return path && *path ? path : TA_DEVICE_PATH;
}

/* Only a fatal signal interrupts a command, so there is nothing to restart. */
static int command(int fd, unsigned int cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

static int device_call(struct ta_port *port, unsigned int cmd, void *arg)
{
	return command(to_device(port)->fd, cmd, arg);
}

static int device_poll_fd(struct ta_port *port, short *events)
{
	struct device_port *dev = to_device(port);

	*events = dev->reader ? POLLIN : POLLOUT;
	return dev->fd;
}

static int device_connect(struct ta_port *port)
{
	(void)port;
	return -EOPNOTSUPP;
}

static void device_close(struct ta_port *port, bool forked)
{
	struct device_port *dev = to_device(port);
	struct tensorarena_detach detach = { 0 };

	/* The mapping is not inherited, and the seat not the child's to give. */
	if (!forked) {
		/*
		 * Other processes may still have the file open.  A seat that
		 * cannot be given up is lost already: evicted, or no writer.
		 */
		command(dev->fd, TENSORARENA_DETACH, &detach);
		munmap(dev->port.base, dev->port.bytes);
	}
	close(dev->fd);
	free(dev);
}

static const struct ta_port_ops device_ops = {
	.call = device_call,
	.poll_fd = device_poll_fd,
	.connect = device_connect,
	.close = device_close,
};

/* A port over @fd, which it owns on success only. */
static int make_port(int fd, bool reader, int prot, uint64_t bytes,
		     struct ta_port **port)
{
	struct device_port *dev;
	int err;

	if (bytes > SIZE_MAX)
		return -ENOMEM;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->port.ops = &device_ops;
	dev->port.bytes = (size_t)bytes;
	dev->fd = fd;
	dev->reader = reader;
	dev->port.base = mmap(NULL, dev->port.bytes, prot, MAP_SHARED, fd, 0);
	if (dev->port.base == MAP_FAILED) {
		err = -errno;
		free(dev);
		return err;
	}
	*port = &dev->port;
	return 0;
}

/* Opens the control node for one command. */
static int control(unsigned int cmd, void *arg)
{
	int node, err;

	node = open(node_path(), O_RDWR | O_CLOEXEC);
	if (node < 0)
		return -errno;
	err = command(node, cmd, arg);
	close(node);
	return err;
}

static int device_create(const struct ta_options *options,
			 struct tensorarena_create *args,
			 struct ta_handle *handle, struct ta_port **port)
{
	size_t i;
	int err;

	(void)options;
	err = control(TENSORARENA_CREATE, args);
	if (err)
		return err;
	err = make_port(args->fd, false, PROT_READ | PROT_WRITE,
			args->slots * args->stride, port);
	if (err) {
		close(args->fd);
		return err;
	}
	handle->engine = TA_ENGINE_DEVICE;
	handle->arena = args->arena;
	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++)
		handle->cookie[i] = args->cookie[i];
	handle->socket[0] = '\0';
	return 0;
}

static int device_attach(const struct ta_handle *handle, int fd,
			 struct tensorarena_attach *args, struct ta_port **port)
{
	int prot = PROT_READ;
	size_t i;
	int err;

	if (fd >= 0)
		return -EOPNOTSUPP;
	args->arena = handle->arena;
	for (i = 0; i < TENSORARENA_COOKIE_BYTES; i++)
		args->cookie[i] = handle->cookie[i];
	err = control(TENSORARENA_ATTACH, args);
	if (err)
		return err;
	if (args->arena_flags & TENSORARENA_CREATE_WRITABLE_READERS)
		prot |= PROT_WRITE;
	err = make_port(args->fd, true, prot, args->slots * args->stride, port);
	if (err)
		close(args->fd);
	return err;
}

static void device_explain(const struct tensorarena_create *args, int err,
			   char *why, size_t why_size)
{
	struct tensorarena_info info = { 0 };
	char arena[TA_SIZE_TEXT], total[TA_SIZE_TEXT], used[TA_SIZE_TEXT];

	if (err == -EDQUOT && !control(TENSORARENA_INFO, &info)) {
		ta_why(why, why_size,
		       "%u slots of %llu bytes are over a limit of the "
		       "tensorarena module: at most %s an arena, %s in all (%s "
		       "taken), %u arenas (%u exist), %u per user",
		       args->slots, (unsigned long long)args->slot_bytes,
		       ta_size(info.max_arena_bytes, arena),
		       ta_size(info.max_total_bytes, total),
		       ta_size(info.total_bytes, used), info.max_arenas,
		       info.arenas, info.max_arenas_per_uid);
		return;
	}
	/* CREATE itself never answers so: it was the node that did. */
	if (err == -EACCES)
		ta_why(why, why_size,
		       "this user may not open %s; members of its group may",
		       node_path());
	else
		ta_why(why, why_size, "%s: %s", node_path(), ta_strerror(err));
}

const struct ta_engine ta_engine_device = {
	.name = "device",
	.kind = TA_ENGINE_DEVICE,
	.create = device_create,
	.attach = device_attach,
	.explain = device_explain,
};
