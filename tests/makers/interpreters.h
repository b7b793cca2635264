/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interpreters of Ruby, PHP and Perl that run, each one function, in the memory of this process. */
#ifndef TESTS_MAKERS_INTERPRETERS_H
#define TESTS_MAKERS_INTERPRETERS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbols/script/php.c"
#include "symbols/script/ruby.c"

/* A VM with one thread. */
struct made_vm {
	char version[16];
	uint64_t words[64], ractor[128], thread[32], native[8], ec[64], frames[64], iseq[8];
	uint64_t body[32];
	uint64_t *pointer, **pointer2;
};

static inline void set_word(uint64_t *object, uint32_t at, const void *value)
{
	object[at / 8] = (uintptr_t)value;
}

static inline void make_vm(struct made_vm *vm, const char *version, const struct ruby_layout *l)
{
	static const uint64_t code[4] = { 0x5555, 0x5556, 0x5557, 0x5558 };
	char *end = (char *)vm->frames + sizeof(vm->frames) / l->frame_size * l->frame_size;
	uint64_t *frame = (uint64_t *)(end - l->frame_size);

	memset(vm, 0, sizeof(*vm));
	snprintf(vm->version, sizeof(vm->version), "%s", version);
	vm->pointer = vm->words;
	vm->pointer2 = &vm->pointer;
	set_word(vm->words, l->ractors, (char *)vm->ractor + l->ractor_node);
	set_word(vm->ractor, l->ractor_threads, (char *)vm->thread + l->thread_node);
	set_word(vm->thread, l->thread_node + 8U, (char *)vm->ractor + l->ractor_threads);
	if (l->thread_native != RUBY_ABSENT) {
		set_word(vm->thread, l->thread_native, vm->native);
		((uint32_t *)vm->native)[l->native_tid / 4] = (uint32_t)getpid();
	}
	set_word(vm->thread, l->thread_vm, vm->words);
	set_word(vm->thread, l->thread_ec, vm->ec);
	set_word(vm->ec, l->ec_thread, vm->thread);
	set_word(vm->ec, l->ec_c_stack, vm->body);
	vm->ec[l->ec_c_stack_size / 8] = 8 << 20;
	set_word(vm->ec, l->ec_stack, vm->frames);
	vm->ec[l->ec_stack_words / 8] = (uint64_t)(end - (char *)vm->frames) / 8;
	set_word(vm->ec, l->ec_cfp, frame);
	set_word(frame, l->frame_iseq, vm->iseq);
	set_word(frame, l->frame_pc, code + 1);
	vm->iseq[0] = RUBY_IMEMO_ISEQ;
	set_word(vm->iseq, l->iseq_body, vm->body);
	((uint32_t *)vm->body)[l->body_words / 4] = 4;
	set_word(vm->body, l->body_code, code);
}

/* Globals of a PHP, with one page of frames; a function of four statements, which runs the second.
 */
struct made_php {
	uint64_t globals[128], page[512], func[32], ops[16], file[8];
};

static inline void make_php(struct made_php *php, const struct php_layout *l)
{
	uint64_t *stack = php->globals + l->stack / 8, *frame = php->page + 16;

	memset(php, 0, sizeof(*php));
	stack[0] = (uintptr_t)php->page;
	stack[1] = sizeof(php->page);
	php->page[1] = stack[-1] = (uintptr_t)(php->page + ARRAY_SIZE(php->page));
	stack[2] = (uintptr_t)frame;
	frame[FRAME_OPLINE / 8] = (uintptr_t)(php->ops + 4); /* in line 7 */
	frame[FRAME_FUNC / 8] = (uintptr_t)php->func;
	php->func[0] = TYPE_USER;
	php->func[l->ops / 8] = (uintptr_t)php->ops;
	((uint32_t *)php->func)[l->nr_ops / 4] = 4;
	php->func[l->file / 8] = (uintptr_t)php->file;
	php->func[l->file / 8 + 1] = 5 | 9ULL << 32;
	php->ops[7] = 7;
	((uint8_t *)(php->ops + 12))[OP_CODE] = RETURN;
	php->file[2] = 5;
	strcpy((char *)(php->file + 3), "x.php");
}

/* A Perl with the main stack and a statement in line 7. */
struct made_perl {
	uint64_t *curinterp, interp[32], values[8], info[8], contexts[8], cop[8];
};

static inline void make_perl(struct made_perl *perl)
{
	memset(perl, 0, sizeof(*perl));
	perl->curinterp = perl->interp;
	perl->interp[0] = (uintptr_t)(perl->values + 3);
	perl->interp[3] = (uintptr_t)perl->values;
	perl->interp[4] = (uintptr_t)(perl->values + 7);
	perl->interp[26] = (uintptr_t)perl->cop;
	perl->interp[28] = (uintptr_t)perl->info;
	perl->info[1] = (uintptr_t)perl->contexts;
	perl->info[4] = 2 | 60ULL << 32; /* the top, the last one */
	perl->info[5] = 1ULL << 32;	 /* the main stack */
	perl->cop[4] = 7ULL << 32;
}

#endif
