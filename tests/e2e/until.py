# SPDX-License-Identifier: GPL-2.0-or-later
"""until.py EXPRESSION PROFTOP OPTIONS...: print the ticks of `proftop -b --format=ndjson OPTIONS` until the Python
expression holds, 60 s at most. It knows all ticks, the samples taken, and self samples by comm. A test takes the samples
that it needs, however long that takes. Exit status of proftop; 0 if it was ended here."""
import collections
import json
import signal
import subprocess
import sys
import time

PATIENCE = 60


def main():
    expression, *command = sys.argv[1:]
    ticks, taken, comms = [], 0, collections.Counter()
    end = time.monotonic() + PATIENCE
    ended = False
    with subprocess.Popen([command[0], "-b", "--format=ndjson", *command[1:]], stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            sys.stdout.write(line)
            if ended:
                continue
            ticks.append(json.loads(line))
            taken += ticks[-1]["account"]["taken"]
            for row in ticks[-1]["rows"]:
                comms[row["comm"]] += row["self"]
            if time.monotonic() > end or eval(expression, {"ticks": ticks, "taken": taken, "comms": comms}):
                p.send_signal(signal.SIGINT)
                ended = True
    return 0 if ended and p.returncode == 128 + signal.SIGINT else p.returncode


sys.exit(main())
