# SPDX-License-Identifier: GPL-2.0-or-later
"""Work for tests of Python frames: python_work.py KIND SECONDS [TRUTH.so FILE]"""
import asyncio
import ctypes
import json
import re
import sys
import threading
import time


def leaf(x):
    return x + 1


def small(x):
    return leaf(x) * 2


def middle(x):
    return small(x) + leaf(x)


def calls():
    for i in range(300):
        middle(i)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def rec():
    fib(11)


def by_key(x):
    return -x


def replaced(m):
    return leaf(len(m.group())) and "x"


def cext():
    sorted(range(60), key=by_key)
    re.sub("[ab]+", replaced, "aabbc" * 10)
    list(map(small, range(20)))
    sum(filter(leaf, range(20)))


def real():
    text = json.dumps({"a": list(range(30)), "b": {"c": "d" * 20}}, indent=1)
    json.loads(text)
    compile("a = b + c * %d" % len(text), "<made>", "exec")


def numbers(n):
    for i in range(n):
        yield leaf(i)


def outer(n):
    yield from numbers(n)


async def wait_a_little(n):
    await asyncio.sleep(0)
    return sum(outer(n))


async def many():
    await asyncio.gather(*[wait_a_little(5) for _ in range(5)])


def gen():
    sum(outer(50))
    asyncio.run(many())


def fail(n):
    if n:
        return fail(n - 1)
    raise ValueError(n)


def raises():
    for i in range(5):
        try:
            fail(i)
        except ValueError:
            small(i)


def churn():
    space = {}
    for i in range(5):
        exec("def made_%d(x):\n    y = x\n    for i in range(50): y += i\n    return y\n" % i, space)
        space["made_%d" % i](i)


class Thing:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Thing(leaf(self.x + other.x))

    def __lt__(self, other):
        return self.x < other.x

    @property
    def size(self):
        return small(self.x)

    def __getattr__(self, name):
        return name


def methods():
    things = [Thing(i % 7) for i in range(20)]
    sorted(things)
    total = Thing(0)
    for t in things:
        total = total + t
        t.size
        t.missing


def threads(seconds):
    def run():
        end = time.time() + seconds
        while time.time() < end:
            calls()
            rec()

    pool = [threading.Thread(target=run) for _ in range(4)]
    for t in pool:
        t.start()
    for t in pool:
        t.join()


def greenlets(seconds):
    import greenlet

    end = time.time() + seconds

    def run(work):
        while time.time() < end:
            work()
            main.switch()

    # One starts on top of another one, and goes on after that has ended.
    def begin(rest):
        if rest:
            waiting.append(greenlet.greenlet(begin))
            waiting[-1].switch(rest[1:])
            run(rest[0])

    def resume():
        for g in waiting:
            if not g.dead:
                g.switch()

    main = greenlet.getcurrent()
    waiting = [greenlet.greenlet(begin)]
    waiting[0].switch([calls, rec, cext, methods])
    while time.time() < end:
        resume()


WORK = [calls, rec, cext, real, gen, raises, churn, methods]


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    if len(sys.argv) > 4:
        if ctypes.PyDLL(sys.argv[3]).truth_start(sys.argv[4].encode()):
            sys.exit("no truth")
    print("ready", flush=True)
    if kind == "threads":
        return threads(seconds)
    if kind == "greenlets":
        return greenlets(seconds)
    work = [f for f in WORK if kind in (f.__name__, "all")]
    end = time.time() + seconds
    while time.time() < end:
        for f in work:
            f()


if __name__ == "__main__":
    main()
