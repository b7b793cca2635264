/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Freeing what readers may still see: call_rcu() of urcu-qsbr.
 *
 * ThreadSanitizer does not see liburcu's barriers. A reader that says
 * reclaim_reader_done() before rcu_quiescent_state() (or going offline) makes
 * the grace period visible to it; without a sanitizer both are nothing.
 */
#ifndef SYMBOLS_RECLAIM_H
#define SYMBOLS_RECLAIM_H

#include <urcu-qsbr.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define reclaim_reader_done() __tsan_release(&urcu_qsbr_gp)
#define reclaim_grace_over()  __tsan_acquire(&urcu_qsbr_gp)
#else
#define reclaim_reader_done() ((void)0)
#define reclaim_grace_over()  ((void)0)
#endif

#endif
