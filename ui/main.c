// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Start of proftop: descriptors, environment, heap and options; then a list, or a session.
 * Descriptors 0-2 come before any file that is opened.
 */
#include "ui/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/sampler.h"
#include "symbols/base/base.h"
#include "symbols/base/file.h"
#include "symbols/code/code.h"
#include "ui/cli/cli.h"

#define HEAPS		2
#define HEAP_PIECE	(16 << 10)
#define HEAP_PIECES_MAX 16384	    /* of vm.max_map_count, 65530 */
#define HEAP_KEPT	(256 << 10) /* free at its end */

/*
 * Open 0-2 if they are closed, or the next file opened would become "standard
 * output". Return the closed ones as bits.
 */
static unsigned int open_standard_fds(void)
{
	unsigned int closed = 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		closed |= 1U << fd;
		if (open("/dev/null", O_RDWR) != fd)
			_exit(EXIT_FAILED);
	}
	return closed;
}

/*
 * Use few heaps instead of one per thread, each of which would keep freed
 * memory. Larger blocks, as the arrays of a profile, are mapped separately and
 * returned: among small blocks that stay, the holes they leave grow for hours.
 * Not the many slices of a long history, for maps have a limit. No sample
 * allocates memory, so no thread waits for a heap.
 */
static void set_up_heap(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, HEAPS);
	mallopt(M_MMAP_THRESHOLD, HEAP_PIECE);
	mallopt(M_MMAP_MAX, HEAP_PIECES_MAX);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
#endif
}

/* Finish output on standard output. Return @code, or an error if it could not be written. */
static int end_output(int code, struct err *e)
{
	/* The reader of a pipe has all that it wants. */
	if (!fflush(stdout) || errno == EPIPE)
		return code;
	err_set(e, -errno, "cannot write to standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

/* Print the list or report of an option that starts no session. */
static int print_list(struct options *o, struct err *e)
{
	int code = EXIT_DONE;

	switch (o->action) {
	case OPTIONS_HELP:
		options_print_help(stdout);
		break;
	case OPTIONS_VERSION:
		printf("proftop %s\n", PROFTOP_VERSION);
		break;
	case OPTIONS_LIST_EVENTS:
		if (o->format == OPTIONS_NDJSON)
			options_print_events_ndjson(stdout);
		else
			options_print_events(stdout);
		break;
	case OPTIONS_CHECK:
		code = options_print_check(stdout);
		break;
	case OPTIONS_LIST_KEYS:
		options_print_keys(stdout);
		break;
	case OPTIONS_PRINT_CONFIG:
		code = session_print_settings(o, e);
		break;
	case OPTIONS_COMPLETION:
		completion_print(stdout, o->shell);
		break;
	default:
		options_print_columns(stdout);
		break;
	}
	return end_output(code, e);
}

static bool has_tty(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Decide between screen and batch; report if the screen is impossible. */
static int run(struct options *o, unsigned int closed, struct err *e)
{
	int code;

	if (closed & 1U << STDOUT_FILENO) {
		err_set(e, -EBADF,
			"standard output is closed\n  run it in a terminal, or redirect the "
			"output, as in 'proftop -b -n 1 >file'");
		return EXIT_FAILED;
	}
	if (o->action == OPTIONS_STACKS)
		return end_output(session_stacks(o, e), e);
	if (o->action != OPTIONS_RUN) {
		signal(SIGPIPE, SIG_IGN);
		return print_list(o, e);
	}
	if (o->script)
		return session_keys(o, e);
	if (!o->batch && !isatty(STDOUT_FILENO)) {
		code = options_set_batch(o, e);
		if (code)
			return code;
	}
	if (o->batch)
		return o->format == OPTIONS_PERF_SCRIPT ? session_script(o, e)
							: session_batch(o, e);
	if (!isatty(STDIN_FILENO) && !(session_is_piped(o) && has_tty())) {
		err_set(e, -ENOTTY,
			"standard input is %s: no keys would reach the screen\n"
			"  run it from a terminal, or without a screen: 'proftop -b'",
			closed & 1U << STDIN_FILENO ? "closed" : "not a terminal");
		return EXIT_FAILED;
	}
	return session_screen(o, e);
}

/*
 * Forget the variables of a caller with fewer rights that let a library write a file: libcurl, and
 * so libdebuginfod, would make it with the rights of proftop.
 */
static void clean_environment(void)
{
	if (invoker_is_other() || invoker_is_unprivileged())
		unsetenv("SSLKEYLOGFILE");
}

int main(int argc, char **argv)
{
	unsigned int closed = open_standard_fds();
	struct options_limits limits;
	struct err e = { "" };
	/* Large: on the stack it would take the room of callers in the stack copies of samples. */
	static struct options o;
	int code;

	/* A parent may ignore it, which is inherited: then children cannot be waited for. */
	signal(SIGCHLD, SIG_DFL);
	invoker_init();
	clean_environment();
	invoker_set_cache();
	time_read_namespace("");
	set_up_heap();
	/* LC_CTYPE only: numbers are formatted in the C locale. */
	setlocale(LC_CTYPE, "");
	options_limits(&limits);
	code = options_parse(&o, argc, argv, &limits, &e);
	sampler_drop_caps(o.config.command != NULL, o.config.replay != NULL);
	if (code == EXIT_DONE)
		code = run(&o, closed, &e);
	if (e.text[0] && code != EXIT_DONE)
		complain(&e);
	options_fini(&o);
	/* Not all files: work that was left may hang with one. */
	fflush(stdout);
	sampler_sandbox_stop();
	term_guard_end(code);
	return code;
}
