#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Live: stacks larger than the copies and the fix; every sample verified by libunwind; programs with
# spoilt unwind tables beside an honest one.
. "$(dirname "$0")/lib"
need_perf
need tmux

export B
# Frames whose size changes all the time: the rest of their stacks is not read in time.
start "$PROGRAMS/truth_chain" alloca 600
changes=$last
python3 "$HERE/screen.py" copies "$changes" || bad=1
start "$PROGRAMS/truth_chain" buried 600
python3 "$HERE/unwinding.py" copies "$changes" "$last" || bad=1

# The truth programs, a script and exceptions, each sample twice.
start "$PROGRAMS/truth_throw" 600
start python3 -c 'while True: sorted(str(i) for i in range(999))'
python3 "$HERE/unwinding.py" verified || bad=1
for pid in $pids; do kill -KILL "$pid"; done
pids=

python3 "$HERE/spoil.py" "$PROGRAMS/truth_chain" "$TMP/flips" flips
python3 "$HERE/spoil.py" "$PROGRAMS/truth_chain" "$TMP/dear" dear
printf '%s\n' '#!/bin/sh' "'$TMP/flips' deep 90 & echo \$! >'$TMP/pids'" "'$TMP/dear' tail 90 & echo \$! >>'$TMP/pids'" \
	"'$PROGRAMS/truth_chain' chain 90 & echo \$! >>'$TMP/pids'" wait >"$TMP/all"
chmod +x "$TMP/all"
run_until 'len(ticks) >= 4 and min(comms[c] for c in ("t_chain", "t_deep", "t_tail")) >= 100' -d 0.4 -F 999 -e cpu-clock --rows=0 \
	--record "$TMP/data" -- "$TMP/all"
pids="$pids $(cat "$TMP/pids")"
[ "$rc" = 0 ] || wrong "beside hostile tables: exit $rc: $(cat "$TMP/err")"
"$B/tests/tools/chains" "$TMP/data" >"$TMP/chains" || wrong "chains"
python3 "$HERE/unwinding.py" hostile "$TMP/chains" || bad=1
finish
