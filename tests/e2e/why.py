# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows without a name: the reason and the fix that m shows, of real programs; stacks with guessed frames: the code. For
root, and for a user with the right to sample but not to read other users' files.
"""
import os
import re
import subprocess
import sys
import time

import names
from names import Missing, hot, path, sh, start

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+perfmon", "--ambient-caps=+perfmon"]


def screen(process, keys, user, options=()):
    done = subprocess.run([*user, names.PROFTOP, "-p", str(process.pid), "-d", "0.3", "--size=200x45", f"--script={keys}", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, cwd="/")
    if done.returncode:
        names.wrong(f"exit {done.returncode}: {done.stderr}")
    return done.stdout


def expect(what, process, why, fix, user=(), first="", options=()):
    """The reason and the fix of the row on top, as its menu begins them; on a full machine after more ticks."""
    for ticks in 3, 10, 30:
        menu = screen(process, first + "<tick>" * ticks + "m", user, options)
        said = re.search(r"why it has no name +(\S.*?) *│", menu)
        helps = re.search(r"how to fix it +(\S.*?) *│", menu)
        if said and helps and said.group(1).startswith(why) and fix in helps.group(1):
            print(f"{what:<28} {said.group(1):<42} {helps.group(1)}")
            return
    names.wrong(f"{what}: no '{why}' or no '{fix}' in\n{menu}")


def expect_guesses(what, process, of):
    """The message about guessed callers names their code."""
    for ticks in 3, 10, 30:
        messages = screen(process, "<tick>" * ticks + "7", ())
        if f"most callers of {of}" in messages:
            print(f"{what:<28} most callers of {of}")
            return
    names.wrong(f"{what}: no 'most callers of {of}' in\n{messages}")


def stripped(comm, *flags):
    hot(comm, *flags)
    sh("strip", path(comm))
    return path(comm)


def main():
    os.chmod(names.TMP, 0o755)
    expect("stripped", start(stripped("stripped")), "stripped: ", "install its debug symbols")
    jit = start(f"{names.PROGRAMS}/jitmap", comm="jit")
    expect("JIT code without a map", jit, "JIT code without a perf map", "have its JIT write a perf map")
    expect_guesses("callers of JIT code", jit, "code generated at run time")
    try:
        names.need("node")
        node = start("node", "-e", "let x = 1; for (;;) x = (x * 31) | 0;")
        time.sleep(0.5)
        expect("node without its switch", node, "JIT code without a perf map", "start it with: node --perf-basic-prof",
               options=["--languages=none"])
        node.kill()
    except Missing as e:
        print(f"node without its switch: {e}")
    try:
        sh(*NOBODY, "true")
    except Missing as e:
        print(e)
        names.finish()
    if screen(start(hot("mine")), "<tick>", NOBODY) == "":
        print("no CAP_PERFMON for others here")
        names.finish()
    secret = hot("secret")
    os.chmod(secret, 0o700)
    expect("no permission", start(secret), "no permission", "run proftop as root", NOBODY)
    gone = start(hot("gone"))
    time.sleep(0.1)
    os.unlink(path("gone"))
    expect("deleted and gone", gone, "file is gone", "run proftop as root", NOBODY)
    if names.has_mount_namespace():
        os.rename(hot("elsewhere"), path("file"))
        other = start("unshare", "-m", "sh", "-ec", f"cd {names.TMP}; mkdir t; mount -t tmpfs none t; cp file t/elsewhere; exec t/elsewhere")
        time.sleep(0.3)
        expect("in another mount namespace", other, "file is gone, or in another mount", "run proftop as root", NOBODY)
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        hidden = int(f.read()) > 1
    if hidden:
        # The row on top shall be the kernel's.
        expect("kptr_restrict", start(hot("kernel", "-DKERNEL")), "kernel addresses are hidden",
               "run proftop as root", NOBODY, "U")
    names.finish()


main()
