#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# proftop(1) has the lists of options and keys that the program prints, and mandoc has nothing to say about
# it; the screens in it and in the README equal the program's output.
. "$(dirname "$0")/lib"

page=$HERE/../../doc/proftop.1
cp "$page" "$TMP/page"
"$HERE/../../doc/man-lists" "$PROFTOP" "$TMP/page" || wrong "doc/man-lists: exit $?"
diff "$page" "$TMP/page" >"$TMP/lists" || wrong "not the options and keys of this program (make man): $(cat "$TMP/lists")"
if [ "$(uname -m)" = x86_64 ]; then
	B=$B "$HERE/../screens" check >"$TMP/screens" 2>&1 ||
		wrong "not the screens of this program (make screens): $(head -40 "$TMP/screens")"
fi
awk 'length > 80 && !/^\.(Ql|Dl)/ { print FILENAME ":" FNR ": more than 80 columns of text" }' "$page" >"$TMP/long"
[ -s "$TMP/long" ] && wrong "$(cat "$TMP/long")"
if command -v mandoc >/dev/null; then
	# Which other pages a machine has is not a matter of this one.
	mandoc -T lint "$page" 2>/dev/null | grep -v "referenced manual not found" >"$TMP/lint"
	[ -s "$TMP/lint" ] && wrong "$(cat "$TMP/lint")"
fi
finish
