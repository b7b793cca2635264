/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HTTP server, and its answers. Threads: functions on the thread of libmicrohttpd.
 */
#ifndef UI_SERVE_ANSWERS_H
#define UI_SERVE_ANSWERS_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ui/serve/request.h"
#include "sampler/sampler.h"
#include "ui/cli/config.h"
#include "ui/cli/pushed.h"

struct functions {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_create_response_from_buffer) *create_response;
	__typeof__(MHD_destroy_response) *destroy_response;
	__typeof__(MHD_add_response_header) *add_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_get_connection_values) *get_values;
	__typeof__(MHD_lookup_connection_value) *lookup_value;
	__typeof__(MHD_suspend_connection) *suspend;
	__typeof__(MHD_resume_connection) *resume;
	__typeof__(MHD_get_connection_info) *connection_info;
};

struct serve {
	struct functions mhd;
	struct MHD_Daemon *daemon;
	struct sampler *sampler;
	bool live, local; /* not a recording; on a loopback address */
	enum ui_config_time time;
	char host[65];
	int fd; /* listens; -1: the daemon has it */
	int wake;
	pthread_t collector;
	bool collects; /* the collector thread runs */
	atomic_bool stop;
	atomic_ullong nr_requests;

	pthread_mutex_t lock; /* of the members below */
	struct profile *latest;
	struct pushed pushed; /* of the tick of latest */
	bool pushes;
	struct visit *waiting; /* suspended until its profile is collected; NULL: none */
	/* The page of a profile, for all that request it. */
	struct MHD_Response *page;
	uint64_t page_seq;
	size_t page_size;

	/* The library's thread: */
	size_t sending; /* of all visits */
	bool left_out;	/* its CPU time is known to the sampler */
};

/* One request. */
struct visit {
	struct MHD_Connection *connection;
	struct request request;
	int fd; /* while it waits */
	bool waited;
	struct profile *profile; /* collected; NULL: the session has ended, or the client */
	size_t sending;		 /* bytes of the answer */
};

/* Answer with a static sentence; go tool pprof prints it. */
enum MHD_Result answers_text(struct serve *sv, struct MHD_Connection *c, unsigned int status,
			     const char *text);
enum MHD_Result answers_metrics(struct serve *sv, struct visit *v);
/* Answer with @p for go tool pprof, or its samples of one process. */
enum MHD_Result answers_profile(struct serve *sv, struct visit *v, const struct profile *p);
/* Answer with the page of the newest profile; it is made once for each profile. */
enum MHD_Result answers_flame(struct serve *sv, struct visit *v);
/* Return the newest profile with an owner more; NULL: none yet. */
struct profile *answers_latest(struct serve *sv);

#endif
