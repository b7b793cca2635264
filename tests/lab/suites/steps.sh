# SPDX-License-Identifier: GPL-2.0-or-later
# Rows derived from code without tables, at the instructions that programs execute: single steps know the frame
# (tests/tools/steptruth). As tests/truth_steps does on the machine itself.
. ./guest.sh

# steps NAME LIBRARY MS COMMAND...: the code of LIBRARY has rows for 95 % at least, none wrong. The first windows are
# behind the loader, after MS ms of CPU time.
steps() {
	name=$1 library=$2 from=$3
	shift 3
	OPENBLAS_NUM_THREADS=1 steptruth -n "${STEPS:-60000}" -w 6000 -s "$from" -g 20 -t 400 "$@" >/tmp/steps 2>&1
	rc=$?
	line=$(grep -a "/$library[^ ]*: [0-9]* without" /tmp/steps | head -n 1)
	nr=${line#*: }
	if [ $rc = 0 ] && [ "${nr%% *}" -gt 500 ] 2>/dev/null; then
		ok "$name: ${line##*/}"
	else
		wrong "$name: exit $rc: $line $(grep -a 'wrong, [0-9]\|no row' /tmp/steps | head -n 6 | tr '\n' ' ')"
	fi
}

steps libgmp libgmp 200 steps_gmp
steps "musl, dynamic" libc.so 100 steps_musl
steps "musl, static, with signed return addresses" steps_static 50 steps_static
# Its package is not configured.
export LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/openblas-pthread
for core in NEOVERSEN1 CORTEXA57; do
	export OPENBLAS_CORETYPE=$core
	steps "OpenBLAS, $core" libopenblas 3000 steps_blas
done
for what in rand sha256 aes-128-cbc ecdsap256; do
	steps "openssl $what" libcrypto 4000 openssl speed -seconds 600 $what
done
finish
