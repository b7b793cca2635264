# SPDX-License-Identifier: GPL-2.0-or-later
"""Each source of names with a program that has only that source: proftop's name of its hot function, the
reported source, and perf's name in the same samples.

SOURCES=all: also programs in other languages, which take minutes to build.
In a private mount namespace: the folder of debug files is the test's.
"""
import ctypes
import lzma
import os
import re
import sys
import time

import names
from names import Missing, build_id, children, hot, need, path, sh, start

ALL = os.environ.get("SOURCES") == "all"
DEBUG = "/usr/lib/debug"
cases = []


def case(what, want, source, slow=False, among=None):
    """A case: @want is the pattern of the hot function's name, @source the reported source.
    The function starts the program, with the function's name as comm."""
    def add(fn):
        cases.append((fn.__name__, what, want, source, slow, among, fn))
        return fn
    return add


def strip(comm, *flags):
    sh("strip", *flags, path(comm))


def separate(comm, to):
    """Move the debug information of @comm to a file at @to."""
    os.makedirs(os.path.dirname(to), exist_ok=True)
    sh("objcopy", "--only-keep-debug", path(comm), to)
    strip(comm)
    return to


def by_id(comm):
    number = build_id(path(comm))
    return f"{DEBUG}/.build-id/{number[:2]}/{number[2:]}.debug"


@case(".symtab", "hot_symtab", r"\.symtab")
def symtab():
    return start(hot("symtab"))


@case(".dynsym only", "hot_dynsym", r"\.dynsym")
def dynsym():
    hot("dynsym", "-DSCOPE=", "-rdynamic")
    strip("dynsym")
    return start(path("dynsym"))


@case("gap between .dynsym", r"gap\+0x[0-9a-f]+", r"\.dynsym")
def gap():
    hot("gap", "-rdynamic")
    strip("gap")
    return start(path("gap"))


@case("debug file by build-id", "hot_buildid", "debug file")
def buildid():
    hot("buildid", "-g", "-Wl,--build-id=sha1")
    separate("buildid", by_id("buildid"))
    return start(path("buildid"))


@case("debug file by debuglink", "hot_debuglink", "debug link")
def debuglink():
    hot("debuglink", "-g", "-Wl,--build-id=none")
    file = separate("debuglink", f"{DEBUG}{names.TMP}/debuglink.debug")
    sh("objcopy", f"--add-gnu-debuglink={file}", path("debuglink"))
    return start(path("debuglink"))


@case("dwz (.gnu_debugaltlink)", "hot_dwz_inlined", "debug file")
def dwz():
    for comm in ("dwz", "dwz_two"):
        hot(comm, "-g", "-gdwarf-4", "-DINLINED", "-Wl,--build-id=sha1")
        separate(comm, by_id(comm))
    os.makedirs(f"{DEBUG}/.dwz")
    sh("dwz", "-m", f"{DEBUG}/.dwz/both", "-M", f"{DEBUG}/.dwz/both", by_id("dwz"), by_id("dwz_two"))
    if ".gnu_debugaltlink" not in sh("readelf", "-SW", by_id("dwz")):
        raise Missing("dwz found nothing in common")
    return start(path("dwz"))


@case("dwz file beside the program", "hot_beside_inlined", r"\.symtab")
def beside():
    for comm in ("beside", "beside_two"):
        hot(comm, "-g", "-gdwarf-4", "-DINLINED", "-Wl,--build-id=sha1")
    # The link is as written: it begins in the folder of the program.
    sh("dwz", "-m", path("common"), "-M", "common", path("beside"), path("beside_two"))
    if ".gnu_debugaltlink" not in sh("readelf", "-SW", path("beside")):
        raise Missing("dwz found nothing in common")
    return start(path("beside"))


@case(".gnu_debugdata", "hot_minidebug", r"\.gnu_debugdata")
def minidebug():
    hot("minidebug")
    sh("objcopy", "-S", "--keep-symbol=hot_minidebug", "--keep-symbol=main", path("minidebug"), path("mini"))
    with open(path("mini"), "rb") as f, open(path("mini.xz"), "wb") as out:
        out.write(lzma.compress(f.read()))
    strip("minidebug")
    sh("objcopy", f"--add-section=.gnu_debugdata={path('mini.xz')}", path("minidebug"))
    return start(path("minidebug"))


@case("PLT stub", "hot_target@plt", r"\.dynsym|none", among="@plt$")
def plt():
    library = "unsigned long hot_target(unsigned long x) { return x; }"
    with open(path("stub.c"), "w", encoding="ascii") as f:
        f.write(library)
    sh("gcc", "-O2", "-shared", "-fPIC", "-o", path("libstub.so"), path("stub.c"))
    hot("plt", "-DSTUBS", path("libstub.so"), f"-Wl,-rpath,{names.TMP},-z,lazy")
    strip("plt")
    return start(path("plt"))


@case("kallsyms", None, "kallsyms", among="getppid")
def kallsyms():
    return start(hot("kallsyms", "-DKERNEL"))


@case("vdso", r"__vdso_\w+|__?[a-z_]*clock[a-z_]*", "dynsym|vdso")
def vdso():
    return start(hot("vdso", "-DVDSO"))


@case("BPF program", r"bpf_prog_[0-9a-f]{16}_hot_bpf", r"\[bpf\]|kallsyms")
def bpf():
    need("python3")
    return start("python3", os.path.join(os.path.dirname(__file__), "names_bpf.py"), comm="bpf")


@case("perf map", "jit_hot_one", "perf map")
def perfmap():
    return start(f"{names.PROGRAMS}/jitmap", "jit_hot_one", comm="perfmap")


@case("Python's perf trampolines", re.escape("py::work:/srv/app.py"), "perf map")
def trampoline():
    return start(f"{names.PROGRAMS}/jitmap", "py::work:/srv/app.py", comm="trampoline")


@case("perf map, PID namespace", "jit_of_namespace", "perf map")
def pidns():
    os.symlink(f"{names.PROGRAMS}/jitmap", path("pidns"))
    need("unshare")
    # A private /tmp: there it is process 1.
    process = start("unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c",
                    f"mkdir {names.TMP}/t && cp {names.PROGRAMS}/jitmap {names.TMP}/t/pidns && "
                    f"mount --bind {names.TMP}/t /tmp && exec /tmp/pidns jit_of_namespace")
    process.all_children = True
    return process


@case("jitdump", "jit_(first|second)", "jitdump")
def jitdump():
    return start(f"{names.PROGRAMS}/jitdump_writer", names.TMP, "300", "1000", comm="jitdump")


@case("debuginfod's cache", "hot_cached", "debuginfod|debug file")
def cached():
    hot("cached", "-g", "-Wl,--build-id=sha1")
    cache = path("debuginfod")
    os.environ["DEBUGINFOD_CACHE_PATH"] = cache
    separate("cached", f"{cache}/{build_id(path('cached'))}/debuginfo")
    return start(path("cached"))


@case("split DWARF", "hot_split", r"\.symtab")
def split():
    return start(hot("split", "-g", "-gsplit-dwarf"))


JS = "function hotNode(x) { for (let i = 0; i < 1e6; i++) x = (x * 31 + i) | 0; return x; } " \
     "let x = 1; for (let end = Date.now() + 1e9; Date.now() < end;) x = hotNode(x);"


@case("node --perf-basic-prof", r".*hotNode.*", "perf map", slow=True)
def nodemap():
    return start("node", "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", JS, comm="nodemap",
                 cwd=names.TMP)


@case("node --perf-prof", r".*hotNode.*", "jitdump", slow=True)
def nodedump():
    # Node writes its jitdump a page at a time: the last functions are written when more are
    # compiled, and all are compiled together.
    js = JS.replace("x = hotNode(x);", "{ x = hotNode(x); new Function('return ' + Math.random())(); }")
    return start("node", "--perf-prof", "--always-sparkplug", "-e", js, comm="nodedump", cwd=names.TMP)


@case("python3.11, native", r"_PyEval_EvalFrameDefault|[a-zA-Z_]\w+", r"\.dynsym|debug file|symtab", slow=True)
def python():
    need("/usr/bin/python3.11")
    return start("/usr/bin/python3.11", "-c", "x = 1\nwhile True:\n x = (x * 31 + 7) % 1000003", comm="python")


GO = """package main
//go:noinline
func hotGo(x uint64) uint64 { for i := 0; i < 1000; i++ { x = x*6364136223846793005 + 1 }; return x }
var sink uint64
func main() { for { sink = hotGo(sink) } }
"""


@case("Go, stripped (.gopclntab)", r"main\.hotGo", "gopclntab", slow=True)
def golang():
    os.makedirs(path("go"))
    with open(path("go/main.go"), "w", encoding="ascii") as f:
        f.write(GO)
    sh("go", "build", "-ldflags=-s -w", "-o", path("golang"), path("go/main.go"),
       env=dict(os.environ, GOCACHE=path("gocache"), GOFLAGS="-mod=mod", GO111MODULE="off"))
    return start(path("golang"))


RUST = """mod deep { pub struct Wheel<T>(pub T); impl<T: Copy + Into<u64>> Wheel<T> {
  #[inline(never)] pub fn hot_rust(&self, mut x: u64) -> u64 {
    for i in 0..1000u64 { x = x.wrapping_mul(6364136223846793005).wrapping_add(self.0.into() ^ i); } x } } }
fn main() { let w = deep::Wheel(7u32); let mut x = 1; loop { x = std::hint::black_box(w.hot_rust(x)); } }
"""


def rust(comm, scheme):
    with open(path(f"{comm}.rs"), "w", encoding="ascii") as f:
        f.write(RUST)
    sh("rustc", "-O", "-C", f"symbol-mangling-version={scheme}", *(("-Z", "unstable-options") if scheme == "legacy" else ()),
       "-o", path(comm), path(f"{comm}.rs"), env=dict(os.environ, RUSTC_BOOTSTRAP="1"))
    return start(path(comm))


@case("Rust, legacy names", r".*deep::Wheel<.*>::hot_rust", r"\.symtab", slow=True)
def rustold():
    return rust("rustold", "legacy")


@case("Rust, v0 names", r".*deep::Wheel<.*>>?::hot_rust", r"\.symtab", slow=True)
def rustnew():
    return rust("rustnew", "v0")


D = """module wheel; @safe: struct Wheel(T) { T by; pragma(inline, false) ulong hotD(ulong x) {
  foreach (i; 0 .. 1000) x = x * 6364136223846793005UL + by; return x; } }
__gshared ulong sink; void main() @system { auto w = Wheel!ulong(7); for (;;) sink = w.hotD(sink); }
"""


@case("D", r"wheel\.Wheel!\(\)\.Wheel\.hotD", r"\.symtab", slow=True)
def dlang():
    with open(path("wheel.d"), "w", encoding="ascii") as f:
        f.write(D)
    sh("gdc", "-O1", "-o", path("dlang"), path("wheel.d"))
    return start(path("dlang"))


@case("kernel module", None, "", slow=True)
def module():
    # The names of modules are lines of kallsyms as any other; see tests/symbols/kernel/test_kallsyms.c.
    raise Missing("no module here can be made hot" if os.path.exists("/proc/modules") else
                  "this kernel has no modules")


def private_folder():
    """Make later mounts private, and use an empty folder of debug files."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs(DEBUG, exist_ok=True)
    if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) or \
            libc.mount(b"tmpfs", DEBUG.encode(), b"tmpfs", 0, None):
        print("not permitted: a mount namespace:", os.strerror(ctypes.get_errno()))
        sys.exit(77)


def pids_of(process):
    if not hasattr(process, "all_children"):
        return [process.pid]
    return children(process.pid)


def all_kernel_names():
    with open("/proc/kallsyms", encoding="ascii") as f:
        return {line.split()[2] for line in f}


def judge(session, comm, want, source, among):
    """(name, source, right?) of the hot function of @comm."""
    rows = session.rows(comm)
    if not rows:
        return "-", "-", False
    # On a full machine the kernel's own work may be hotter.
    own = [r for r in rows if r["module"] != "[kernel]"] if want else []
    row = (own or rows)[0]
    if among:
        row = next((r for r in rows if re.search(among, r["symbol"])), row)
    if want is None:
        return row["symbol"], session.source_of(row), row["symbol"] in all_kernel_names()
    is_source = session.source_of(row)
    return row["symbol"], is_source, bool(re.fullmatch(want, row["symbol"]) and re.search(source, is_source))


def main():
    private_folder()
    running, lines, pids = {}, [], []
    for comm, what, _, _, slow, _, fn in cases:
        if slow and not ALL:
            continue
        try:
            running[comm] = fn()
        except Missing as e:
            lines.append((what, "-", "-", f"not here: {e}", ""))
    time.sleep(1.5 if ALL else 0.3)
    for comm, process in running.items():
        if process.poll() is not None:
            names.wrong(f"{comm} has ended with {process.returncode}")
        else:
            pids += pids_of(process)
    for _ in range(8):
        session = names.Session(pids, running, seconds=12 if ALL else 3,
                                among={comm: among for comm, _, _, _, _, among, _ in cases})
        judged = {comm: judge(session, comm, want, source, among)
                  for comm, _, want, source, _, among, _ in cases if comm in running}
        # On a full machine a program has a few samples only, or only of its start.
        if all(right for _, _, right in judged.values()):
            break
    for comm, what, want, source, slow, among, _ in cases:
        if comm not in running:
            continue
        name, where, right = judged[comm]
        lines.append((what, name, where, session.perf_says(comm, among), "right" if right else "WRONG"))
        if not right:
            names.wrong(f"{what}: '{name}' from '{where}', not /{want}/ from /{source}/; rows: "
                        + ", ".join(f"{r['symbol']} ({r['module']}) {r['self']}" for r in session.rows(comm)[:4]))
    print(f"{'source':<28} {'proftop says':<34} {'from':<16} {'perf says of the same samples':<34}")
    for what, name, where, perf, verdict in lines:
        print(f"{what:<28} {name:<34} {where:<16} {perf:<34} {verdict}")
    names.finish()


main()
