// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Interpreters by the names of their files, and the symbols that they have.
 *
 * Any thread; pure.
 */
#include "symbols/lang/describe_names.h"

#include <stdlib.h>
#include <string.h>

int describe_python_minor(const char *name)
{
	static const char *const begins[] = { "libpython3.", "python3." };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		size_t size = strlen(begins[i]);
		char *end;
		long minor;

		if (strncmp(name, begins[i], size) != 0 || name[size] < '0' || name[size] > '9')
			continue;
		minor = strtol(name + size, &end, 10);
		return minor < 256 && (!*end || strchr(".dt- ", *end)) ? (int)minor : -1;
	}
	return -1;
}

/* Symbols of interpreters, by the names of their files. */
static const struct describe_names all[LANG_NR] = {
	[LANG_PYTHON] = { "python", "libpython", "_PyEval_EvalFrameDefault", "_PyRuntime",
			  "PyCode_Type", "Py_Version", "_PyEval_EvalFrameDefault" },
	[LANG_PHP] = { "php", "libphp", "execute_ex", "executor_globals", NULL, NULL,
		       "execute_ex" },
	[LANG_RUBY] = { "ruby", "libruby", "ruby_run_node", "ruby_current_vm_ptr", NULL,
			"ruby_api_version", "rb_vm_exec" },
	[LANG_PERL] = { "perl", "libperl", "Perl_runops_standard", "PL_curinterp", NULL,
			"PL_interp_size", "Perl_runops_standard" },
	[LANG_NODE] = { "node", "libnode", "_ZN4node5StartEiPPc", NULL, NULL, NULL,
			NULL }, /* describe_v8.h */
};

/*
 * PHP without threads on 64-bit CPUs: offsetof() with the headers of php8.2-dev of Debian 12,
 * php8.4-dev of Debian 13, php8.5-dev and php8.6-dev of sid.
 */
static const struct describe_php phps[] = {
	{ "API420220829,NTS", 8U << 24 | 2U << 16, { 488, 80, 88, 152, 160 } },
	{ "API420240924,NTS", 8U << 24 | 4U << 16, { 488, 96, 104, 168, 176 } },
	{ "API420250925,NTS", 8U << 24 | 5U << 16, { 512, 96, 104, 168, 176 } },
	{ "API420260924,NTS", 8U << 24 | 6U << 16, { 512, 96, 104, 168, 176 } },
};

const struct describe_php *describe_php(size_t i)
{
	return i < ARRAY_SIZE(phps) ? &phps[i] : NULL;
}

/* "php", "php8.2", "php-fpm8.2", "libphp.so"; not "phpize". */
static bool begins_with(const char *name, const char *word)
{
	size_t size = strlen(word);

	return !strncmp(name, word, size) && (!name[size] || strchr(".-0123456789", name[size]));
}

enum lang_kind describe_names_find(const char *name)
{
	if (describe_python_minor(name) >= 0)
		return LANG_PYTHON;
	for (int i = LANG_PYTHON + 1; i < LANG_NR; i++)
		if (begins_with(name, all[i].program) || begins_with(name, all[i].library))
			return (enum lang_kind)i;
	return LANG_NONE;
}

const struct describe_names *describe_names(enum lang_kind kind)
{
	return &all[kind];
}
