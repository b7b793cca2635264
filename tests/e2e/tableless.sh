#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows derived from instructions, against the unwind tables of this machine's libraries, which the
# derivation does not get; at each instruction. `make truth-tableless` does it for more files.
set -u
B=${B:-build/release}
dir=$(dirname "$(ldd "$B/proftop" | awk '/libm\.so/ {print $3}')")

files=
for lib in libm.so.6 libgcc_s.so.1; do
	[ -e "$dir/$lib" ] && files="$files $dir/$lib"
done
[ -n "$files" ] || { echo "not on this machine: libm.so.6"; exit 77; }
# shellcheck disable=SC2086
exec "$B/tests/tools/derivetruth" $files
