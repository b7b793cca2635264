#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Behind sudo: recordings, saved screens, settings and the editor have the rights of the caller. With capabilities: no
# core file, for memory of others is in it.
. "$(dirname "$0")/lib"
need_perf
need cc

chmod 755 "$TMP"
mkdir -m 777 "$TMP/theirs"
mkdir -m 755 "$TMP/ours"
export SUDO_UID=65534 SUDO_GID=65534

# owner FILE: it is of the caller.
owner() {
	[ "$(stat -c %u "$1" 2>/dev/null)" = 65534 ] || wrong "$1: of $(stat -c %u "$1" 2>&1)"
}

# Below $TMP, where the caller may read the source.
cp "$HERE/../programs/spin.c" "$TMP/spin.c"
cc -g -O2 -pthread -o "$TMP/spin" "$TMP/spin.c"
start "$TMP/spin" 1
spin=$last
run -b -n 1 -d 1 -p "$spin" --record="$TMP/theirs/data"
[ "$rc" = 0 ] || wrong "--record: exit $rc: $(cat "$TMP/err")"
owner "$TMP/theirs/data"
run --replay "$TMP/theirs/data" -b
grep -q burn "$TMP/out" || wrong "the recording has no burn"
expect 3 'Permission denied' -b -n 1 -d 0.2 -p "$spin" --record="$TMP/ours/data"
grep -q 'SUDO_UID' "$TMP/err" || wrong "--record: $(cat "$TMP/err")"

run -b -n 1 -d 0.2 -p "$spin" --export="$TMP/theirs/export.folded"
[ "$rc" = 0 ] || wrong "--export: exit $rc: $(cat "$TMP/err")"
owner "$TMP/theirs/export.folded"
expect 3 'Permission denied' -b -n 1 -d 0.2 -p "$spin" --export="$TMP/ours/export.folded"
[ -z "$(ls "$TMP/ours")" ] || wrong "--export: made $(ls "$TMP/ours")"

mkdir -m 700 "$TMP/theirs/keep"
expect 3 'Permission denied' -b -n 1 -d 0.2 -p "$spin" --keep="$TMP/theirs/keep"
chown 65534 "$TMP/theirs/keep"
run -b -n 3 -d 1 -p "$spin" --keep="$TMP/theirs/keep"
[ "$rc" = 0 ] || wrong "--keep: exit $rc: $(cat "$TMP/err")"
owner "$TMP/theirs/keep/00000001.keep"
run --open "$TMP/theirs/keep" -b
grep -q burn "$TMP/out" || wrong "the kept samples have no burn: $(cat "$TMP/out" "$TMP/err")"
run -b -n 3 -d 0.2 -p "$spin" --keep="$TMP/ours"
[ -z "$(ls "$TMP/ours")" ] || wrong "--keep: made $(ls "$TMP/ours")"

# Root without the power to change its user writes nothing.
if command -v setpriv >/dev/null; then
	setpriv --bounding-set=-setuid --inh-caps=-setuid "$PROFTOP" -b -n 1 -d 0.2 -p "$spin" \
		--export="$TMP/theirs/refused.folded" >"$TMP/out" 2>"$TMP/err" && wrong "written without CAP_SETUID"
	grep -q 'cannot take the rights of the invoking user 65534' "$TMP/err" || wrong "no CAP_SETUID: $(cat "$TMP/err")"
	[ ! -e "$TMP/theirs/refused.folded" ] || wrong "written as $(stat -c %u "$TMP/theirs/refused.folded")"
fi

run -p "$spin" -d 0.2 --script=":screen $TMP/theirs/screen<enter><tick><tick>"
owner "$TMP/theirs/screen"
run -p "$spin" -d 0.2 --script=":screen $TMP/ours/screen<enter><tick><tick>"
[ ! -e "$TMP/ours/screen" ] || wrong ":screen: made a file that the caller may not make"

# The program of a probe is one that the caller may read.
cp "$TMP/spin" "$TMP/ours/spin"
expect 2 'no function' -b -n 1 -d 0.2 -e "uprobe:$TMP/ours/spin:no_such_function"
chmod 700 "$TMP/ours/spin"
expect 2 'Permission denied' -b -n 1 -d 0.2 -e "uprobe:$TMP/ours/spin:no_such_function"
rm "$TMP/ours/spin"

# libcurl would make this file as root.
export SSLKEYLOGFILE="$TMP/ours/keys"
run -b -n 1 -d 0.2 -- sh -c "env >$TMP/env"
grep -q '^PATH=' "$TMP/env" || wrong "no environment of a command"
grep -q SSLKEYLOGFILE "$TMP/env" && wrong "SSLKEYLOGFILE is known behind sudo"
unset SSLKEYLOGFILE

# libdebuginfod makes files in the cache, which is of the caller: with root's rights it would follow this link.
if python3 -c 'import ctypes; ctypes.CDLL("libdebuginfod.so.1")' 2>/dev/null; then
	mkdir -m 700 "$TMP/roots"
	mkdir "$TMP/empty"
	# No server has the file.
	python3 -u -m http.server -b 127.0.0.1 -d "$TMP/empty" 0 >"$TMP/port" 2>"$TMP/requests" &
	server=$!
	i=0
	while ! grep -q 'port [0-9]' "$TMP/port" && [ $((i += 1)) -lt 600 ]; do sleep 0.05; done
	DEBUGINFOD_URLS="http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$TMP/port")"
	export DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH="$TMP/theirs/cache" no_proxy=127.0.0.1
	# Until there was time for the request.
	for nr in 4 12 40; do
		ticks=$(printf '<tick>%.0s' $(seq $nr))
		rm -rf "$TMP/theirs/cache"
		mkdir "$TMP/theirs/cache"
		ln -s "$TMP/roots/file" "$TMP/theirs/cache/cache_clean_interval_s"
		chown 65534 "$TMP/theirs/cache"
		run -p "$spin" -d 0.5 --script="<tick><tick>6D$ticks"
		[ -z "$(ls "$TMP/roots")" ] || wrong "D: made $(ls -ln "$TMP/roots")"
		rm "$TMP/theirs/cache/cache_clean_interval_s"
		run -p "$spin" -d 0.5 --script="<tick><tick>6D$ticks"
		! grep -q 'GET /buildid' "$TMP/requests" || [ ! -f "$TMP/theirs/cache/cache_clean_interval_s" ] || break
	done
	grep -q 'GET /buildid' "$TMP/requests" || wrong "D: no request: $(cat "$TMP/out" "$TMP/err")"
	[ -f "$TMP/theirs/cache/cache_clean_interval_s" ] || wrong "D: no cache: $(ls -ln "$TMP/theirs/cache")"
	[ -z "$(find "$TMP/theirs/cache" ! -user 65534)" ] || wrong "D: of others: $(find "$TMP/theirs/cache" ! -user 65534 -ls)"
	kill "$server"
	unset DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH
fi

cat >"$TMP/editor" <<'END'
#!/bin/sh
{ id -u; id -G; sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status; echo "$HOME"; } >"$1.tmp" && mv "$1.tmp" "$1"
END
chmod 755 "$TMP/editor"
EDITOR="$TMP/editor $TMP/theirs/edited" VISUAL= python3 "$HERE/invoker.py" "$PROFTOP" -p "$spin" -d 0.3 || wrong "no screen"
[ "$(sed -n '1p;2p;3p' "$TMP/theirs/edited" 2>/dev/null | tr '\n' ' ')" = "65534 65534 0000000000000000 " ] ||
	wrong "the editor runs as: $(cat "$TMP/theirs/edited" 2>&1)"
grep -q "^$(sed -n 's/^[^:]*:[^:]*:65534:[^:]*:[^:]*:\([^:]*\):.*/\1/p' /etc/passwd | head -n 1)$" "$TMP/theirs/edited" ||
	wrong "HOME of the editor: $(sed -n 4p "$TMP/theirs/edited")"

# A core file would be written here.
if [ "$(cat /proc/sys/kernel/core_pattern)" = core ] && (ulimit -c unlimited) 2>/dev/null; then
	mkdir "$TMP/core"
	cd "$TMP/core" || exit 1
	ulimit -c unlimited
	start "$PROFTOP" -b -d 0.2 >"$TMP/out" 2>&1
	i=0
	while [ ! -s "$TMP/out" ] && [ $((i += 1)) -lt 600 ]; do sleep 0.05; done
	kill -SEGV "$last"
	wait "$last" 2>/dev/null
	[ -z "$(ls -A)" ] || wrong "a core file of a process with capabilities"
	cd / || exit 1
fi
finish
