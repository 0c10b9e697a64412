// SPDX-License-Identifier: MIT
/*
 * The metrics over HTTP; see metrics_serve.h.  Every scrape looks anew.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "metrics_format.h"
#include "metrics_serve.h"
#include "number.h"
#include "stop.h"
#include "tarena.h"

/* A scraper needs one; a few may come to look. */
#define CONNECTIONS 16
#define TIMEOUT_S 10

#define CONTENT_TYPE MHD_HTTP_HEADER_CONTENT_TYPE

static enum MHD_Result answer(struct MHD_Connection *connection,
			      unsigned int status, const char *type, char *text,
			      size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	response = MHD_create_response_from_buffer(size, text, mode);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, CONTENT_TYPE, type);
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result say(struct MHD_Connection *connection,
			   unsigned int status, const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8",
		      (char *)text, strlen(text), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer_metrics(struct MHD_Connection *connection,
				      const struct arenas *arenas)
{
	struct reason why;
	char *text = NULL;
	size_t size = 0;
	json_t *seen;
	FILE *out;

	seen = arenas_read(arenas, &why);
	if (!seen) {
		complain("%s", why.text);
		return say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
			   "The figures cannot be read.\n");
	}
	out = open_memstream(&text, &size);
	if (out) {
		metrics_format(out, seen);
		if (fclose(out))
			size = 0;
	}
	json_decref(seen);
	if (!out || !size) {
		free(text);
		return MHD_NO;
	}
	return answer(connection, MHD_HTTP_OK, OPENMETRICS_TYPE, text, size,
		      MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection,
			      const char *url, const char *method,
			      const char *version, const char *data,
			      size_t *data_size, void **request)
{
	(void)version;
	(void)data;
	(void)request;
	if (*data_size) {
		*data_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) &&
	    strcmp(method, MHD_HTTP_METHOD_HEAD))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			   "Only GET is known here.\n");
	if (!strcmp(url, "/metrics"))
		return answer_metrics(connection, arg);
	if (!strcmp(url, "/"))
		return say(connection, MHD_HTTP_OK,
			   "tensorarena: see /metrics\n");
	return say(connection, MHD_HTTP_NOT_FOUND, "See /metrics.\n");
}

/* Splits "[ADDRESS:]PORT", in place; brackets around an IPv6 address go. */
static int split(char *where, const char **address, const char **port)
{
	char *colon = strrchr(where, ':');
	size_t length;

	*address = "127.0.0.1";
	*port = where;
	if (!colon)
		return 0;
	*colon = '\0';
	*port = colon + 1;
	length = strlen(where);
	if (where[0] == '[' && where[length - 1] == ']') {
		where[length - 1] = '\0';
		where++;
	}
	*address = where;
	return *where ? 0 : -1;
}

static int resolve(const char *where, struct sockaddr_storage *address,
		   socklen_t *size, struct reason *why)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	const char *host, *port;
	struct addrinfo *found;
	char text[128];
	uint32_t number;

	if ((size_t)snprintf(text, sizeof(text), "%s", where) >= sizeof(text) ||
	    split(text, &host, &port) || number_u32(port, 0, 65535, &number) ||
	    getaddrinfo(host, port, &hints, &found))
		return reason_set(why,
				  "--listen takes [ADDRESS:]PORT, not '%.100s'",
				  where);
	memcpy(address, found->ai_addr, found->ai_addrlen);
	*size = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static int listen_at(const struct sockaddr_storage *address, socklen_t size,
		     struct reason *why)
{
	int sock, one = 1;

	sock = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return reason_set(why, "cannot make a socket: %s",
				  strerror(errno));
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(sock, (const struct sockaddr *)address, size) &&
	    !listen(sock, CONNECTIONS))
		return sock;
	reason_set(why, "cannot listen there: %s", strerror(errno));
	close(sock);
	return -1;
}

/* Says where, since port 0 takes any that is free. */
static void announce(int sock)
{
	char host[64] = "?", port[16] = "?";
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	const char *format = "Serving http://%s:%s/metrics\n";

	if (!getsockname(sock, (struct sockaddr *)&address, &size))
		getnameinfo((struct sockaddr *)&address, size, host,
			    sizeof(host), port, sizeof(port),
			    NI_NUMERICHOST | NI_NUMERICSERV);
	if (strchr(host, ':'))
		format = "Serving http://[%s]:%s/metrics\n";
	printf(format, host, port);
	fflush(stdout);
}

static int serve(const struct arenas *arenas, int sock, int stop)
{
	struct pollfd stopped = { .fd = stop, .events = POLLIN };
	struct MHD_Daemon *daemon;

	daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG, 0, NULL,
		NULL, handle, (void *)arenas, MHD_OPTION_LISTEN_SOCKET, sock,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S, MHD_OPTION_END);
	if (!daemon) {
		complain("the HTTP server does not start");
		close(sock);
		return EXIT_FAILED;
	}
	announce(sock);
	while (poll(&stopped, 1, -1) < 0 && errno == EINTR)
		;
	/* Closes the socket, too. */
	MHD_stop_daemon(daemon);
	stop_obey(stop);
	return EXIT_OK;
}

int metrics_serve(const struct arenas *arenas, const char *where)
{
	struct sockaddr_storage address;
	struct reason why;
	socklen_t size = 0;
	int sock, stop;

	if (resolve(where, &address, &size, &why)) {
		complain("%s", why.text);
		return EXIT_USAGE;
	}
	stop = stop_open();
	if (stop < 0) {
		complain("cannot wait for signals: %s", strerror(-stop));
		return EXIT_FAILED;
	}
	sock = listen_at(&address, size, &why);
	if (sock < 0) {
		complain("%s: %s", where, why.text);
		return EXIT_FAILED;
	}
	return serve(arenas, sock, stop);
}
