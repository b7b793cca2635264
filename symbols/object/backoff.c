// SPDX-License-Identifier: GPL-2.0-or-later
/* File systems that do not answer. Runs on: the loader. */
#include "symbols/object/backoff.h"

#include <stddef.h>

/* Find the device, or add it; NULL for 0:0, or when the table is full. */
static struct device *find(struct backoff *d, uint32_t maj, uint32_t min, bool add)
{
	struct device *free_one = NULL;

	if (!maj && !min)
		return NULL;
	for (unsigned int i = 0; i < d->nr; i++) {
		struct device *dev = &d->list[i];

		if (dev->maj == maj && dev->min == min)
			return dev;
		if (!dev->nr_slow && !dev->until_ns)
			free_one = dev;
	}
	if (!add)
		return NULL;
	if (d->nr < BACKOFF_MAX)
		free_one = &d->list[d->nr++];
	if (free_one)
		*free_one = (struct device){ .maj = maj, .min = min };
	return free_one;
}

/*
 * Test for a device with an entry that others cannot take. Real disks have a major number; half of
 * the entries are for them and for devices that answered before: the hanging mounts of one
 * user take entries only from such mounts.
 */
static bool is_trusted(const struct device *dev, uint32_t maj)
{
	return maj || (dev && dev->answered);
}

uint64_t backoff_rest(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns)
{
	const struct device *dev = find(d, maj, min, false);

	if (d->nr_slow >= BACKOFF_SLOW_MAX ||
	    (d->nr_slow >= BACKOFF_SLOW_MAX / 2 && !is_trusted(dev, maj)))
		return now_ns + BACKOFF_REST_MIN_NS;
	if (!dev)
		return 0;
	if (dev->until_ns > now_ns)
		return dev->until_ns;
	return dev->nr_slow >= BACKOFF_SLOW_EACH ? now_ns + MAX(dev->rest_ns, BACKOFF_REST_MIN_NS)
						 : 0;
}

void backoff_hang(struct backoff *d, uint32_t maj, uint32_t min, uint64_t now_ns)
{
	struct device *dev = find(d, maj, min, true);

	d->nr_slow++;
	if (!dev)
		return;
	dev->nr_slow++;
	dev->rest_ns = MIN(MAX(dev->rest_ns * 2, BACKOFF_REST_MIN_NS), BACKOFF_REST_MAX_NS);
	dev->until_ns = now_ns + dev->rest_ns;
}

bool backoff_ended(struct backoff *d, uint32_t maj, uint32_t min, bool slow)
{
	struct device *dev = find(d, maj, min, true);
	bool rested = dev && dev->until_ns;

	if (slow && d->nr_slow)
		d->nr_slow--;
	if (!dev)
		return false;
	if (slow && dev->nr_slow)
		dev->nr_slow--;
	dev->answered = true;
	dev->rest_ns = dev->until_ns = 0;
	return rested;
}

void backoff_cancelled(struct backoff *d, uint32_t maj, uint32_t min)
{
	struct device *dev = find(d, maj, min, false);

	if (d->nr_slow)
		d->nr_slow--;
	if (dev && dev->nr_slow)
		dev->nr_slow--;
}
