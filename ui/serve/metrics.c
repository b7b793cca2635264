// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text formats of Prometheus and OpenMetrics.
 */
#include "ui/serve/metrics.h"

#include <malloc.h>
#include <math.h>

#include "symbols/base/text.h"

struct writing {
	struct out *o;
	bool open;
};

/* Begin a metric; the name of a counter ends with _total. */
static void begin(const struct writing *w, const char *name, bool counter, const char *help)
{
	/* OpenMetrics names the family of a counter without the suffix. */
	const char *suffix = counter && !w->open ? "_total" : "";

	out_format(w->o, "# HELP proftop_%s%s %s\n# TYPE proftop_%s%s %s\n", name, suffix, help,
		   name, suffix, counter ? "counter" : "gauge");
}

static void put_value(const struct writing *w, double value)
{
	out_text(w->o, " ");
	out_number(w->o, value, 6);
	out_text(w->o, "\n");
}

/* Add the value of a label, escaped. */
static void put_label(const struct writing *w, const char *name, struct safe_text value)
{
	out_format(w->o, "%s=\"", name);
	for (size_t i = 0; i < value.size; i++) {
		if (value.str[i] == '"' || value.str[i] == '\\')
			out_text(w->o, "\\");
		out_bytes(w->o, &value.str[i], 1);
	}
	out_text(w->o, "\"");
}

static void put_samples(const struct writing *w, const struct profile_account *a)
{
	const struct {
		const char *outcome;
		uint64_t nr;
	} all[] = {
		{ "complete", a->complete },   { "guessed", a->guessed },
		{ "truncated", a->truncated }, { "broken", a->broken },
		{ "pending", a->pending },     { "dropped", a->dropped },
		{ "lost", a->lost },
	};

	begin(w, "samples", true, "Samples taken since the start, by the outcome of their stack.");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		out_format(w->o, "proftop_samples_total{outcome=\"%s\"}", all[i].outcome);
		put_value(w, (double)all[i].nr);
	}
	begin(w, "own_samples", true, "Samples of proftop, not among the others.");
	out_text(w->o, "proftop_own_samples_total");
	put_value(w, (double)a->own);
}

static void put_cpus(const struct writing *w, const struct profile *p)
{
	begin(w, "lost_samples", true, "Samples lost by the kernel.");
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		out_format(w->o, "proftop_lost_samples_total{cpu=\"%d\"}", p->cpus[i].cpu);
		put_value(w, (double)p->cpus[i].lost_total);
	}
	begin(w, "throttled", true, "How often the kernel throttled sampling.");
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		out_format(w->o, "proftop_throttled_total{cpu=\"%d\"}", p->cpus[i].cpu);
		put_value(w, (double)p->cpus[i].throttled_total);
	}
	begin(w, "cpu_busy_ratio", false, "Busy part of a CPU in the last tick.");
	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		if (isnan(p->cpus[i].busy))
			continue;
		out_format(w->o, "proftop_cpu_busy_ratio{cpu=\"%d\"}", p->cpus[i].cpu);
		put_value(w, p->cpus[i].busy);
	}
}

static void put_rate(const struct writing *w, const struct profile_event *ev, const char *kind,
		     double hz)
{
	char name[EVENT_NAME_MAX];

	if (isnan(hz))
		return;
	out_text(w->o, "proftop_rate_hertz{");
	put_label(w, "event", text_format(name, sizeof(name), "%s", ev->event.name));
	out_format(w->o, ",kind=\"%s\"}", kind);
	put_value(w, hz);
}

static void put_events(const struct writing *w, const struct profile *p)
{
	begin(w, "rate_hertz", false, "Samples per second on a busy CPU: wanted, and measured.");
	for (uint32_t i = 0; i < p->nr_events; i++) {
		put_rate(w, &p->events[i], "want", p->events[i].want_hz);
		put_rate(w, &p->events[i], "got", p->events[i].got_hz);
	}
}

static void put_gauge(const struct writing *w, const char *name, double value, const char *help)
{
	begin(w, name, false, help);
	out_format(w->o, "proftop_%s", name);
	put_value(w, value);
}

static void put_self(const struct writing *w, const struct profile *p, uint64_t requests,
		     uint64_t sending)
{
	/* Without large blocks, of which only some pages may be in use. */
	const struct mallinfo2 heap = mallinfo2();

	begin(w, "self_cpu_seconds", true, "CPU time of proftop.");
	out_text(w->o, "proftop_self_cpu_seconds_total");
	put_value(w, (double)time_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	begin(w, "http_requests", true, "Requests answered.");
	out_text(w->o, "proftop_http_requests_total");
	put_value(w, (double)requests);
	put_gauge(w, "http_sending_bytes", (double)sending, "Answers that are being sent.");
	put_gauge(w, "self_resident_bytes", (double)p->self.rss_kb * 1024, "Memory of proftop.");
	put_gauge(w, "heap_used_bytes", (double)heap.uordblks,
		  "Memory that proftop has allocated, without large tables.");
	put_gauge(w, "heap_free_bytes", (double)heap.fordblks,
		  "Memory that the allocator keeps for later.");
	put_gauge(w, "images_bytes", (double)p->images.memory,
		  "Symbols and unwind tables of files that are loaded.");
	put_gauge(w, "places", (double)p->nr_places, "Sampled code addresses.");
	put_gauge(w, "places_named", (double)p->nr_places_named, "Addresses that have a symbol.");
	put_gauge(w, "processes", (double)p->nr_processes, "Processes with samples in the window.");
	begin(w, "build_info", false, "The version.");
	out_text(w->o, "proftop_build_info{version=\"" PROFTOP_VERSION "\"} 1\n");
}

static void put_pushed_sum(const struct writing *w, const char *name, const struct pushed *p,
			   bool samples)
{
	const struct {
		const char *result;
		const struct pushed_sum *sum;
	} all[] = {
		{ "delivered", &p->delivered },
		{ pushed_drop_name(PUSHED_REFUSED), &p->dropped[PUSHED_REFUSED] },
		{ pushed_drop_name(PUSHED_TOO_LARGE), &p->dropped[PUSHED_TOO_LARGE] },
		{ pushed_drop_name(PUSHED_FULL), &p->dropped[PUSHED_FULL] },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		out_format(w->o, "proftop_%s_total{result=\"%s\"}", name, all[i].result);
		put_value(w, (double)(samples ? all[i].sum->samples : all[i].sum->profiles));
	}
}

static void put_pushed(const struct writing *w, const struct pushed *p)
{
	begin(w, "push_profiles", true, "Pushed profiles, by their result.");
	put_pushed_sum(w, "push_profiles", p, false);
	begin(w, "push_samples", true, "Samples in pushed profiles, by their result.");
	put_pushed_sum(w, "push_samples", p, true);
	begin(w, "push_retries", true, "Attempts without success that are repeated.");
	out_text(w->o, "proftop_push_retries_total");
	put_value(w, (double)p->retries);
	put_gauge(w, "push_queued_profiles", (double)p->queued.profiles,
		  "Profiles that are not delivered yet.");
}

void metrics_write(struct out *o, const struct profile *p, bool open, uint64_t requests,
		   uint64_t sending, const struct pushed *pushed)
{
	const struct writing w = { o, open };

	put_samples(&w, &p->account_total);
	put_cpus(&w, p);
	put_events(&w, p);
	put_self(&w, p, requests, sending);
	if (pushed)
		put_pushed(&w, pushed);
	if (open)
		out_text(o, "# EOF\n");
}
