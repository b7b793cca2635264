/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JVMs (HotSpot) by the tables that they export.
 *
 * The caller owes: a process with libjvm mapped, and the right to read its memory.
 *
 * The room does: reads code cache, names and inlined methods in the sandbox, again when it changed;
 * keeps code for recordings.
 *
 * Not for: stacks of Java (unwind/java.c).
 */
#ifndef SYMBOLS_JAVA_JAVA_H
#define SYMBOLS_JAVA_JAVA_H

#include "symbols/base/base.h"
#include "symbols/base/thread.h"
#include "symbols/jit/jit.h"
#include "symbols/process/process.h"

struct code_text;
struct helpers;
struct jvm_table_entry;
struct maps;
struct objects;
struct sandbox_reader;
struct script_log;

/* Static fields are addresses, others offsets in bytes. UINT64_MAX: not there (optional ones). */
struct vmstructs {
	uint64_t heaps;				      /* CodeCache::_heaps */
	uint64_t array_len, array_data;		      /* GrowableArray */
	uint64_t heap_memory, heap_segmap, heap_log2; /* CodeHeap */
	uint64_t space_low, space_high;		      /* VirtualSpace */
	uint64_t blob_name, blob_size, blob_frame_size;
	uint64_t blob_complete, complete_size; /* an integer of 2 or 4 bytes */
	uint64_t blob_begin, blob_end;	       /* pointers, to JDK 22 */
	uint64_t code_offset, data_offset;     /* in the blob, from JDK 23 on */
	uint64_t nmethod_method, nmethod_compile_id;
	uint64_t method_const;				  /* Method::_constMethod */
	uint64_t const_pool, const_code_size, const_name; /* ConstMethod */
	uint64_t pool_holder;				  /* ConstantPool::_pool_holder */
	uint64_t klass_name;
	uint64_t symbol_length, symbol_body;
	/* Optional: lines and inlined methods. */
	uint64_t vm_major;				/* static */
	uint64_t scopes_data, scopes_pcs, dependencies; /* nmethod, to JDK 22 */
	uint64_t immutable_data, scopes_data_offset;	/* from JDK 23 on */
	uint64_t metadata, metadata_size;		/* to JDK 24; of 2 or 4 bytes */
	uint64_t mutable_data, relocation_size;		/* from JDK 25 on */
	uint64_t const_flags, source_file;		/* ConstMethod, ConstantPool */
	/* Optional: to prove frames. */
	uint64_t block_used; /* in HeapBlock: its header is first */
	uint64_t nmethod_state;
	uint64_t deopt_handler, deopt_offset; /* a pointer, to JDK 22; in the blob */
	uint64_t call_return;		      /* static: StubRoutines::_call_stub_return_address */
	uint64_t nmethod_level;	  /* of its compiler; an integer, its lowest byte first */
	uint64_t flags, nr_flags; /* static: JVMFlag::flags, numFlags */
	uint64_t flag_name, flag_addr, flag_size; /* JVMFlag */
	uint64_t block_size;			  /* sizeof(HeapBlock) */
	uint64_t const_method_size, pool_size;	  /* sizeof */
};

#define JVM_READ_NAME_MAX 512U

enum jvm_read_kind {
	JVM_READ_STUB,	   /* runtime stubs, adapters */
	JVM_READ_COMPILED, /* a method, or the wrapper of a native one */
	JVM_READ_INTERPRETER,
};

struct jvm_read_blob {
	uint64_t start, end; /* of its code */
	uint64_t blob;	     /* address of the CodeBlob */
	uint64_t method;     /* Method*; 0: none */
	uint32_t compile_id;
	uint32_t frame_words; /* 0: not fixed */
	uint32_t complete;    /* the frame is built from this offset on */
	enum jvm_read_kind kind;
	bool fresh;   /* not known before the last scan or look-up */
	bool retired; /* no longer entered: other code may take its memory soon */
	bool inlines; /* may have inlined methods: not the wrapper of a native one */
	bool blind;   /* its loops may have inlined methods that no description has */
	uint16_t name_size;
	uint64_t deopt; /* return address of frames that are to be interpreted; 0: not known */
	uint64_t exits; /* as in struct codemap_code */
	char *name; /* owned; "java.util.HashMap.get", or of a stub; foreign bytes; NULL: unreadable
		     */
};

#define JVM_READ_HEAPS_MAX 8U

/* A part of the code cache, in segments of 1 << log2 bytes. */
struct jvm_read_heap {
	uint64_t low, segments; /* addresses: of the code, of its map */
	uint64_t nr_segments;
	uint32_t log2;
};

struct jvm_read {
	struct vmstructs vm;
	bool polls;   /* jvm_read_polls_loops() */
	bool untried; /* jvm_read_is_untried() */
	struct jvm_read_heap heaps[JVM_READ_HEAPS_MAX];
	uint32_t nr_heaps;
	struct jvm_read_blob *blobs; /* sorted by start, no overlap */
	uint32_t nr_blobs;
	uint32_t nr_new;      /* in the last scan or look-up */
	uint32_t nr_retired;  /* of all */
	size_t memory;	      /* of the blobs with their names */
	uint64_t call_return; /* where Java returns to the JVM; 0: not known */
};

/* One method that the compiler made a piece of code of. */
struct jvm_read_frame {
	uint64_t method;
	int32_t bci;
	uint32_t line;		      /* 0: not known */
	char name[JVM_READ_NAME_MAX]; /* foreign bytes */
	char file[64];		      /* "HashMap.java"; "": not known; foreign bytes */
};

/* The source of a place in compiled code: methods inlined there, innermost first. */
struct jvm_read_job_frame {
	const char *name, *file; /* foreign bytes; file "": not known */
	uint32_t line;
};

struct jvm_read_method_name {
	uint64_t method, code;
	uint32_t code_size;
	int rc;
	char *name; /* owned; NULL: makes no sense */
};

/* A place with its source: requested, then found. */
struct jvm_read_job_chain {
	uint64_t addr;
	uint32_t place, layer;
	uint32_t nr;			   /* 0: not known */
	bool exact;			   /* jvm_read_chain() */
	struct jvm_read_job_frame *frames; /* owned, with the texts behind them */
};

#define JVM_READ_FIRST_MAX 64U

/* A job for a helper: read one JVM. */
struct jvm_read_job {
	struct job job;
	uint64_t id;		 /* never used again; not 0 */
	_Atomic uint64_t worker; /* see java_sandbox.c; 0: none */
	struct remote remote;
	int dir_fd; /* of /proc/PID: the process that was opened */
	bool open;
	bool left; /* abandoned by its owner while it ran */
	bool scan; /* read the whole code cache; else the code at these addresses */
	uint64_t *pcs;
	uint32_t nr_pcs;
	struct jvm_read vm;
	/* Of a worker: memory that each scan begins with, to be read together. */
	uint64_t first[JVM_READ_FIRST_MAX];
	uint32_t nr_first;
	struct jvm_read_method_name *methods; /* wanted, then read */
	uint32_t nr_methods;
	struct jvm_read_job_chain *chains; /* the same */
	uint32_t nr_chains;
	size_t inlines_memory;	       /* of the frames that were found */
	struct jvm_read_frame *frames; /* buffer for one chain */
	/* Out: */
	int rc;
	uint64_t cost_ns, scan_ns; /* CPU time: of all; of the scan alone */
	uint64_t worker_ns;	   /* of all that a worker took */
	double scan_share;	   /* of the scan in that, 0 to 1 */
};

#define JVM_READ_READERS 8U

extern const struct sandbox_reader jvm_read_readers[JVM_READ_READERS];

/* One thing that was read. In the byte order of the machine. */
struct jvm_table_kept {
	uint64_t time_ns;
	uint64_t memory; /* an address in the code cache of the process */
	uint32_t pid;
	uint32_t kind; /* enum jvm_table_kept_kind */
	uint64_t call_return;
	/* Of a method: its address, its bytecodes. Of a chain: the place. */
	uint64_t start, end;
	uint64_t deopt;
	uint32_t compile_id, frame_words, complete;
	uint32_t code_kind;	     /* enum jvm_read_kind */
	uint32_t flags;		     /* enum jvm_table_kept_flag */
	uint32_t layer;		     /* of a chain */
	uint32_t bytecodes_size, nr; /* of a method; frames of a chain, which follow */
	uint64_t bytecodes;	     /* of code: its exits */
};

/* Read a function of LANG_JAVA, foreign bytes. False: it makes no sense. */
bool jvm_table_kept(const struct code_text *text, struct jvm_table_kept *out);

/*
 * Follow the sampled Java processes: names of compiled and interpreted
 * methods, and frame layouts for the unwinder (jit.h).
 *
 * A process is a JVM if it maps libjvm.so; its code cache is read by a helper
 * at the first sample in its memory and again while there are samples. Code that
 * replaces other code gets another layer, as for jitdumps.
 *
 * A replay takes their code from the recording.
 *
 * One thread: the loader; a replay before the loader starts.
 */

/* The layer of an object with addresses of interpreted methods as offsets. */
#define JVM_TABLE_METHODS (JITCODE_LAYERS + 1)

struct jvm_table {
	struct objects *objects;
	struct maps *maps;	 /* NULL: no process is read */
	struct helpers *helpers; /* NULL: no process is read */
	struct script_log *log;	 /* keeps all code for recordings; NULL: not kept */
	bool off;
	bool recorded; /* a replay: no process is read */
	/* Code of a process that has ended is kept; longer where a recording begins in the past. */
	uint64_t keep_ns;
	struct jvm_table_entry **entries;
	uint32_t nr_entries;
	atomic_ulong memory;		   /* written here, relaxed */
	struct jvm_read_job_chain *result; /* the chain that was handed out last */
};

struct jvm_table_symbol {
	uint64_t start;
	const char *name; /* foreign bytes, NUL-terminated; borrowed until the next call */
	uint32_t name_size;
};

void jvm_table_init(struct jvm_table *h, struct objects *objects);
/* Jobs in progress are left. */
void jvm_table_fini(struct jvm_table *h);
/*
 * Find the method at @addr of @object (OBJECT_ANON, memory or methods of a
 * process). 0, -EAGAIN: it is being read; -ENOENT: not Java, or not known.
 */
int jvm_table_find(struct jvm_table *h, struct object *object, uint64_t addr,
		   struct jvm_table_symbol *out);

struct jvm_table_chain {
	uint32_t place;
	uint64_t addr;				 /* of the place */
	uint32_t object;			 /* the memory, layer 0 */
	const struct jvm_read_job_frame *frames; /* the last one: the compiled method */
	uint32_t nr;
};

/* Have the source of @place looked up, which is at @addr of @object. */
void jvm_table_want_chain(struct jvm_table *h, const struct object *object, uint64_t addr,
			  uint32_t place);
/* The next one that was found; false: none. Borrowed until the next call. */
bool jvm_table_take_chain(struct jvm_table *h, struct jvm_table_chain *out);
/* Replay: take @kept, the code or chain of @text, for the JVM with @memory. */
void jvm_table_replay(struct jvm_table *h, const struct object *memory,
		      const struct code_text *text, const struct jvm_table_kept *kept);
/* Replay: before the next sample. True: the maps changed. */
bool jvm_table_settle(struct jvm_table *h, uint64_t time_ns);
/* Take finished readings, start due ones. The object with new names, or OBJECT_ID_UNKNOWN. */
uint32_t jvm_table_refresh(struct jvm_table *h, uint64_t now_ns);

#endif
