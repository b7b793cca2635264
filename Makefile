# SPDX-License-Identifier: GPL-2.0-or-later
# proftop: `make run` installs missing packages, builds and starts; `make check` tests. `make help` lists all.

ROOMS   := symbols unwind sampler ui
PREFIX  ?= /usr/local
VERSION := 0.2.0

comma := ,
# All CPUs, unless a -j was given.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
# For another CPU: CROSS=aarch64-linux-gnu [SYSROOT=DIR] (doc/UNWINDING.md); tests then run under EMU.
ifneq ($(CROSS),)
CC  := $(CROSS)-gcc $(SYSROOT:%=--sysroot=%)
CXX := $(CROSS)-g++ $(SYSROOT:%=--sysroot=%)
AR  := $(CROSS)-ar
EMU ?= qemu-$(firstword $(subst -, ,$(CROSS)))$(SYSROOT:%= -L %)
PKG_CONFIG := PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(CROSS)/pkgconfig:$(SYSROOT)/usr/share/pkgconfig \
	PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) pkg-config
else
PKG_CONFIG := pkg-config
endif
# Flavours never share objects.
FLAVOUR := $(CROSS:%=%-)
B := build/$(FLAVOUR)$(if $(SAN),san-$(subst $(comma),-,$(SAN)),$(if $(filter 1,$(DEBUG)),debug,release))

PKGS      := ncursesw libunwind-generic libdw libelf liburcu-qsbr libutf8proc jansson zlib
TEST_PKGS := cmocka
# Used where they are found (libpfm4 has no .pc file); build/config.mk says which (made once the packages are there, by "deps").
WANTED_PKGS := libzstd liblzma libdeflate capstone libmicrohttpd libcurl
ifneq ($(filter-out clean help layering style uninstall deps dist deb check,$(or $(MAKECMDGOALS),all)),)
include build/$(FLAVOUR)config.mk
endif
# What Debian calls them; libiberty and the test tools have no .pc file.
DEBS := pkg-config libncurses-dev libunwind-dev libdw-dev libelf-dev liburcu-dev libutf8proc-dev \
	libjansson-dev zlib1g-dev libcmocka-dev libiberty-dev libzstd-dev liblzma-dev libdeflate-dev libcapstone-dev libpfm4-dev libmicrohttpd-dev libcurl4-openssl-dev libdebuginfod1 \
	g++ tmux python3 procps

CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wundef -Wvla \
	-Wno-unused-parameter $(if $(findstring clang,$(CC)),-Wno-unknown-attributes) $(if $(filter 1,$(WERROR)),-Werror)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
# Foreign bytes that are read outside of the sandbox (doc/SECURITY.md). A sanitizer finds the same, earlier; HARDEN= is without.
HARDEN   ?= $(if $(SAN),,-fstack-protector-strong -fstack-clash-protection $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENLD := $(if $(HARDEN),-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now)
# assert() checks invariants in debug and sanitizer builds.
ALL_CPPFLAGS := -D_GNU_SOURCE -DPROFTOP_VERSION='"$(VERSION)"' -I. \
	$(if $(filter libzstd,$(OPT_PKGS)),-DHAVE_ZSTD) $(if $(filter liblzma,$(OPT_PKGS)),-DHAVE_LZMA) \
	$(if $(filter libdeflate,$(OPT_PKGS)),-DHAVE_LIBDEFLATE) \
	$(if $(filter capstone,$(OPT_PKGS)),-DHAVE_CAPSTONE) $(if $(filter libmicrohttpd,$(OPT_PKGS)),-DHAVE_MICROHTTPD) \
	$(if $(filter libcurl,$(OPT_PKGS)),-DHAVE_CURL) $(if $(HAVE_PFM),-DHAVE_PFM) \
	$(if $(SAN)$(filter 1,$(DEBUG)),,-DNDEBUG) \
	$(CPPFLAGS)
ALL_CFLAGS    = -std=gnu11 -pthread $(WARN) $(SANFLAGS) $(HARDEN) $(PKG_CFLAGS) $(CFLAGS)
ALL_LDFLAGS   = -pthread $(SANFLAGS) $(HARDENLD) $(LDFLAGS)
PKG_CFLAGS   := $(shell $(PKG_CONFIG) --cflags $(PKGS) $(OPT_PKGS) 2>/dev/null)
# Not linked with, but loaded when they are needed (struct library_function in symbols/base/base.h): libdeflate, capstone, libpfm4, libmicrohttpd, libcurl.
PKG_LIBS      = $(shell $(PKG_CONFIG) --libs $(PKGS) $(filter-out libdeflate capstone libmicrohttpd libcurl,$(OPT_PKGS))) -liberty -lm
TEST_LIBS     = $(shell $(PKG_CONFIG) --libs $(TEST_PKGS))

Q   := $(if $(filter 1,$(V)),,@)
say  = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)')

SRCS := $(wildcard $(ROOMS:%=%/*.c) $(ROOMS:%=%/*/*.c))
OBJS := $(SRCS:%.c=$(B)/%.o)
# One archive a room, so that a test links only its room and those to the right.
LIB  = $(B)/$(1).a
LIBS_symbols := $(B)/symbols.a
LIBS_unwind  := $(B)/unwind.a $(LIBS_symbols)
LIBS_sampler := $(B)/sampler.a $(LIBS_unwind)
LIBS_ui      := $(B)/ui.a $(LIBS_sampler)

TESTS     := $(foreach r,$(ROOMS),$(patsubst %.c,$(B)/%,$(wildcard tests/$(r)/test_*.c tests/$(r)/*/test_*.c)))
PROGRAMS  := $(patsubst tests/programs/%.c,$(B)/tests/programs/%,$(wildcard tests/programs/*.c)) \
	$(patsubst tests/programs/%.cc,$(B)/tests/programs/%,$(wildcard tests/programs/*.cc))
FUZZERS   := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
TOOLS     := $(patsubst tests/tools/%.c,$(B)/tests/tools/%,$(wildcard tests/tools/*.c))
# The same targets over their corpora, without a fuzzer.
REPLAYS   := $(FUZZERS:%=$(B)/tests/fuzz/%)

.PHONY: cases truth-tableless truth-callers bench-cage kill-matrix storms soak drift man all run check pure live unit e2e bench fuzz fuzz-all layouts layering style figures install uninstall clean help deps programs tools lab
.DELETE_ON_ERROR:
.SECONDARY:

all: deps $(B)/proftop ## build proftop (default)

run: all ## install missing packages, build, start proftop
	$(Q)$(B)/proftop $(ARGS)

build/$(FLAVOUR)config.mk: Makefile
	$(Q)mkdir -p $(@D)
	$(Q)$(MAKE) --no-print-directory -s deps
	$(Q)for p in $(WANTED_PKGS); do $(PKG_CONFIG) --exists $$p && echo "OPT_PKGS += $$p"; done >$@; true
	$(Q)echo 'int main(void) { return pfm_initialize(); }' | $(CC) -include perfmon/pfmlib.h -x c -o /dev/null - -lpfm \
		2>/dev/null && echo 'HAVE_PFM := 1' >>$@; true

deps: ## find missing packages; install them (root) or print the command
	$(Q)if ! $(PKG_CONFIG) --exists $(PKGS) $(TEST_PKGS) 2>/dev/null || \
	      ! echo '#include <libiberty/demangle.h>' | $(CC) -E -x c - >/dev/null 2>&1 || \
	      ! command -v tmux >/dev/null || ! command -v g++ >/dev/null || ! command -v python3 >/dev/null || \
	      ! command -v pgrep >/dev/null; then \
		if [ -z "$(CROSS)" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo '  DEPS    $(DEBS)'; \
			export DEBIAN_FRONTEND=noninteractive; \
			apt-get update -qq && apt-get install -y -qq --no-install-recommends $(DEBS) >/dev/null && \
			exec $(MAKE) --no-print-directory -s deps; \
		else \
			echo 'proftop: development packages are missing; install them with' >&2; \
			echo '  sudo apt-get install $(DEBS)$(CROSS:%= (libraries for %))' >&2; \
			exit 1; \
		fi; \
	fi

$(B)/%.o: %.c Makefile | deps
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Includes it as bytes.
$(B)/ui/export/export.o: ui/export/page.html
# Assembler on the top level: with -flto its names would be in no object.
$(B)/ui/export/export.o: ALL_CFLAGS += -fno-lto

define room_archive
$(B)/$(1).a: $(patsubst %.c,$(B)/%.o,$(filter-out ui/main.c,$(wildcard $(1)/*.c $(1)/*/*.c)))
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && $(AR) rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_archive,$(r))))

$(B)/proftop: $(B)/ui/main.o $(LIBS_ui)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

# tests/ROOM/test_x.c and tests/ROOM/FOLDER/test_x.c link ROOM and the rooms to its right, nothing else.
define room_tests
$(B)/tests/$(1)/%: $(B)/tests/$(1)/%.o $(LIBS_$(1))
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(PKG_LIBS) $$(TEST_LIBS)
endef
$(foreach r,$(ROOMS),$(eval $(call room_tests,$(r))))
# Half the time to build. Some tests look at their own code: it is as usually built. Some compute more than the optimiser takes.
ifeq ($(SAN),)
$(filter-out $(B)/tests/unwind/% $(B)/tests/symbols/dwarf/%,$(TESTS:%=%.o)): ALL_CFLAGS += -O0 -U_FORTIFY_SOURCE
$(filter %/test_assemble.o %/test_order.o %/test_slices.o %/test_v8.o,$(TESTS:%=%.o)): ALL_CFLAGS += -O1
endif
# Steps through the lazy binding of functions as well.
$(B)/tests/unwind/test_truth: HARDENLD := -Wl,-z,relro,-z,lazy
# Compares with the library itself.
$(B)/tests/sampler/event/test_libpfm: TEST_LIBS += $(if $(HAVE_PFM),-lpfm)

# A truth program that records itself: see there.
$(B)/tests/tools/selfrecord: $(B)/tests/tools/truth.o
$(B)/tests/tools/truth.o: tests/programs/truth_chain.c | deps
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -O2 -g -fomit-frame-pointer -fno-builtin $(TRUTH_CFLAGS) -Dmain=truth_main -D_exit=truth_exit -c -o $@ $<

# What the end-to-end tests need to look inside.
$(B)/tests/tools/%: $(B)/tests/tools/%.o $(LIBS_sampler)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

# A fuzzer brings its own main().
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/$(if $(findstring fuzzer,$(SAN)),options,replay).o $(LIBS_ui)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

# See tests/fuzz/cage_copy.h.
$(B)/tests/fuzz/fuzz_jitdump: ALL_LDFLAGS += -Wl,--wrap=sandbox_wrap,--wrap=sandbox_take

# Programs to be sampled: built as their first line says ("BUILD: flags"), without frame pointers by default.
$(B)/tests/programs/%: tests/programs/%.c | deps
	@mkdir -p $(@D)
	$(call say,PROG,$@)
	$(Q)$(CC) -O2 -g -fomit-frame-pointer -pthread -o $@ $< $$(sed -n 's|.*BUILD: *\(.*[^ ]\) *\*/.*|\1|p;1q' $<) -lm
$(B)/tests/programs/%: tests/programs/%.cc | deps
	@mkdir -p $(@D)
	$(call say,PROG,$@)
	$(Q)$(CXX) -O2 -g -fomit-frame-pointer -pthread -o $@ $<
programs: $(PROGRAMS)
tools: $(TOOLS)

# Three suites. A test of a room, or a fuzz corpus, is pure, unless its first comment has a line "Live: REASON".
# tests/run proves it; all end-to-end tests are live; what takes minutes or more is soak.
LIVE       := $(patsubst %.c,$(B)/%,$(shell grep -lE '^[ /*]*Live: ' $(TESTS:$(B)/%=%.c) $(FUZZERS:%=tests/fuzz/%.c)))
PURE       := $(filter-out $(LIVE),$(TESTS) $(REPLAYS))
SOAK       := drift storms kill-matrix fail-calls keep-kill keep-night languages-beside
E2E        := $(sort $(wildcard tests/e2e/*.sh))
RUN        := B=$(B) EMU="$(EMU)" tests/run
# As words of RUN: a step is a test.
LAYERING    = "tests/layering $(ROOMS)"
STYLE       = "tests/style $(ROOMS)"

# What does not build has failed as a test; the others run.
check: ## the pure and the live suite, layering, style; STRICT=1: missing rights are failures
	$(Q)$(MAKE) --no-print-directory -k checked || true
	$(Q)$(RUN) $(TESTS) $(REPLAYS) $(LAYERING) $(STYLE) $(E2E)

.PHONY: checked
checked: all $(TESTS) $(REPLAYS) $(TOOLS) programs

lab: ## boot Debian kernels in QEMU (amd64, arm64) and run suites in them; LAB="quick" for one
	$(Q)B=$(B) tests/lab/run $(LAB)

pure: $(PURE) ## suite of tests without clock, rights and waiting, each below a second, and fuzz corpora
	$(Q)$(RUN) $(PURE)

live: $(B)/proftop $(LIVE) programs $(TOOLS) ## suite of tests of threads, processes, perf events, and tests/e2e
	$(Q)$(RUN) $(LIVE) $(E2E)

soak: ## suite of what takes minutes to hours, one after the other: drift, storms, kills, faults
	$(Q)for target in $(SOAK); do $(MAKE) --no-print-directory $$target || failed="$$failed $$target"; done; \
		test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

unit: $(TESTS) $(REPLAYS) programs ## tests of rooms, pure and live, and fuzz corpora
	$(Q)$(RUN) $(TESTS) $(REPLAYS)

e2e: $(B)/proftop programs $(TOOLS) ## tests/e2e: the program itself, with real perf events
	$(Q)$(RUN) $(E2E)

storms: $(B)/proftop programs ## own CPU time beside programs that fork, execute, rename, map as fast as they can
	$(Q)B=$(B) python3 tests/e2e/storms.py

drift: $(B)/proftop ## growth of memory at 999 Hz beside builds, JITs and namespaces; TIME=7200; SAN=: no findings
	$(Q)tests/soak $(or $(TIME),7200) $(B)/proftop

kill-matrix: $(B)/proftop ## kill each process and thread of proftop at random times; N=1000
	$(Q)N=$(or $(N),1000) B=$(B) tests/e2e/killmatrix.sh

.PHONY: fail-calls
fail-calls: $(B)/proftop programs ## let the n-th system call of each kind fail: start, keys, stop, recording, replay; POINTS=20 each
	$(Q)POINTS=$(or $(POINTS),20) PARTS='$(PARTS)' B=$(B) tests/e2e/failcalls.sh

.PHONY: languages-beside truth-languages truth-java truth-waits truth-sched truth-postgres
languages-beside: $(B)/proftop ## 50 Pythons and 20 JVMs, exec, chroot, edited scripts, reused ids: no name of another process
	$(Q)B=$(B) tests/languages_beside $(PART)

truth-java: $(TOOLS) ## Java's chains against AsyncGetCallTrace() of each JDK found; EACH=20
	$(Q)B=$(B) EACH=$(or $(EACH),20) tests/truth_java

truth-waits: $(B)/proftop programs ## waits against the clocks of a program: 2 % over 20 s, by thread, kind and function; TIME=20
	$(Q)B=$(B) TIME=$(or $(TIME),20) tests/waits_truth

truth-sched: $(B)/proftop programs ## times of tasks against perf sched timehist of the same seconds: 3 %, as root; TIME=20
	$(Q)B=$(B) TIME=$(or $(TIME),20) tests/sched_beside

truth-postgres: $(B)/proftop ## waits of PostgreSQL under pgbench -c 16 against pg_stat_activity, as root; TIME=10
	$(Q)B=$(B) TIME=$(or $(TIME),10) tests/postgres_waits

truth-languages: $(B)/proftop programs $(TOOLS) ## script frames against the interpreters' own: 5,000 certain each, 0 wrong; EACH=20
	$(Q)set -e; for rights in '' none; do for script in truth_languages python; do \
		RIGHTS=$$rights GATE=1 SECONDS_EACH=$(or $(EACH),20) B=$(B) tests/e2e/$$script.sh; done; done

.PHONY: runtimes
runtimes: $(B)/proftop ## names, certain ones and shares of each runtime that packages have, as root: fetched into build/runtimes if FETCH=1
	$(Q)B=$(B) tests/runtimes $(WORDS)
truth-tableless: $(TOOLS) ## rows derived from code against the unwind tables of these files; FILES="..."; then against single steps; WORDS="gmp ..." alone
	$(Q)$(B)/tests/tools/derivetruth $(or $(FILES),$(wildcard /lib/*-linux-gnu/libc.so.6 /lib/*-linux-gnu/libm.so.6 \
		/lib/*-linux-gnu/libgcc_s.so.1 /usr/*-linux-gnu/lib/libc.so.6 /usr/*-linux-gnu/lib/libm.so.6 /usr/*-linux-gnu/lib/libstdc++.so.6))
	$(Q)B=$(B) tests/truth_steps

truth-callers: $(B)/proftop ## live, code without tables: complete stacks, shares of three callers; a calm machine; EACH=5, WORDS="gmp x264" alone
	$(Q)B=$(B) EACH=$(or $(EACH),5) WORDS='$(WORDS)' tests/truth_callers

cases: $(B)/tests/tools/langcase ## what is read of the runtimes that make runtimes found, for test_cases, as root; a case that is there stays
	$(Q)B=$(B) tests/tools/make_cases $(WORDS)

layouts: ## NODES="path ...": rows of V8's versions from these running Node.js; CHECK=1: compare them; RUBY=FILE, PHP=php-config, LUA=FOLDER, LUAJIT=FOLDER, R=FOLDER
	$(Q)$(if $(RUBY)$(PHP)$(LUA)$(LUAJIT)$(R),tests/tools/script_layouts RUBY='$(RUBY)' PHP='$(PHP)' LUA='$(LUA)' LUAJIT='$(LUAJIT)' R='$(R)',tests/tools/v8_layouts $(if $(CHECK),--check) \
		symbols/script/v8_versions.inc $(NODES))

layering: ## rooms include doors of rooms above them in tests/rooms only; curses only in term.c; once built, budgets of make figures
	$(Q)B=$(B); export B; eval $(LAYERING)

style: ## SPDX, sizes, prefixes of rooms, the words of doc/STYLE.md, clang-format
	$(Q)eval $(STYLE)

map: ## rooms, doors and files, with the first sentence of each; ROOM="ui/view" for some
	$(Q)tests/map $(ROOM)

figures: $(B)/proftop ## lines, functions, include knots, comments and words, by room; files, exports, call circles of the whole
	$(Q)B=$(B) tests/figures.py $(ROOMS)

fuzz: ## CC=clang: build tests/fuzz/* with libFuzzer into build/fuzz; FUZZ_SECONDS=60 each; TRACE_CMP=0: see tests/fuzz/run
	$(Q)CC='$(CC)' tests/fuzz/run $(FUZZERS)

fuzz-all: ## all fuzz targets, as many at a time as there are CPUs; TIME=60 seconds each
	$(Q)CC='$(CC)' FUZZ_SECONDS='$(or $(TIME),60)' JOBS="$$(nproc)" tests/fuzz/run $(FUZZERS)

$(B)/tests/bench_replay: $(B)/tests/bench_replay.o $(LIBS_sampler)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

# Its CPUs are not those of /sys.
$(B)/tests/bench_cpus: $(B)/tests/bench_cpus.o $(LIBS_sampler)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--wrap=task_list_online_cpus -o $@ $^ $(PKG_LIBS)

.PHONY: bench-cpus
bench-cpus: $(B)/proftop $(B)/tests/bench_cpus programs ## simulate 8 to 512 CPUs: samples a second, cost of a tick, memory
	$(Q)B=$(B) tests/bench cpus

$(B)/tests/bench_past: $(B)/tests/bench_past.o $(LIBS_ui)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

.PHONY: bench-past
bench-past: $(B)/tests/bench_past $(B)/tests/tools/nightsize ## from key to screen for 1,000 ranges of 10 minutes: p99 at most 100 ms of CPU time
	$(Q)dir=$$(mktemp -d); $(B)/tests/tools/nightsize "$$dir" 600 999 && $(B)/tests/bench_past "$$dir" 1000; \
		code=$$?; rm -rf "$$dir"; exit $$code

.PHONY: pictures
bench-cage: $(TOOLS) $(B)/proftop ## CPU time of readers of foreign bytes in the sandbox, compared with the calling thread
	$(Q)ls $(B)/proftop /usr/bin/perf /usr/bin/gdb /usr/bin/gcc /lib/*/libc.so.6 /usr/lib/*/lib[a-m]*.so.?  2>/dev/null >$(B)/cagecost.list; \
	for what in "images $(B)/cagecost.list" "names $$($(CXX) -print-file-name=libstdc++.so)" 'lines $(B)/proftop' 'perfmap 600000'; do \
		$(B)/tests/tools/cagecost $$what $(or $(ROUNDS),15) | tail -n 1; done

pictures: $(B)/proftop ## pictures of each view in xterm under Xvfb, in PICTURES (pictures/); see tests/pictures
	$(Q)B=$(B) PICTURES='$(PICTURES)' tests/pictures

.PHONY: check-formats
check-formats: $(B)/proftop ## read exports with other programs: go tool pprof, protoc, Chromium, speedscope
	$(Q)B=$(B) tests/formats

.PHONY: keep-kill
keep-kill: $(B)/proftop programs ## kill --keep at N=200 random moments: each time --open shows the true share
	$(Q)B=$(B) tests/keep_kill $(or $(N),200)

.PHONY: keep-night
keep-night: $(B)/tests/tools/nightsize ## size of 24 hours of --keep: 2 busy CPUs at 99 Hz, at most 200 MiB (minutes)
	$(Q)dir=$$(mktemp -d); $(B)/tests/tools/nightsize "$$dir"; code=$$?; rm -rf "$$dir"; exit $$code

.PHONY: screens
screens: $(B)/proftop ## draw the screens of README.md, doc/proftop.1 and doc/screens
	$(Q)B=$(B) tests/screens

bench: $(B)/proftop $(B)/tests/bench_replay $(B)/tests/bench_cpus $(B)/tests/bench_past $(B)/tests/tools/nightsize programs ## measure costs, compared with perf
	$(Q)B=$(B) tests/bench

# What proftop can use, and no more; with GROUP only its members may run it (proftop(1), ACCESS).
CAPS := cap_perfmon,cap_sys_ptrace,cap_syslog,cap_ipc_lock,cap_sys_nice

man: $(B)/proftop ## write the lists of options and keys in doc/proftop.1 from the program's tables
	$(Q)doc/man-lists $(B)/proftop doc/proftop.1

install: $(B)/proftop ## PREFIX=/usr/local DESTDIR= SETCAP=1 (for users other than root) GROUP=
	install -D -m $(if $(GROUP),750 -g $(GROUP),755) $(B)/proftop $(DESTDIR)$(PREFIX)/bin/proftop
	$(if $(filter 1,$(SETCAP)),setcap $(CAPS)=ep $(DESTDIR)$(PREFIX)/bin/proftop)
	install -D -m 644 doc/proftop.1 $(DESTDIR)$(PREFIX)/share/man/man1/proftop.1
	$(Q)mkdir -p $(B)/share
	$(Q)for shell in bash zsh fish; do $(EMU) $(B)/proftop --completion $$shell >$(B)/share/$$shell; done
	install -D -m 644 $(B)/share/bash $(DESTDIR)$(PREFIX)/$(COMPLETION_bash)
	install -D -m 644 $(B)/share/zsh $(DESTDIR)$(PREFIX)/$(COMPLETION_zsh)
	install -D -m 644 $(B)/share/fish $(DESTDIR)$(PREFIX)/$(COMPLETION_fish)
	$(Q)sed 's|@PREFIX@|$(PREFIX)|' doc/proftop.service >$(B)/share/proftop.service
	install -D -m 644 $(B)/share/proftop.service $(DESTDIR)$(PREFIX)/$(UNIT)

uninstall: ## remove what install put there
	rm -f $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%)

# Where shells and systemd look for them.
COMPLETION_bash := share/bash-completion/completions/proftop
COMPLETION_zsh  := share/zsh/vendor-completions/_proftop
COMPLETION_fish := share/fish/vendor_completions.d/proftop.fish
UNIT            := lib/systemd/system/proftop.service
INSTALLED       := bin/proftop share/man/man1/proftop.1 $(COMPLETION_bash) $(COMPLETION_zsh) $(COMPLETION_fish) $(UNIT)

.PHONY: dist deb
dist: ## build/proftop-VERSION.tar.gz of the last commit; the same bytes each time
	$(Q)mkdir -p build
	$(Q)git archive --format=tar --prefix=proftop-$(VERSION)/ HEAD | gzip -9 -n >build/proftop-$(VERSION).tar.gz
	@sha256sum build/proftop-$(VERSION).tar.gz

deb: dist ## build/deb/*.deb, by debhelper, of the last commit
	$(Q)rm -rf build/deb && mkdir -p build/deb && tar -C build/deb -xzf build/proftop-$(VERSION).tar.gz
	$(Q)cd build/deb/proftop-$(VERSION) && mv doc/debian . && env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -b -us -uc

.PHONY: deb-check
deb-check: deb ## ROOT=DIR (debootstrap): install the package there, answer its question both ways, remove it
	$(Q)tests/package $(ROOT) build/deb/proftop_$(VERSION)_*.deb

clean: ## remove build/
	rm -rf build

help: ## this list
	@echo 'Targets:'; sed -nE 's/^([a-z0-9-]+):.*## (.*)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-12s%s\n", $$1, $$2}'
	@echo 'Options: V=1 (commands), WERROR=1, DEBUG=1, SAN=address,undefined or SAN=thread (own build folder), HARDEN= (no hardening), ARGS="…" for run'

-include $(OBJS:.o=.d) $(TESTS:=.d) $(TOOLS:=.d) $(REPLAYS:=.d) $(B)/tests/bench_replay.d $(B)/tests/bench_cpus.d $(B)/tests/bench_past.d
