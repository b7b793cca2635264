#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Live: stacks larger than the copies and the fix; every sample verified by libunwind; programs with
# spoilt unwind tables beside an honest one.
. "$(dirname "$0")/lib"
need_perf
need tmux

export B
start "$PROGRAMS/truth_chain" buried 60
python3 "$HERE/screen.py" dumps "$last" || bad=1
python3 "$HERE/unwinding.py" dumps "$last" || bad=1

# The truth programs, a script and exceptions, each sample twice.
start "$PROGRAMS/truth_throw" 60
start python3 -c 'while True: sorted(str(i) for i in range(999))'
python3 "$HERE/unwinding.py" verified || bad=1
for pid in $pids; do kill -KILL "$pid"; done
pids=

python3 "$HERE/spoil.py" "$PROGRAMS/truth_chain" "$TMP/flips" flips
python3 "$HERE/spoil.py" "$PROGRAMS/truth_chain" "$TMP/dear" dear
printf '%s\n' '#!/bin/sh' "'$TMP/flips' deep 1.5 &" "'$TMP/dear' tail 1.5 &" "'$PROGRAMS/truth_chain' chain 1.5 &" wait >"$TMP/all"
chmod +x "$TMP/all"
run -b -d 1 -F 999 -e cpu-clock --rows=1 --record "$TMP/data" -- "$TMP/all"
[ "$rc" = 0 ] || wrong "beside hostile tables: exit $rc: $(cat "$TMP/err")"
"$B/tests/tools/chains" "$TMP/data" >"$TMP/chains" || wrong "chains"
python3 "$HERE/unwinding.py" hostile "$TMP/chains" || bad=1
finish
