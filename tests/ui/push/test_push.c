// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * --push: URLs, labels and headers with literal texts; the queue with random results.
 */
#include "ui/push/push.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "symbols/code/code.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "sampler/sampler.h"
#include "ui/cli/cli.h"
#include "ui/export/export.h"

#include <errno.h>
#include <unistd.h>

TEST(test_urls)
{
	static const char *const good[] = {
		"http://localhost:4040/ingest",
		"https://a-b.example.com/tenant/x/ingest",
		"http://10.0.0.1/ingest",
		"http://[::1]:4040/ingest",
		"https://[fe80::1]:7070/profiles/writeraw",
		"http://collector:4318/v1development/profiles",
	};
	static const char *const bad[] = {
		"",
		"http://",
		"http:///ingest",
		"localhost:4040/ingest",
		"HTTP://localhost/ingest",
		"file:///ingest",
		"http://user:secret@host/ingest",
		"https://secret@host/ingest",
		"ftp://user:secret@host/ingest",
		"http://user:secret@host",
		"http://host/ingest?password=secret",
		"http://user@host/ingest",
		"http://host:0/ingest",
		"http://host:65536/ingest",
		"http://host:/ingest",
		"http://host:80x/ingest",
		"http://host/ingest?name=x",
		"http://host/ingest#x",
		"http://host/in gest",
		"http://host\r\nX: y/ingest",
		"http://host/\x1b/ingest",
		"http://host/%2e%2e/ingest",
		"http://host/",
		"http://host/ingest/",
		"http://host/v1/profiles",
		"http://-host/ingest",
		"http://h\303\266st/ingest",
		"http://[::1/ingest",
		"http://[]/ingest",
		"http://[localhost]/ingest",
		"http://host\\@evil/ingest",
		"gopher://host/ingest",
	};
	char longer[2 * ENDPOINT_URL_MAX];
	struct endpoint to;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (endpoint_parse(&to, good[i], &e))
			fail_msg("%s: %s", good[i], e.text);
		assert_string_equal(to.url, good[i]);
		assert_int_equal(to.kind, i == 5   ? ENDPOINT_OTLP
					  : i == 4 ? ENDPOINT_PARCA
						   : ENDPOINT_PYROSCOPE);
		assert_int_equal(to.encrypted, i == 1 || i == 4);
		assert_int_equal(to.local, i == 0 || i == 3);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (endpoint_parse(&to, bad[i], &e) != -EINVAL || !e.text[0])
			fail_msg("taken: %s", bad[i]);
		else if (strstr(e.text, "secret"))
			fail_msg("a password in a message: %s", e.text);
	snprintf(longer, sizeof(longer), "http://host/%0*d/ingest", ENDPOINT_URL_MAX, 0);
	assert_int_equal(endpoint_parse(&to, longer, &e), -EINVAL);
	/* It only begins like a loopback address. */
	assert_int_equal(endpoint_parse(&to, "http://localhost.evil.com/ingest", &e), 0);
	assert_false(to.local);
}

TEST(test_labels)
{
	static const char *const bad[] = { "",	    "a",     "=b",     "a=",	"1a=b",
					   "a-b=c", "a=b,c", "a={",    "a=}",	"a=\"",
					   "a=b=c", "a=\n",  "a=\xff", "a b=c", "__name__=x" };
	struct endpoint to;
	char text[2 * ENDPOINT_LABEL_MAX];
	struct err e;

	assert_int_equal(endpoint_parse(&to, "http://h/ingest", &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (endpoint_add_label(&to, bad[i], &e) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(to.nr_labels, 0);
	snprintf(text, sizeof(text), "a=%0*d", ENDPOINT_LABEL_MAX, 0);
	assert_int_equal(endpoint_add_label(&to, text, &e), -EINVAL);
	assert_int_equal(endpoint_add_label(&to, "region=eu 1", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "region=eu/2", &e), 0);
	assert_int_equal(to.nr_labels, 1);
	assert_string_equal(to.labels[0].value, "eu/2");
	/* A default does not replace it, and is made valid. */
	endpoint_default_label(&to, "region", "x");
	endpoint_default_label(&to, "host", "a,b\xff{c}\n");
	endpoint_default_label(&to, "empty", "");
	assert_int_equal(to.nr_labels, 2);
	assert_string_equal(to.labels[0].value, "eu/2");
	assert_string_equal(to.labels[1].value, "a_b__c__");
	for (int i = 2; i < ENDPOINT_LABELS_MAX; i++) {
		snprintf(text, sizeof(text), "l%d=x", i);
		assert_int_equal(endpoint_add_label(&to, text, &e), 0);
	}
	assert_int_equal(endpoint_add_label(&to, "one_more=x", &e), -EINVAL);
	assert_int_equal(endpoint_add_label(&to, "l2=y", &e), 0);
}

/* OpenTelemetry has other names of some labels, and names of several parts. */
TEST(test_labels_of_otlp)
{
	struct endpoint to;
	const char *encoding;
	struct err e;

	assert_int_equal(endpoint_parse(&to, "http://h/v1development/profiles", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "host=a", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "host.name=b", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "deployment.environment=x", &e), 0);
	assert_int_equal(endpoint_add_label(&to, ".a=x", &e), -EINVAL);
	endpoint_default_label(&to, "service_name", "proftop");
	endpoint_default_label(&to, "host", "c");
	assert_int_equal(to.nr_labels, 3);
	assert_string_equal(to.labels[0].name, "host.name");
	assert_string_equal(to.labels[0].value, "b");
	assert_string_equal(to.labels[2].name, "service.name");
	assert_string_equal(endpoint_type(&to, &encoding), "application/x-protobuf");
	assert_string_equal(encoding, "gzip");
	assert_int_equal(endpoint_format(&to), EXPORT_OTLP);

	assert_int_equal(endpoint_parse(&to, "http://h/ingest", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "a.b=x", &e), -EINVAL);
}

static void assert_text(struct out *o, const char *want)
{
	out_bytes(o, "", 1);
	assert_false(o->failed);
	assert_string_equal(o->data, want);
	out_fini(o);
}

TEST(test_requests)
{
	struct out o = { .failed = false }, pprof = o;
	struct endpoint to;
	struct err e;

	out_text(&pprof, "\x1f\x8b"
			 "abcde");
	assert_int_equal(endpoint_parse(&to, "http://h/ingest", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "service_name=shop", &e), 0);
	endpoint_put_url(&o, &to, 10, 20);
	assert_text(&o, "http://h/ingest?name=shop&from=10&until=20&format=pprof&spyName=proftop");
	assert_int_equal(endpoint_add_label(&to, "a=b c", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "d=&?#%", &e), 0);
	endpoint_put_url(&o, &to, 10, 20);
	assert_text(&o, "http://h/ingest?name=shop%7Ba%3Db%20c%2Cd%3D%26%3F%23%25%7D"
			"&from=10&until=20&format=pprof&spyName=proftop");
	endpoint_put_body(&o, &to, "process_cpu", &pprof);
	assert_text(&o, "\x1f\x8b"
			"abcde");

	assert_int_equal(endpoint_parse(&to, "http://h/profiles/writeraw", &e), 0);
	assert_int_equal(endpoint_add_label(&to, "a=\\<", &e), 0);
	endpoint_put_url(&o, &to, 10, 20);
	assert_text(&o, "http://h/profiles/writeraw");
	endpoint_put_body(&o, &to, "off_cpu", &pprof);
	assert_text(&o, "{\"series\":[{\"labels\":{\"labels\":["
			"{\"name\":\"__name__\",\"value\":\"off_cpu\"},"
			"{\"name\":\"a\",\"value\":\"\\u005c\\u003c\"}]},"
			"\"samples\":[{\"rawProfile\":\"H4thYmNkZQ==\"}]}],\"normalized\":false}");
	out_fini(&pprof);
}

static int collect(void *ctx, const char *line)
{
	strcat(ctx, line);
	strcat(ctx, "|");
	return 0;
}

/* Read a file with @text; "" or the headers in @got. */
static int read_text(const char *text, size_t size, char *got, struct err *e)
{
	/* With an end that is no part of the texts which must not be in the message. */
	char path[] = "/tmp/test_push.XXXXXX.headers";
	int fd = mkstemps(path, 8), code;

	assert_true(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	*got = '\0';
	code = headers_read(path, collect, got, e);
	close(fd);
	unlink(path);
	return code;
}

TEST(test_headers)
{
	static const char *const bad[] = { "no colon",
					   ": x",
					   "A B: c",
					   "A:",
					   "A:  ",
					   "A: b\x01",
					   "Content-Length: 3",
					   "transfer-encoding: chunked",
					   "Host\n: x" };
	static const char text[] = "# comment\n\nAuthorization: Bearer x:y\r\nX-Scope-OrgID:\tteam";
	char got[65536],
		many[] = "A: 1\nB: 2\nC: 3\nD: 4\nE: 5\nF: 6\nG: 7\nH: 8\nI: 9\nJ: 10\n"
			 "K: 1\nL: 2\nM: 3\nN: 4\nO: 5\nP: 6\nQ: 7\n",
		*wide;
	struct err e;

	assert_int_equal(read_text(text, sizeof(text) - 1, got, &e), 0);
	assert_string_equal(got, "Authorization: Bearer x:y|X-Scope-OrgID:\tteam|");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (read_text(bad[i], strlen(bad[i]), got, &e) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		/* It may be a secret. */
		assert_null(strstr(e.text, bad[i]));
	}
	assert_int_equal(read_text(many, sizeof(many) - 1, got, &e), -EINVAL);
	wide = malloc(2 * HEADERS_LINE_MAX);
	memset(wide, 'x', 2 * HEADERS_LINE_MAX);
	memcpy(wide, "A: ", 3);
	assert_int_equal(read_text(wide, 2 * HEADERS_LINE_MAX, got, &e), -EINVAL);
	free(wide);
	assert_int_equal(headers_read("/nonexistent", collect, got, &e), -ENOENT);
	assert_int_equal(headers_read("/dev/zero", collect, got, &e), -EINVAL);
}

TEST(test_judge)
{
	static const struct {
		long status;
		enum outbox_result result;
	} all[] = {
		{ 0, OUTBOX_RETRY },	   { 100, OUTBOX_RETRY },     { 200, OUTBOX_DELIVERED },
		{ 204, OUTBOX_DELIVERED }, { 301, OUTBOX_REFUSED },   { 307, OUTBOX_REFUSED },
		{ 400, OUTBOX_REFUSED },   { 401, OUTBOX_REFUSED },   { 404, OUTBOX_REFUSED },
		{ 408, OUTBOX_RETRY },	   { 413, OUTBOX_TOO_LARGE }, { 422, OUTBOX_REFUSED },
		{ 429, OUTBOX_RETRY },	   { 500, OUTBOX_RETRY },     { 503, OUTBOX_RETRY },
		{ -1, OUTBOX_RETRY },	   { 999, OUTBOX_RETRY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(outbox_judge(all[i].status), all[i].result);
}

static struct outbox_request *request_of(size_t size, uint64_t samples)
{
	struct outbox_request *r = calloc(1, sizeof(*r));

	r->url = strdup("x");
	r->size = size;
	r->samples = samples;
	return r;
}

static void assert_account(const struct outbox *o, uint64_t nr, uint64_t samples, uint64_t away)
{
	const struct pushed *p = &o->pushed;
	struct pushed_sum dropped = pushed_dropped(p);

	assert_int_equal(p->taken.profiles, nr);
	assert_int_equal(p->taken.samples, samples);
	assert_int_equal(p->delivered.profiles + dropped.profiles + p->queued.profiles, nr);
	assert_int_equal(p->delivered.samples + dropped.samples + p->queued.samples, samples);
	assert_int_equal(o->nr + away, p->queued.profiles);
	assert_true(o->nr <= OUTBOX_REQUESTS_MAX && o->bytes <= OUTBOX_BYTES_MAX);
}

/* Random additions and results: the account is complete after each. */
TEST(test_account)
{
	struct outbox o = { .nr = 0 };
	struct outbox_request *r = NULL;
	uint64_t samples = 0, nr = 0;

	srandom(42);
	for (int i = 0; i < 20000; i++) {
		long dice = random() % 100;

		if (dice < 50) {
			uint64_t n = (uint64_t)random() % 1000;
			size_t size = dice ? (size_t)random() % (1 << 20) : OUTBOX_BYTES_MAX + 1;

			outbox_add(&o, request_of(size, n));
			samples += n;
			nr++;
		} else if (!r) {
			r = outbox_take(&o);
		} else {
			outbox_settle(&o, r, (enum outbox_result)(random() % 4),
				      (uint64_t)random() % 100, (uint64_t)random());
			r = NULL;
		}
		assert_account(&o, nr, samples, r != NULL);
		assert_true(o.pause_ms <= OUTBOX_PAUSE_MAX_MS);
	}
	for (int i = 0; i < PUSHED_DROP_NR - 1; i++)
		assert_true(o.pushed.dropped[i].profiles > 0);
	/* The last attempt is left. */
	while (!r) {
		outbox_add(&o, request_of(1, 1));
		samples++;
		nr++;
		r = outbox_take(&o);
	}
	outbox_end(&o);
	outbox_request_free(r);
	assert_account(&o, nr, samples, 0);
	assert_int_equal(o.pushed.queued.profiles, 0);
	assert_true(o.pushed.dropped[PUSHED_ENDED].profiles > 0);
}

/* The oldest goes first, is put back in front, and is the one that a full queue drops. */
TEST(test_order)
{
	struct outbox o = { .nr = 0 };
	struct outbox_request *r;

	for (uint64_t i = 1; i <= OUTBOX_REQUESTS_MAX + 3; i++)
		outbox_add(&o, request_of(1, i));
	assert_int_equal(o.pushed.dropped[PUSHED_FULL].samples, 1 + 2 + 3);
	r = outbox_take(&o);
	assert_int_equal(r->samples, 4);
	outbox_settle(&o, r, OUTBOX_RETRY, 0, 0);
	assert_int_equal(o.pause_ms, OUTBOX_PAUSE_MIN_MS);
	r = outbox_take(&o);
	assert_int_equal(r->samples, 4);
	outbox_settle(&o, r, OUTBOX_RETRY, 7, 0);
	assert_int_equal(o.pause_ms, 7000);
	r = outbox_take(&o);
	outbox_settle(&o, r, OUTBOX_RETRY, 1000000, UINT64_MAX);
	assert_int_equal(o.pause_ms, OUTBOX_PAUSE_MAX_MS);
	/* Newer ones fill the queue while it is tried. */
	r = outbox_take(&o);
	outbox_add(&o, request_of(1, 1000));
	outbox_settle(&o, r, OUTBOX_RETRY, 0, 0);
	assert_int_equal(o.pushed.dropped[PUSHED_FULL].samples, 1 + 2 + 3 + 4);
	r = outbox_take(&o);
	assert_int_equal(r->samples, 5);
	outbox_settle(&o, r, OUTBOX_DELIVERED, 0, 0);
	assert_int_equal(o.pause_ms, 0);
	assert_int_equal(o.pushed.retries, 4);
	outbox_end(&o);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
