// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Interpreters by the names of their files, and the symbols that they have.
 *
 * Any thread; pure.
 */
#include "symbols/lang/describe_names.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/lang/describe.h"
#include "symbols/object/elfloop.h"
#include "symbols/object/object.h"

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

/* "php", "php8.2", "php-fpm8.2", "libphp.so"; not "phpize". */
static bool begins_with(const char *name, const char *word)
{
	size_t size = strlen(word);

	return !strncmp(name, word, size) && (!name[size] || strchr(".-0123456789", name[size]));
}

static enum lang_kind kind_of_name(const char *name)
{
	if (describe_python_minor(name) >= 0)
		return LANG_PYTHON;
	for (int i = LANG_PYTHON + 1; i < LANG_NR; i++)
		if (begins_with(name, all[i].program) || begins_with(name, all[i].library))
			return (enum lang_kind)i;
	return LANG_NONE;
}

enum lang_kind describe_kind(const struct object *object)
{
	uint32_t loop = atomic_load_explicit(&object->loop, memory_order_relaxed);
	const char *symbol = elfloop_symbol((uint8_t)loop);
	enum lang_kind kind = kind_of_name(object->name.str);

	for (int i = LANG_PYTHON; i < LANG_NR && symbol && kind == LANG_NONE; i++)
		if (!strcmp(symbol, all[i].shown))
			kind = (enum lang_kind)i;
	return kind;
}

const struct describe_names *describe_names(enum lang_kind kind)
{
	return &all[kind];
}
