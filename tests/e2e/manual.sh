#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# proftop(1) has every option and every key of the program, and mandoc has nothing to say about it;
# the screens in it and in the README equal the program's output.
. "$(dirname "$0")/lib"

page=$HERE/../../doc/proftop.1
"$PROFTOP" --help >"$TMP/help" || wrong "--help: exit $?"
grep -oE -e '--[a-z][a-z-]*' "$TMP/help" | sort -u | while read -r option; do
	grep -qF -e "$(echo "${option#--}" | sed 's/-/\\-/g')" "$page" || echo "proftop(1) has no $option"
done >"$TMP/missing"
"$PROFTOP" --list-keys | sed -n 's/^  .*[^ ]  \+//p' | while read -r what; do
	grep -qxF -e "$what" "$page" || echo "proftop(1) has no key: $what"
done >>"$TMP/missing"
[ -s "$TMP/missing" ] && wrong "$(cat "$TMP/missing")"
if [ "$(uname -m)" = x86_64 ]; then
	B=$B "$HERE/../screens" check >"$TMP/screens" 2>&1 ||
		wrong "not the screens of this program (make screens): $(head -40 "$TMP/screens")"
fi
if command -v mandoc >/dev/null; then
	mandoc -T lint "$page" 2>/dev/null >"$TMP/lint"
	[ -s "$TMP/lint" ] && wrong "$(cat "$TMP/lint")"
fi
finish
