// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests, addresses and metrics of --listen: literal texts.
 */
#include "ui/serve/serve.c"

#include "tests/prelude.h"
#include "symbols/base/base.h"
#include "sampler/event/event.h"
#include "sampler/profile/profile.h"
#include "ui/export/export.h"

#include <arpa/inet.h>
#include <math.h>

static struct request parsed(const char *path, const char *name, const char *value)
{
	struct request r;

	request_init(&r, path);
	if (name)
		request_argument(&r, name, value);
	return r;
}

TEST(test_paths)
{
	assert_int_equal(parsed("/", NULL, NULL).kind, REQUEST_INDEX);
	assert_int_equal(parsed("/debug/pprof/", NULL, NULL).kind, REQUEST_INDEX);
	assert_int_equal(parsed("/debug/pprof/profile", NULL, NULL).kind, REQUEST_PROFILE);
	assert_int_equal(parsed("/metrics", NULL, NULL).kind, REQUEST_METRICS);
	assert_int_equal(parsed("/flame", NULL, NULL).kind, REQUEST_FLAME);
	assert_int_equal(parsed("/healthz", NULL, NULL).kind, REQUEST_HEALTH);
	/* Parca also scrapes these: not found. */
	assert_int_equal(parsed("/debug/pprof/allocs", NULL, NULL).kind, REQUEST_UNKNOWN);
	assert_int_equal(parsed("", NULL, NULL).kind, REQUEST_UNKNOWN);
	assert_int_equal(parsed("/metrics/../flame", NULL, NULL).kind, REQUEST_UNKNOWN);
}

TEST(test_arguments)
{
	static const char *const bad[] = { "",	  "0",	"301", "-1",  "1.5",
					   "1e3", " 3", "3s",  "nan", "18446744073709551617" };

	assert_int_equal(parsed("/", NULL, NULL).seconds, 30);
	assert_int_equal(parsed("/", "seconds", "3").seconds, 3);
	assert_int_equal(parsed("/", "seconds", "300").seconds, 300);
	assert_null(parsed("/", "seconds", "300").invalid);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_string_equal(parsed("/", "seconds", bad[i]).invalid, "seconds");
	assert_string_equal(parsed("/", "seconds", NULL).invalid, "seconds");
	assert_int_equal(parsed("/", "pid", "42").pid, 42);
	assert_string_equal(parsed("/", "pid", "0").invalid, "pid");
	assert_string_equal(parsed("/", "pid", "2147483648").invalid, "pid");
	assert_null(parsed("/", "debug", "x").invalid);
}

TEST(test_hosts)
{
	assert_true(request_host_is_local("localhost"));
	assert_true(request_host_is_local("LocalHost:6060"));
	assert_true(request_host_is_local("127.0.0.1:1"));
	assert_true(request_host_is_local("[::1]:65535"));
	assert_true(request_host_is_local("127.0.0.2"));
	assert_true(request_host_is_local("127.255.0.9:6060"));
	assert_true(request_host_is_local("[::ffff:127.0.0.1]:6060"));
	assert_true(request_host_is_local("[0:0:0:0:0:0:0:1]"));
	assert_false(request_host_is_local("128.0.0.1"));
	assert_false(request_host_is_local("127.0.0"));
	assert_false(request_host_is_local("127.1"));
	assert_false(request_host_is_local("[::ffff:128.0.0.1]"));
	assert_false(request_host_is_local("[::127.0.0.1]"));
	assert_false(request_host_is_local("[::1"));
	assert_false(request_host_is_local("[::1]x"));
	assert_false(request_host_is_local("::1"));
	assert_false(request_host_is_local("[127.0.0.1]"));
	assert_false(request_host_is_local("[0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]"));
	assert_false(request_host_is_local("localhost.evil.com"));
	assert_false(request_host_is_local("127.0.0.1.evil.com:6060"));
	assert_false(request_host_is_local("evil.com:6060"));
	assert_false(request_host_is_local("localhost:"));
	assert_false(request_host_is_local("localhost:99999"));
	assert_false(request_host_is_local(""));
}

static void assert_address(const char *text, const char *host, uint16_t port, bool local)
{
	union request_address a;
	char got[64];
	struct err e;
	int size = request_parse_address(&a, text, &e);

	if (size < 0)
		fail_msg("%s: %s", text, e.text);
	if (a.any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &a.v6.sin6_addr, got, sizeof(got));
	else
		inet_ntop(AF_INET, &a.v4.sin_addr, got, sizeof(got));
	assert_string_equal(got, host);
	assert_int_equal(ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port), port);
	assert_int_equal(request_address_is_local(&a), local);
}

TEST(test_addresses)
{
	static const char *const bad[] = {
		"",    "0",	  "65536",	  "x:1",	"1.2.3.4",
		":",   "1.2.3:1", "[::1]",	  "[::1:6060",	"::1:6060",
		"a b", "-1",	  "127.0.0.1:1 ", "localhost:1"
	};
	union request_address a;
	struct err e;

	assert_address("6060", "127.0.0.1", 6060, true);
	assert_address(":6060", "127.0.0.1", 6060, true);
	assert_address("127.3.2.1:80", "127.3.2.1", 80, true);
	assert_address("[::ffff:127.0.0.1]:80", "::ffff:127.0.0.1", 80, true);
	assert_address("[::ffff:10.0.0.1]:80", "::ffff:10.0.0.1", 80, false);
	assert_address("0.0.0.0:6060", "0.0.0.0", 6060, false);
	assert_address("10.0.0.1:65535", "10.0.0.1", 65535, false);
	assert_address("[::1]:6060", "::1", 6060, true);
	assert_address("[::]:6060", "::", 6060, false);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (request_parse_address(&a, bad[i], &e) >= 0)
			fail_msg("taken: %s", bad[i]);
}

static void assert_has(const struct out *o, const char *line)
{
	const char *at = strstr(o->data, line);

	if (!at || (at > o->data && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("no line %s in %s", line, o->data);
}

TEST(test_metrics)
{
	struct profile_cpu cpus[2] = { { .cpu = 0, .lost_total = 7, .busy = 0.25 },
				       { .cpu = 12, .throttled_total = 3, .busy = 1 } };
	struct profile p = { .cpus = cpus, .nr_cpus = 2, .nr_events = 1 };

	p.account_total = (struct profile_account){ .complete = 123456789012, .lost = 7 };
	strcpy(p.events[0].event.name, "cpu/ev\"ent\\=0x3c\n,name=x/");
	p.events[0].want_hz = 999;
	p.events[0].got_hz = NAN;
	for (int open = 0; open < 2; open++) {
		struct out o = { .failed = false };

		metrics_write(&o, &p, open, 5, 0, NULL);
		out_bytes(&o, "", 1);
		assert_has(&o, "proftop_samples_total{outcome=\"complete\"} 123456789012");
		assert_has(&o, "proftop_lost_samples_total{cpu=\"0\"} 7");
		assert_has(&o, "proftop_throttled_total{cpu=\"12\"} 3");
		assert_has(&o, "proftop_cpu_busy_ratio{cpu=\"0\"} 0.250000");
		assert_has(&o, "proftop_rate_hertz{event=\"cpu/ev\\\"ent\\\\=0x3c\302\267,name=x/"
			       "\","
			       "kind=\"want\"} 999");
		assert_null(strstr(o.data, "kind=\"got\""));
		assert_has(&o, "proftop_http_requests_total 5");
		assert_has(&o, open ? "# TYPE proftop_samples counter"
				    : "# TYPE proftop_samples_total counter");
		assert_int_equal(strstr(o.data, "# EOF\n") != NULL, open);
		out_fini(&o);
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
