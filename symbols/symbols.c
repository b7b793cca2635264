// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The interface of naming: the table of functions, and the loader that fills it.
 *
 * Readers use the table only, lock-free.
 */
#include "symbols/internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "symbols/base/base.h"
#include "symbols/base/table.h"
#include "symbols/base/text.h"
#include "symbols/code/code.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/elf/elf.h"
#include "symbols/image/image.h"
#include "symbols/java/java.h"
#include "symbols/jit/jit.h"
#include "symbols/kernel/kernel.h"
#include "symbols/name/name.h"
#include "symbols/process/process.h"
#include "symbols/sandbox/sandbox.h"
#include "symbols/script/script.h"

#define CHECK_NS 2000000000ULL

struct symbols {
	struct objects *objects; /* borrowed */
	struct symtab *symtab;
	struct loader *loader;
	const struct inlines *chains; /* of the builder's places; the loader may use those before */
};

void symbols_sandbox_readers(bool code,
			     const struct sandbox_reader *readers[static SANDBOX_NR_KINDS])
{
	readers[SANDBOX_DWARF] = &dwarf_sandbox_reader;
	readers[SANDBOX_DWARF_OTHERS] = &dwarf_sandbox_others;
	readers[SANDBOX_NAMES] = &demangler_reader;
	readers[SANDBOX_ELF] = &elffacts_reader;
	readers[SANDBOX_DESCRIBE] = &detect_reader;
	readers[SANDBOX_PERFMAP] = &perfmap_reader;
	readers[SANDBOX_JITDUMP] = &jitdump_reader;
	readers[SANDBOX_DISASM] = code ? &disasm_reader : NULL;
	readers[SANDBOX_KERNEL] = &kernel_reader;
	for (int i = 0; i < IMAGE_READERS; i++)
		readers[SANDBOX_IMAGE + i] = &image_readers[i];
	for (unsigned int i = 0; i < JVM_READ_READERS; i++)
		readers[SANDBOX_HOTSPOT + i] = &jvm_read_readers[i];
}

int symbols_sandbox_check(void)
{
	const struct sandbox_reader *readers[SANDBOX_NR_KINDS] = { NULL };
	struct sandbox_answer a;
	int rc;

	symbols_sandbox_readers(false, readers);
	sandbox_start(readers);
	rc = sandbox_call(&demangler_reader, NULL, 0, NULL, 0, CHECK_NS, &a);
	free(a.bytes);
	sandbox_stop();
	return rc;
}

int symbols_new(struct symbols **out, struct places *places, struct objects *objects,
		struct maps *maps, struct err *e)
{
	struct symbols *s = calloc(1, sizeof(*s));
	int rc;

	if (!s || symtab_new(&s->symtab)) {
		free(s);
		return err_set(e, -ENOMEM, "out of memory");
	}
	s->objects = objects;
	rc = loader_new(&s->loader, places, objects, maps, s->symtab, e);
	if (rc) {
		symbols_free(s);
		return rc;
	}
	s->chains = loader_chains(s->loader);
	*out = s;
	return 0;
}

void symbols_recorded(struct symbols *s, const char *root)
{
	loader_recorded(s->loader, root);
}

enum kernel_match symbols_recorded_kernel(struct symbols *s, const struct kernel_identity *was)
{
	return loader_recorded_kernel(s->loader, was);
}

void symbols_kernel_was(struct symbols *s, const struct recorded_kernel *told)
{
	loader_kernel_was(s->loader, told);
}

void symbols_kernel_module(struct symbols *s, const char *file, size_t size, uint64_t start,
			   uint64_t end)
{
	loader_kernel_module(s->loader, file, size, start, end);
}

void symbols_other_clock(struct symbols *s)
{
	loader_other_clock(s->loader);
}

void symbols_on_kernel_code(struct symbols *s, uint64_t start, uint32_t size, bool bpf,
			    const char *name, size_t name_size)
{
	ksyms_add(loader_ksyms(s->loader), start, size, bpf ? KSYMS_BPF : KSYMS_OUT_OF_LINE, name,
		  name_size);
}

void symbols_on_kernel_gone(struct symbols *s, uint64_t start, uint32_t size)
{
	ksyms_remove(loader_ksyms(s->loader), start, size);
}

void symbols_no_inline(struct symbols *s)
{
	loader_no_inline(s->loader);
}

void symbols_no_lines(struct symbols *s)
{
	loader_no_lines(s->loader);
}

void symbols_no_java(struct symbols *s)
{
	loader_no_java(s->loader);
}

bool symbols_java_process(const struct code_text *text, pid_t *pid, uint64_t *addr,
			  uint64_t *time_ns)
{
	struct jvm_table_kept kept;

	if (!jvm_table_kept(text, &kept))
		return false;
	*pid = (pid_t)kept.pid;
	*addr = kept.memory;
	*time_ns = kept.time_ns;
	return true;
}

void symbols_java_replay(struct symbols *s, const struct object *memory,
			 const struct code_text *text)
{
	loader_java_replay(s->loader, memory, text);
}

bool symbols_java_settle(struct symbols *s, uint64_t time_ns)
{
	return loader_java_settle(s->loader, time_ns);
}

void symbols_limit_memory(struct symbols *s, size_t max)
{
	loader_limit_memory(s->loader, max);
}

bool symbols_can_move(const struct symbols *s)
{
	return loader_takes_places(s->loader);
}

struct places_move *symbols_begin_move(struct symbols *s, struct places *from, struct places *to)
{
	return symbols_can_move(s) ? places_move_new(from, to, s->chains, s->objects, s->symtab)
				   : NULL;
}

void symbols_end_move(struct symbols *s, struct places_move *m)
{
	s->chains = m->to_chains;
	loader_hand_places(s->loader, m);
}

const struct symbol_frame *symbols_source(const struct symbols *s, uint32_t place, uint32_t *nr)
{
	return inlines_at(s->chains, place, nr);
}

struct safe_text symbols_file(const struct symbols *s, uint32_t id)
{
	return inlines_file(s->chains, id);
}

struct script_functions *symbols_codes(struct symbols *s)
{
	return loader_codes(s->loader);
}

void symbols_watch_interpreters(struct symbols *s, int fd)
{
	loader_watch_interpreters(s->loader, fd);
}

uint32_t symbols_nr_interpreters(const struct symbols *s)
{
	return loader_nr_interpreters(s->loader);
}

uint32_t symbols_script(const struct symbols *s)
{
	return loader_script(s->loader);
}

uint32_t symbols_wait(const struct symbols *s)
{
	return loader_wait(s->loader);
}

struct details *symbols_details(struct symbols *s)
{
	return loader_details(s->loader);
}

uint32_t symbols_nr_files(const struct symbols *s)
{
	return inlines_nr_files(s->chains);
}

/* Return the kind of the object with functions of kind letter @letter. */
static enum object_kind kept_kind(char letter)
{
	for (int kind = LANG_NONE + 1; kind < LANG_NR; kind++)
		if (letter == lang_letter((enum lang_kind)kind))
			return OBJECT_SCRIPT;
	return OBJECT_FILE;
}

/* Return the object that functions of a module are in: one for each name. */
static struct object *kept_module(struct objects *objects, const struct symbols_kept *f)
{
	const struct object_identity identity = { .kind = kept_kind(f->kind),
						  .ino = keyhash_name(f->module, f->module_size),
						  .maj = UINT32_MAX };

	struct object *object = f->kind == 'k' ? objects_at(objects, OBJECT_ID_KERNEL)
					       : objects_intern(objects, &identity, f->module,
								f->module_size, 0, 0, 0);

	object_explain(object, "names were kept, no code", "");
	/* Release: the reason; pairs with the acquire of readers. */
	atomic_store_explicit(&object->state, OBJECT_FAILED, memory_order_release);
	return object;
}

void symbols_keep_interpreter(struct objects *objects, const char *name, size_t size)
{
	const struct symbols_kept f = { .module = name, .module_size = size, .kind = 'u' };
	struct object *object = kept_module(objects, &f);

	if (object->id != OBJECT_ID_UNKNOWN)
		atomic_store_explicit(&object->interpreter, true, memory_order_relaxed);
}

/*
 * Find the kept function @text. The start of its place is a hash: when another function has the
 * same one, the next free start is taken. SYMBOL_NONE: it is new.
 */
static uint32_t find_kept(const struct symbols *s, struct symtab_key *key,
			  const struct symtab_text *text)
{
	uint32_t id;

	while ((id = symtab_find_named(s->symtab, key, text)) == SYMBOL_NONE &&
	       symtab_find(s->symtab, key) != SYMBOL_NONE)
		key->start++;
	return id;
}

/* Name the place @key of a kept function. Return it. */
static uint32_t keep_place(struct symbols *s, struct places *places, struct symtab_key *key,
			   const struct symtab_text *text)
{
	uint32_t id = find_kept(s, key, text), place;

	if (id == SYMBOL_NONE)
		id = symtab_add(s->symtab, key, text);
	place = places_intern(places, key->object, key->start);
	if (place == PLACE_NONE) {
		places_grow(places);
		place = places_intern(places, key->object, key->start);
	}
	if (place != PLACE_NONE && id != SYMBOL_NONE)
		places_name(places, place, id);
	return place;
}

uint32_t symbols_keep_wait(struct symbols *s, struct places *places, enum wait_kind kind)
{
	struct symtab_key key = { .object = symbols_wait(s), .start = kind };
	const char *name = wait_kind_name(kind >= WAIT_FOUND ? kind : MIN(kind, WAIT_OTHER));
	const struct symtab_text text = { name, "[wait]", strlen(name), 6, 'w', false };

	return keep_place(s, places, &key, &text);
}

uint32_t symbols_keep_function(struct symbols *s, struct places *places, struct objects *objects,
			       const struct symbols_kept *f)
{
	struct symtab_key key = { .object = kept_module(objects, f)->id,
				  .variant = keyhash_name(f->name, f->name_size) + f->inlined,
				  .made_up = f->made_up };
	const struct symtab_text text = { f->name,	  f->module, f->name_size,
					  f->module_size, f->kind,   f->inlined };

	key.start = key.variant;
	return keep_place(s, places, &key, &text);
}

int symbols_start(struct symbols *s, struct err *e)
{
	return loader_start(s->loader, e);
}

void symbols_stop(struct symbols *s)
{
	loader_stop(s->loader);
}

bool symbols_free(struct symbols *s)
{
	bool alone;

	if (!s)
		return true;
	/* An abandoned thread still uses the tables: leak them. */
	alone = loader_free(s->loader);
	if (alone)
		symtab_free(s->symtab);
	free(s);
	return alone;
}

void symbols_wake(struct symbols *s)
{
	loader_wake(s->loader);
}

void symbols_run(struct symbols *s)
{
	loader_run(s->loader);
}

void symbols_stop_run(struct symbols *s)
{
	loader_stop_run(s->loader);
}

void symbols_run_objects(struct symbols *s)
{
	loader_run_objects(s->loader);
}

void symbols_expect_kernel(struct symbols *s)
{
	loader_expect_kernel(s->loader);
}

const struct symbol *symbols_at(const struct symbols *s, uint32_t id)
{
	return symtab_at(s->symtab, id);
}

uint32_t symbols_nr(const struct symbols *s)
{
	return symtab_nr(s->symtab);
}

void symbols_fetch(struct symbols *s, uint32_t object)
{
	fetch_ask(loader_fetch(s->loader), object);
	loader_wake(s->loader);
}

bool symbols_fetch_news(struct symbols *s, char *buf, size_t size)
{
	return fetch_news(loader_fetch(s->loader), buf, size);
}

void symbols_want_code(struct symbols *s, uint32_t symbol, const struct listing_instance *instance)
{
	code_want(loader_code(s->loader), symbol, instance);
	loader_wake(s->loader);
}

void symbols_want_lines(struct symbols *s, uint32_t symbol, const struct listing_lines *lines)
{
	code_want_lines(loader_code(s->loader), symbol, lines);
	loader_wake(s->loader);
}

struct listing *symbols_code(struct symbols *s, uint32_t symbol)
{
	return code_take(loader_code(s->loader), symbol);
}

void symbols_stats(const struct symbols *s, struct symbols_stats *out)
{
	memset(out, 0, sizeof(*out));
	loader_stats(s->loader, out);
}
