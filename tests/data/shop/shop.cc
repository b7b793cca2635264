// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program behind shop.data: a shop that is always busy, without a library,
 * so that its few kilobytes and its recording can be kept in the tree and give
 * the same screens on every machine. Three processes with names of their own;
 * recursion, an inlined function, C++ names, one long leaf.
 *
 * Made by tests/data/shop/make; see there.
 */
typedef unsigned long u64;

static inline long call(long nr, long a, long b, long c)
{
	long ret;

	asm volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return ret;
}

enum { SYS_fork = 57, SYS_prctl = 157, PR_SET_NAME = 15 };

static volatile u64 sink;

/* Spin here: a macro, so that the time is the function's own. */
#define work(rounds) do {									\
	u64 x = sink;										\
												\
	for (u64 i = 0; i < (rounds); i++)							\
		x = x * 6364136223846793005UL + 1442695040888963407UL;				\
	sink = x;										\
} while (0)

#define NOINLINE __attribute__((noinline, noipa))

namespace json {

static inline __attribute__((always_inline)) void skip_space()
{
	work(30000);
}

struct Parser {
	NOINLINE void parse_string() { work(60000); }
	NOINLINE void parse_number() { work(20000); }
	NOINLINE void parse_value(int depth);
	NOINLINE void parse_object(int depth);
};

void Parser::parse_value(int depth)
{
	skip_space();
	if (depth)
		parse_object(depth - 1);
	else
		parse_number();
	sink++;
}

void Parser::parse_object(int depth)
{
	parse_string();
	work(15000);
	parse_value(depth);
	sink++;
}

} // namespace json

namespace shop {

template <typename Key, typename Value> struct Index {
	NOINLINE void insert(Key key, Value value)
	{
		work(40000 + (u64)key + (u64)value);
	}
};

NOINLINE void checksum() { work(90000); }

NOINLINE void create_order()
{
	json::Parser parser;
	Index<int, u64> index;

	parser.parse_object(2);
	index.insert(1, 2);
	sink++;
}

NOINLINE void update_cart()
{
	json::Parser parser;

	parser.parse_object(0);
	checksum();
	sink++;
}

NOINLINE void rebuild_index()
{
	Index<int, u64> index;

	for (int i = 0; i < 8; i++)
		index.insert(i, 0);
	checksum();
	sink++;
}

NOINLINE void serve()
{
	create_order();
	update_cart();
	sink++;
}

} // namespace shop

extern "C" NOINLINE int main()
{
	bool child = !call(SYS_fork, 0, 0, 0);
	bool indexer = !child && !call(SYS_fork, 0, 0, 0);

	call(SYS_prctl, PR_SET_NAME, (long)(indexer ? "indexer" : child ? "worker-1" : "worker-0"), 0);
	for (;;) {
		if (indexer)
			shop::rebuild_index();
		else
			shop::serve();
	}
}

/* The end of the stack: no caller, which the undefined return address says. */
asm(".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "	.cfi_startproc\n"
    "	.cfi_undefined rip\n"
    "	xor %ebp, %ebp\n"
    "	call main\n"
    "	hlt\n"
    "	.cfi_endproc\n"
    ".size _start, . - _start\n");
