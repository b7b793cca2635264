/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proftop --check: the rights and limits on this machine, and how to fix them.
 *
 * Facts are read once, findings are made of them alone. Any one thread.
 */
#ifndef SAMPLER_EVENT_DOCTOR_H
#define SAMPLER_EVENT_DOCTOR_H

#include "sampler/event/tracefs.h"
#include "symbols/base/base.h"
#include "symbols/jit/jitcheck.h"

/* In order: the worst finding is the state of the whole. */
enum doctor_level {
	DOCTOR_OK,
	DOCTOR_NOTE,	 /* would be nice to have */
	DOCTOR_DEGRADED, /* part of the data is missing */
	DOCTOR_NOTHING,	 /* nothing can be sampled at all */
};

/* Facts of this machine, for this user. Values that cannot be read are -1. */
struct doctor_facts {
	uint64_t caps; /* effective */
	long paranoid, kptr_restrict, mlock_kb, max_rate;
	long files_hard; /* limit of open files */
	long nr_cpus;
	int seccomp;		     /* 0 none, 2 filter */
	int system_code;	     /* 0 or -errno of a clock on every process, with the kernel */
	int system_user_code;	     /* of every process, user code */
	int own_code, own_user_code; /* of our own process */
	int cycles_code;	     /* cycles of our own process, user code */
	bool kernel_symbols;	     /* /proc/kallsyms has addresses */
	enum tracefs_state tracefs;
	char lockdown[20]; /* "none", "integrity", "confidentiality"; "": not known */
	bool debug_files, debuginfod;
	bool other_processes; /* /proc shows other users' processes */
	long ptrace_scope;    /* of Yama: 0 to 3; -1: without it */
	int realtime_code;    /* 0 or -errno of a real-time priority */
	int cage_code;	      /* 0 or -errno of a reader of foreign files */
	char release[64];     /* of the kernel */
	bool user_namespace;  /* its root has no rights outside */
	bool pid_namespace;   /* processes outside have no pid, so no names and no stacks */
	long memory_mb;	      /* limit of its cgroup; 0: none */
	long cpu_pct;	      /* 100: as much as one CPU gives; 0: no limit */
	uint32_t nr_jits;     /* processes with JIT code without names, the first of them */
	struct jitcheck jits[3];
};

struct doctor_finding {
	enum doctor_level level;
	char topic[24];
	char says[200];
	char fix[300]; /* least power first; "" where nothing is to be done */
};
#define DOCTOR_FINDINGS_MAX 32

/* Read the facts below @root ("" but in tests) and try to open events. */
void doctor_read(struct doctor_facts *f, const char *root);
/* Returns how many findings there are, in a fixed order. Pure. */
uint32_t doctor_judge(const struct doctor_facts *f, struct doctor_finding *out);
enum doctor_level doctor_worst(const struct doctor_finding *findings, uint32_t nr);

#endif
