#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Inlined functions, lines and symbols of random addresses against eu-addr2line and nm.
# LINES=2000: 2000 in each of 50 libraries and of our programs. SEED=: the same ones again.
. "$(dirname "$0")/lib"
need python3 eu-addr2line nm readelf cc

export B
python3 "$HERE/lines.py"
bad=$?
finish
