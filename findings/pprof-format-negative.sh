#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A pprof profile with negative values does not survive pprof-format: it reads them as nearly 2^64.
#
# Version: npm pprof-format 2.3.2.
# Behaviour: values of a sample are int64, and the difference of two profiles has negative ones. They are encoded
# right (ten bytes) and decoded without their sign, so that what the library wrote itself comes back changed.
# Seen, for a sample with the values -5 and 5, encoded and decoded again:
#   18446744073709551611 5
set -eu
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
cd "$t"
get() {
	npm pack --silent "$1" >/dev/null
	tar -xzf ./*.tgz && rm ./*.tgz && mv package "$2"
}
export LC_ALL=C

get pprof-format@2.3.2 pprof-format
cat >w.js <<'J'
const { Profile, Sample, StringTable } = require('./pprof-format/dist/commonjs/index.js');
const strings = new StringTable();
const diff = new Profile({ stringTable: strings, sample: [new Sample({ locationId: [1], value: [-5, 5] })] });
console.log(Profile.decode(diff.encode()).sample[0].value.map(String).join(' '));
J
seen=$(node w.js)
echo "$seen"
[ "$seen" = "18446744073709551611 5" ]
