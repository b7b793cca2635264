/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The internal structures that HotSpot exports for the serviceability agent: gHotSpotVMStructs,
 * gHotSpotVMTypes (JDK source: vmStructs.hpp). Offsets are taken from these tables, never assumed;
 * a field that is missing makes the
 * JVM one that is not read.
 *
 * Pure but for reading the process. Runs on: a helper.
 */
#ifndef SYMBOLS_JIT_VMSTRUCTS_H
#define SYMBOLS_JIT_VMSTRUCTS_H

#include "symbols/object/elfvar.h"
#include "symbols/process/remote_memory.h"

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

#define VMSTRUCTS_VARIABLES 12U
/* Bytes of a block with the head of its blob: all members that are read are inside. */
#define VMSTRUCTS_BLOB 512U

/* Fill in the names of the variables that describe the tables, to be found in libjvm.so. */
void vmstructs_want(struct elfvar vars[static VMSTRUCTS_VARIABLES]);
/*
 * Read the tables of a JVM with libjvm.so mapped with @bias (address - vaddr). 0, -ENOENT (no such
 * tables), -ENODATA (a field is missing: *missing is its name), -EBADMSG (tables make no sense),
 * -errno of reading.
 */
int vmstructs_read(struct vmstructs *v, struct remote *r,
		   const struct elfvar vars[static VMSTRUCTS_VARIABLES], uint64_t bias,
		   const char **missing);

#endif
