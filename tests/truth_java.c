// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A JVM agent: at each SIGTRAP of a sample (perf_event_attr.sigtrap) AsyncGetCallTrace() writes the
 * JVM's own chain to shared memory, methods by their ids; the names of all ids go to FILE.names.
 * FILE.scopes has the methods of each described pc of compiled code, from CompiledMethodLoad:
 * "PC ID...", innermost first (tests/java_scopes.h).
 *
 * Built by tests/truth_java; loaded by -agentpath:LIBRARY=FILE.
 */
#include <dlfcn.h>
#include <jvmti.h>
#include <jvmticmlr.h>
#include <stdio.h>

#define TRUTH_START_LATER
#include "tests/lang_truth_trap.h"

struct call_frame {
	jint bci;
	jmethodID method;
};

struct call_trace {
	JNIEnv *env;
	jint nr;
	struct call_frame *frames;
};

static void (*get_trace)(struct call_trace *trace, jint depth, void *context);
static JavaVM *vm;
static int names_fd, scopes_fd;

/* An entry without frames: the JVM has no chain, or says that it does not know it. */
static void truth_walk(struct truth_entry *e, const ucontext_t *context)
{
	struct call_frame frames[TRUTH_FRAMES];
	struct call_trace trace = { .frames = frames };

	if ((*vm)->GetEnv(vm, (void **)&trace.env, JNI_VERSION_1_6) || !trace.env)
		return;
	get_trace(&trace, TRUTH_FRAMES, (void *)(uintptr_t)context);
	e->cut = trace.nr == TRUTH_FRAMES;
	for (jint i = 0; i < trace.nr; i++) {
		e->hash[i] = (uint64_t)(uintptr_t)frames[i].method;
		e->instr[i] = frames[i].bci;
	}
	e->nr = trace.nr > 0 ? (uint32_t)trace.nr : 0;
}

static void put_name(jvmtiEnv *jvmti, const char *class_name, jmethodID method)
{
	char line[2048], *name = NULL;
	int size;

	if ((*jvmti)->GetMethodName(jvmti, method, &name, NULL, NULL))
		return;
	size = snprintf(line, sizeof(line), "%lx %s.%s\n", (unsigned long)(uintptr_t)method,
			class_name, name);
	if (size < (int)sizeof(line) && write(names_fd, line, (size_t)size) != size)
		_exit(98);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
}

/* Give each method of the class an id, or AsyncGetCallTrace() does not know it. */
static void add_class(jvmtiEnv *jvmti, jclass class)
{
	char *signature = NULL;
	jmethodID *methods = NULL;
	jint nr = 0;

	if ((*jvmti)->GetClassSignature(jvmti, class, &signature, NULL))
		return;
	if (signature[0] == 'L' && !(*jvmti)->GetClassMethods(jvmti, class, &nr, &methods)) {
		signature[strlen(signature) - 1] = '\0';
		for (jint i = 0; i < nr; i++)
			put_name(jvmti, signature + 1, methods[i]);
		(*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
}

static void JNICALL on_prepare(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
	add_class(jvmti, class);
}

static void JNICALL on_load(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, jclass class)
{
}

/* Write the methods of each pc of @list, in one call: several threads report code. */
static void put_scopes(const jvmtiCompiledMethodLoadInlineRecord *list)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		_exit(97);
	for (jint i = 0; i < list->numpcs; i++) {
		const PCStackInfo *p = &list->pcinfo[i];

		fprintf(f, "%lx", (unsigned long)(uintptr_t)p->pc);
		for (jint k = 0; k < p->numstackframes; k++)
			fprintf(f, " %lx", (unsigned long)(uintptr_t)p->methods[k]);
		fputc('\n', f);
	}
	fclose(f);
	if (write(scopes_fd, text, size) != (ssize_t)size)
		_exit(96);
	free(text);
}

static void JNICALL on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code,
				jint nr, const jvmtiAddrLocationMap *map, const void *info)
{
	const jvmtiCompiledMethodLoadRecordHeader *h = info;

	for (; h; h = h->next)
		if (h->kind == JVMTI_CMLR_INLINE_INFO)
			put_scopes((const jvmtiCompiledMethodLoadInlineRecord *)h);
}

static void JNICALL on_init(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread)
{
	jclass *classes = NULL;
	jint nr = 0;

	(*jvmti)->GetLoadedClasses(jvmti, &nr, &classes);
	for (jint i = 0; i < nr; i++)
		add_class(jvmti, classes[i]);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
	truth_start();
}

static int open_list(const char *path, const char *what)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s.%s", path, what);
	return open(name, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *jvm, char *path, void *reserved)
{
	const jvmtiEventCallbacks calls = { .VMInit = on_init,
					    .ClassLoad = on_load,
					    .ClassPrepare = on_prepare,
					    .CompiledMethodLoad = on_compiled };
	const jvmtiEvent events[] = { JVMTI_EVENT_VM_INIT, JVMTI_EVENT_CLASS_LOAD,
				      JVMTI_EVENT_CLASS_PREPARE, JVMTI_EVENT_COMPILED_METHOD_LOAD };
	const jvmtiCapabilities wanted = { .can_generate_compiled_method_load_events = 1 };
	jvmtiEnv *jvmti;

	vm = jvm;
	setenv("TRUTH_FILE", path, 1);
	names_fd = open_list(path, "names");
	scopes_fd = open_list(path, "scopes");
	*(void **)&get_trace = dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
	if (names_fd < 0 || scopes_fd < 0 || !get_trace ||
	    (*jvm)->GetEnv(jvm, (void **)&jvmti, JVMTI_VERSION_1_2) ||
	    (*jvmti)->AddCapabilities(jvmti, &wanted))
		return JNI_ERR;
	(*jvmti)->SetEventCallbacks(jvmti, &calls, sizeof(calls));
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL);
	return JNI_OK;
}
