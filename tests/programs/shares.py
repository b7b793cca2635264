# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of known shares: shares.py KIND SECONDS FILE; KIND: plain, threads, async. See tests/runtimes."""
import asyncio
import json
import sys
import threading
import time

spent = {"alpha": 0, "beta": 0, "gamma": 0}
lock = threading.Lock()


def never_called():
    return 1


def inner(s, i):
    return (s * 31 + i) & 0xFFFFFF


def alpha():
    s = 0
    for i in range(6000):
        s = inner(s, i)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def beta():
    fib(13)


def by_key(x):
    return -x


def gamma():
    sorted((i * 7 % 1000 for i in range(3000)), key=by_key)


def timed(name, function):
    begin = time.thread_time_ns()
    function()
    with lock:
        spent[name] += time.thread_time_ns() - begin


def work_round(clock):
    for name, function in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        timed(name, function)


def run(clock):
    end = clock() + float(sys.argv[2])
    while clock() < end:
        work_round(clock)
        tell()


async def task(name, function):
    await asyncio.sleep(0)
    timed(name, function)


async def run_async():
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        await asyncio.gather(task("alpha", alpha), task("beta", beta), task("gamma", gamma))
        tell()


told = open(sys.argv[3], "w", buffering=1)


def tell():
    with lock:
        told.write(json.dumps(spent) + "\n")


if sys.argv[1] == "async":
    asyncio.run(run_async())
elif sys.argv[1] == "threads":
    threads = [threading.Thread(target=run, args=(time.monotonic,)) for _ in range(2)]
    for thread in threads:
        thread.start()
else:
    run(time.monotonic)
