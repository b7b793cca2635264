// SPDX-License-Identifier: GPL-2.0-or-later
/* PHP's chain of execute_data, by its headers. See tests/lang_truth_trap.h. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <main/php.h>
#include <Zend/zend_execute.h>

#include "tests/lang_truth_trap.h"

/* The line of a statement of @f; -1: it is none of this function, the call has not begun. */
static int line_of(const zend_op_array *f, const zend_op *op)
{
	return op >= f->opcodes && op < f->opcodes + f->last ? (int)op->lineno : -1;
}

static void put(struct truth_entry *e, const zend_execute_data *ex, const zend_op *op)
{
	const zend_function *f = ex->func;
	const zend_class_entry *scope = f->common.scope;
	const zend_string *name = f->common.function_name, *file;

	if (!ZEND_USER_CODE(f->type)) {
		if (!name) /* the root of a fiber */
			return;
		truth_put(e, 0, scope ? ZSTR_VAL(scope->name) : NULL,
			  scope ? ZSTR_LEN(scope->name) : 0, ZSTR_VAL(name), ZSTR_LEN(name),
			  "[internal]", 10, -1);
		return;
	}
	file = f->op_array.filename;
	truth_put(e, f->op_array.line_start, scope ? ZSTR_VAL(scope->name) : NULL,
		  scope ? ZSTR_LEN(scope->name) : 0, name ? ZSTR_VAL(name) : "{main}",
		  name ? ZSTR_LEN(name) : 6, ZSTR_VAL(file), ZSTR_LEN(file),
		  line_of(&f->op_array, op));
}

/* In the loop of the interpreter the frame and its statement are in registers. */
static const zend_op *statement(const ucontext_t *context, const zend_execute_data *ex)
{
	static uintptr_t loop, size;
	uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	ElfW(Sym) * symbol;
	Dl_info info;

	if (!loop && dladdr1((void *)execute_ex, &info, (void **)&symbol, RTLD_DL_SYMENT)) {
		loop = (uintptr_t)execute_ex;
		size = symbol->st_size;
	}
	if (pc - loop < size && (uintptr_t)context->uc_mcontext.gregs[REG_R14] == (uintptr_t)ex)
		return (const zend_op *)context->uc_mcontext.gregs[REG_R15];
	return ex->opline;
}

static void truth_walk(struct truth_entry *e, const ucontext_t *context)
{
	const zend_execute_data *ex = EG(current_execute_data);

	for (; ex; ex = ex->prev_execute_data)
		if (ex->func)
			put(e, ex, e->nr ? ex->opline : statement(context, ex));
}
