/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between disasm.c and its worker, disasm_serve.c. The bytes of the code are in a memfd.
 */
#ifndef SYMBOLS_SOURCE_DISASM_WIRE_H
#define SYMBOLS_SOURCE_DISASM_WIRE_H

#include <stdint.h>

struct disasm_request {
	uint64_t vaddr;
	uint32_t nr_bytes;
	uint16_t machine; /* e_machine */
	uint16_t wide;	  /* 64 bits */
};

/* One instruction; its mnemonic and its operands follow, without NUL. */
struct disasm_insn {
	uint64_t target; /* of a direct jump or call; 0: unknown */
	uint8_t size;	 /* bytes of code */
	uint8_t mnemonic_size;
	uint8_t operands_size; /* both 0: no instruction */
	uint8_t jump : 1, call : 1;
	uint32_t reserved;
};

#endif
