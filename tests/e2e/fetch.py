# SPDX-License-Identifier: GPL-2.0-or-later
"""Debug symbols from debuginfod, on the screen: the setting without a server, progress, cancel,
an object that no server has, and one that is fetched: its row gets its name and its inlined functions.
"""
import http.server
import os
import re
import sys
import threading
import time

import names
from names import build_id, hot, path, sh
from screen import Terminal

wanted = {}
slow = threading.Event()
asked = []


class Server(http.server.BaseHTTPRequestHandler):
    """/buildid/ID/debuginfo; slowly, when @slow is set."""

    def do_GET(self):
        asked.append(self.path)
        file = wanted.get(self.path)
        if not file:
            self.send_error(404)
            return
        with open(file, "rb") as f:
            data = f.read()
        # Large enough for a progress message.
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for at in range(0, len(data), 16384):
            if slow.is_set():
                time.sleep(0.1)
            try:
                self.wfile.write(data[at:at + 16384])
            except OSError:
                return			# cancelled

    def log_message(self, *_):
        pass


def stripped(comm):
    """A program without symbols, and its debug file of some size."""
    hot(comm, "-g", "-DINLINED", "-Wl,--build-id=sha1")
    with open(path("pad"), "wb") as f:
        f.write(os.urandom(4 << 20))
    sh("objcopy", "--only-keep-debug", "--add-section", f".pad={path('pad')}", path(comm), path(comm + ".debug"))
    sh("strip", path(comm))
    return build_id(path(comm))


def deaf_library():
    """A folder with a libdebuginfod that waits for ever and never asks whether to go on."""
    with open(path("deaf.c"), "w", encoding="ascii") as f:
        f.write("""#include <unistd.h>
void *debuginfod_begin(void) { return (void *)1; }
void debuginfod_end(void *c) {}
void debuginfod_set_progressfn(void *c, void *fn) {}
int debuginfod_find_debuginfo(void *c, const unsigned char *id, int n, char **p) { for (;;) pause(); }
""")
    os.mkdir(path("deaf"))
    sh("cc", "-shared", "-fPIC", "-Wl,-soname,libdebuginfod.so.1", "-o", path("deaf/libdebuginfod.so.1"), path("deaf.c"))
    return path("deaf")


def library():
    """Where libdebuginfod is."""
    import ctypes
    ctypes.CDLL("libdebuginfod.so.1")
    with open("/proc/self/maps", encoding="ascii") as f:
        return re.search(r"/\S*/libdebuginfod\S*", f.read()).group()


def screen_of(process, url=None, before=""):
    env = f"DEBUGINFOD_CACHE_PATH={path('cache')} HOME={names.TMP} DEBUGINFOD_URLS={url or ''} no_proxy=127.0.0.1"
    t = Terminal(f"{before} env {env} {names.PROFTOP} -d 0.5 -p {process.pid}", 150, 40)
    # The first row is the one to fetch for.
    t.expect(r"▶.* (fetched|unknown)\+0x[0-9a-f]+", "a stripped row", 20)
    return t


def ask(t, words, what):
    """Press D until the message is there: on a full machine it may have disappeared."""
    for _ in range(3):
        t.press("D")
        if t.wait_for(words, 6):
            return
    t.expect(words, what)


def main():
    number = stripped("fetched")
    stripped("unknown")
    wanted[f"/buildid/{number}/debuginfo"] = path("fetched.debug")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    fetched, unknown = names.start(path("fetched")), names.start(path("unknown"))

    t = screen_of(fetched)
    ask(t, "set DEBUGINFOD_URLS", "no server")
    t.close()
    t = screen_of(unknown, url)
    ask(t, "no server has debug symbols for unknown", "an object that is not there")
    t.close()
    # As if it were not installed.
    if names.has_mount_namespace():
        t = screen_of(unknown, url, f"unshare -m sh -c 'mount --bind /dev/null {library()}; exec \"$@\"' sh")
        ask(t, "libdebuginfod is not installed", "without the library")
        t.close()
    # Transfers that do not ask whether to go on are processes, which are ended.
    t = screen_of(unknown, url, f"env LD_LIBRARY_PATH={deaf_library()}")
    for _ in range(4):
        t.press("D")
        t.expect("fetching debug symbols for unknown", "asking", 10)
        t.press("D")
        t.expect("cancelled fetching debug symbols for unknown", "cancel of what does not ask", 10)
    t.close()
    slow.set()
    t = screen_of(fetched, url)
    t.press("D")
    t.expect("fetching debug symbols for fetched", "asking", 10)
    t.expect(r"debug symbols for fetched: [0-9.]+ MiB, \d+ %", "progress", 20)
    t.press("D")
    t.expect("cancelled fetching debug symbols for fetched", "cancel", 20)
    slow.clear()
    t.press("D")
    t.expect("fetched debug symbols for fetched", "the file", 20)
    t.expect(r"hot_fetched", "its name", 20)
    t.expect(r"hot_fetched_inlined", "its inlined function", 20)
    t.press("6")
    t.expect(r"ready +fetched +debug file", "its source", 10)
    t.close()
    server.shutdown()
    import screen
    sys.exit(1 if screen.wrongs or names.wrongs else 0)


main()
