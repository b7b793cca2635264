// SPDX-License-Identifier: GPL-2.0-or-later
/* small_asm: spin in a short assembler function, the only one of the program without tables. It has
 * a label with a symbol, and no size. */
void spin(long n);
#if defined(__x86_64__)
__asm__(".text\n.p2align 4\n.globl spin\n.type spin,@function\nspin:\n	push %rbx\n"
	"	push %r12\n	mov %rdi, %rbx\nagain:	dec %rbx\n	jnz again\n	pop %r12\n"
	"	pop %rbx\n	.fill 25, 1, 0x90\n	ret\n");
#else
void spin(long n)
{
	while (n--)
		__asm__ volatile("");
}
#endif

static __attribute__((noinline, noclone)) void caller(void)
{
	spin(3000);
	__asm__ volatile("");
}

int main(void)
{
	for (;;)
		caller();
}
