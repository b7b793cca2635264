#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# perf 7.2 reads nothing of a pipe in which perf 6.1 has put build ids.
#
# Version: linux-perf 6.1.176-1 (perf record, perf inject) and 7.2.13-1 (perf script), x86-64.
# Behaviour: "perf inject -b" of 6.1 writes a build id as a record of 36 bytes and a name padded to 64: 100 bytes, no
# multiple of 8. perf 6.1 reads it back; 7.2 ends at the first one, before all samples that follow. In a file, whose
# header has the build ids, 7.2 reads records of that size.
# Seen (samples by 6.1, by 7.2, and its message):
#   6.1: all
#   7.2: 0
#   ERROR: BUILD_ID (67) event size 100 is not 8-byte aligned, aborting
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
export LC_ALL=C

apt-get -qq -o APT::Sandbox::User=root download linux-perf=6.1.176-1
dpkg-deb -x linux-perf_*.deb old
# Debian sid, from where this machine has its packages, with a list of packages of its own.
uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/$' | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri sid main" >sid.list
mkdir -p lists/partial cache/archives/partial new
sid() {
	apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$t/sid.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$t/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$t/cache" \
		-o Acquire::Check-Valid-Until=false "$@"
}
sid update
sid install -d -y --no-install-recommends linux-perf=7.2.13-1 >/dev/null
for d in cache/archives/*.deb; do dpkg-deb -x "$d" new; done

printf 'int main(void) { for (volatile long i = 0; i < 3000000000; i++); return 0; }\n' >busy.c
cc busy.c -o busy
old/usr/bin/perf record -q -F 299 -e cpu-clock:u -o - -- ./busy 2>/dev/null |
	old/usr/bin/perf inject -b -i - -o - >piped
nr=$(old/usr/bin/perf script -i - <piped 2>/dev/null | grep -c busy)
libs=$PWD/new/usr/lib/x86_64-linux-gnu
"$libs/ld-linux-x86-64.so.2" --library-path "$libs" new/usr/bin/perf script -i - <piped >out 2>err || true
{
	[ "$nr" -gt 20 ] && echo "6.1: all"
	echo "7.2: $(grep -c busy out || true)"
	sed -n 's/^ERROR: at offset 0x[0-9a-f]*: /ERROR: /p' err
} | tee seen
cat >want <<'W'
6.1: all
7.2: 0
ERROR: BUILD_ID (67) event size 100 is not 8-byte aligned, aborting
W
cmp want seen
