// SPDX-License-Identifier: GPL-2.0-or-later
/* The status that goes with a profile: a notice does not hide the answer to a request. */
#include "tests/prelude.h"

#include "sampler/internal.h"

TEST(test_answer_and_notice)
{
	struct mailbox m = { .past_fd = -1 };
	char text[sizeof(m.status)];
	uint32_t seq;

	mailbox_say(&m, "rings of %d KiB", 64);
	mailbox_add(&m, "no real-time priority\nof the reader");
	seq = mailbox_status(&m, text);
	assert_string_equal(text, "rings of 64 KiB; no real-time priority");
	/* With no profile between them, the newer answer is the one that counts. */
	mailbox_say(&m, "499 Hz");
	mailbox_say(&m, "999 Hz");
	assert_int_not_equal(mailbox_status(&m, text), seq);
	assert_string_equal(text, "999 Hz");
	/* A status is not repeated. */
	mailbox_add(&m, "symbols were fetched");
	mailbox_status(&m, text);
	assert_string_equal(text, "symbols were fetched");
	seq = mailbox_status(&m, text);
	assert_int_equal(mailbox_status(&m, text), seq);
}

TEST(test_full)
{
	struct mailbox m = { .past_fd = -1 };
	char text[sizeof(m.status)], word[200];

	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	for (int i = 0; i < 5; i++)
		mailbox_add(&m, "%s\033", word);
	mailbox_status(&m, text);
	assert_in_range(strlen(text), 200, sizeof(text) - 1);
	assert_memory_equal(text, word, strlen(word));
	assert_null(strchr(text, '\033'));
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
