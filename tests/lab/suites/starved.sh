# SPDX-License-Identifier: GPL-2.0-or-later
# One CPU that is busy, and too slow for the rate: names are read, the rate is lowered, one line says so.
. ./guest.sh
start recurse 6000
start recurse 6000
ticks "starved" starved -n "${STARVED_TICKS:-30}" -d 1 -F 20000 -e cpu-clock
proftop -F 2000 -e cpu-clock --size=80x24 --script='<tick> <tick> <tick> <tick> <tick> <tick> <tick> <tick> <tick> <tick>' >/tmp/screen 2>/tmp/err || wrong "screen: $(cat /tmp/err)"
cat /tmp/screen
finish
