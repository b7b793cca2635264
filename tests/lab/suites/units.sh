# SPDX-License-Identifier: GPL-2.0-or-later
# The unit programs, on this kernel and architecture. Those of a rate or a time are not: an emulated CPU is too slow.
. ./guest.sh
cd /src || exit 1
for program in $(find /units -name 'test_*'); do
	name=${program#/units/}
	case $name in
	*/test_controls | */test_term_guard | */test_speed) continue ;;
	esac
	timeout 900 "$program" >/tmp/out 2>&1
	status=$?
	if [ $status = 0 ]; then
		ok "$name"
	elif [ $status = 77 ]; then
		skip "$name: not for this architecture"
	else
		wrong "$name: exit $status: $(grep -aE '\[  (ERROR|FAILED|  LINE)' /tmp/out | head -n 4 | tr '\n' ' ')"
	fi
done
finish
