// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sanitiser under random bytes. FUZZ: symbols
 * Oracle: valid UTF-8, no control or zero-width bytes, bounded, idempotent,
 * width as clip counts it.
 */
#include "symbols/base/text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char buf[TEXT_MAX + 1], again[TEXT_MAX + 1];
	struct safe_text t, t2;
	size_t room, kept;
	unsigned int width;

	if (size < 2)
		return 0;
	room = 1 + (data[0] | data[1] << 8) % sizeof(buf);
	t = text_sanitise(buf, room, data + 2, size - 2);
	REQUIRE(t.size < room && strlen(t.str) == t.size);
	for (size_t i = 0; i < t.size; i++)
		REQUIRE((unsigned char)t.str[i] >= 0x20 && t.str[i] != 0x7f);
	t2 = text_sanitise(again, sizeof(again), t.str, t.size);
	REQUIRE(t2.size == t.size && t2.width == t.width && !memcmp(t.str, t2.str, t.size));
	kept = text_clip(t, data[0] % 80u, &width);
	REQUIRE(kept <= t.size && width <= data[0] % 80u);
	t2 = text_sanitise(again, sizeof(again), t.str, kept);
	REQUIRE(t2.size == kept && t2.width == width);
	return 0;
}
