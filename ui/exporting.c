// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Uses of each tick without a screen: --export, --listen, --push.
 */
#include "ui/exporting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/base/invoker.h"

const char *exporting_host(char host[static 65])
{
	char name[65] = "";

	if (gethostname(name, sizeof(name) - 1))
		name[0] = '\0';
	return text_format(host, 65, "%s", name).str;
}

int exporting_init(struct exporting *x, const struct options *o, struct err *e)
{
	*x = (struct exporting){ .path = o->export_path, .time = o->time };
	if (!o->config.replay)
		exporting_host(x->host);
	if (!o->export_path)
		return EXIT_DONE;
	x->format = o->export_format ? export_format_parse(o->export_format)
				     : export_format_of(o->export_path);
	if (x->format != EXPORT_NR)
		return EXIT_DONE;
	if (o->export_format)
		err_set(e, -EINVAL,
			"--export-format=%s: unknown format\n"
			"  must be html, svg, pprof, speedscope, firefox, folded, json, text or "
			"otlp",
			o->export_format);
	else
		err_set(e, -EINVAL,
			"--export %s: the ending names no format\n"
			"  use .html, .svg, .pb.gz, .speedscope.json, .firefox.json, .folded, "
			".json, .txt or .otlp.pb, or --export-format",
			o->export_path);
	return EXIT_USAGE;
}

/* Write the file with the rights of the invoking user, as :export does. */
static int write_file(const char *path, const struct out *out, struct err *e)
{
	struct invoker_saved saved;
	int code = invoker_begin(&saved, e);

	if (code)
		return code;
	code = file_write_text(path, out->data ? out->data : "", out->size, true, e);
	invoker_end(&saved);
	return code;
}

int exporting_tick(const struct batch_config *config, struct profile *p, struct err *e)
{
	struct exporting *x = config->each_context;
	struct snapshot_scope scope;
	struct out out = { .failed = false };
	int code;

	push_tick(x->push, p);
	push_figures(x->push, &x->pushed);
	serve_publish(x->serve, p, config->pushed);
	if (!x->path)
		return 0;
	export_scope_all(&scope, export_event(p));
	export_scope_time(&scope, p, x->time);
	memcpy(scope.host, x->host, sizeof(scope.host));
	if (config->filter)
		snprintf(scope.find, sizeof(scope.find), "%s", config->filter);
	code = export_write(&out, p, &scope, x->format, e);
	if (!code && strcmp(x->path, "-"))
		code = write_file(x->path, &out, e);
	else if (!code && (fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout)))
		code = -errno;
	out_fini(&out);
	return code;
}

int exporting_listen(struct serve **sv, struct options *o, struct err *e)
{
	size_t size = strlen(o->remark);

	*sv = NULL;
	if (!o->listen)
		return 0;
	if (size && size + 2 < sizeof(o->remark))
		size += (size_t)snprintf(o->remark + size, sizeof(o->remark) - size, "; ");
	return serve_new(sv, o->listen, o->time, o->remark + size, sizeof(o->remark) - size, e);
}

/* Start the thread of --push; a warning is added to the remark. 0 or -errno with a message. */
static int open_push(struct exporting *x, struct options *o, struct err *e)
{
	size_t size = strlen(o->remark);
	char host[65];
	const struct push_config config = {
		.url = o->push,
		.labels = o->push_labels,
		.nr_labels = o->nr_push_labels,
		.headers = o->push_headers,
		.authority = o->push_ca,
		.timeout_ns = o->push_timeout_ns,
		.host = o->config.replay ? "" : exporting_host(host),
	};

	if (!o->push)
		return 0;
	if (size && size + 2 < sizeof(o->remark))
		size += (size_t)snprintf(o->remark + size, sizeof(o->remark) - size, "; ");
	return push_new(&x->push, &config, o->remark + size, sizeof(o->remark) - size, e);
}

int exporting_open(struct exporting *x, struct options *o, struct err *e)
{
	int code = exporting_listen(&x->serve, o, e);

	if (!code)
		code = open_push(x, o, e);
	if (code)
		exporting_close(x);
	return code;
}

void exporting_close(struct exporting *x)
{
	serve_free(x->serve);
	push_free(x->push, &x->pushed);
	x->serve = NULL;
	x->push = NULL;
}

bool exporting_finish(struct exporting *x, struct err *note)
{
	const struct pushed *p = &x->pushed;
	bool pushing = x->push != NULL;
	struct pushed_sum dropped;

	note->text[0] = '\0';
	exporting_close(x);
	if (!pushing)
		return true;
	dropped = pushed_dropped(p);
	err_set(note, 0, "pushed %llu profiles, %llu samples",
		(unsigned long long)p->delivered.profiles,
		(unsigned long long)p->delivered.samples);
	if (p->taken.profiles != p->delivered.profiles)
		err_set(note, 0,
			"pushed %llu profiles, %llu samples; dropped %llu profiles, %llu "
			"samples%s%s",
			(unsigned long long)p->delivered.profiles,
			(unsigned long long)p->delivered.samples,
			(unsigned long long)dropped.profiles, (unsigned long long)dropped.samples,
			p->error[0] ? ": " : "", p->error);
	return !dropped.profiles;
}
