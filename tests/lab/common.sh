# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the scripts of the lab: its folder, and the options of apt for each architecture.
set -eu
HERE=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
LAB=${PROFTOP_LAB:-$HERE/../../build/lab}
mkdir -p "$LAB"
NATIVE=$(dpkg --print-architecture)
LAB_PACKAGES="qemu-system-x86 qemu-system-arm kmod cpio binutils xz-utils python3"

die() {
	echo "${0##*/}: $*" >&2
	exit 2
}

need() {
	for tool; do
		command -v "$tool" >/dev/null || die "$tool is missing: apt-get install $LAB_PACKAGES"
	done
}

# arch DEBIAN-NAME: set the names that other tools use, and the options of apt. SUITE: packages of that suite of Debian,
# not of the ones of this machine.
arch() {
	ARCH=$1
	case $ARCH in
	amd64) QEMU=x86_64 TRIPLET=x86_64-linux-gnu CONSOLE=ttyS0 ;;
	arm64) QEMU=aarch64 TRIPLET=aarch64-linux-gnu CONSOLE=ttyAMA0 ;;
	*) die "$ARCH: amd64 or arm64" ;;
	esac
	# Only the list of sources of this machine is used, not the state of its packages.
	APT=$LAB/apt/$ARCH${SUITE:+-$SUITE}
	mkdir -p "$APT/lists/partial" "$APT/archives/partial" "$APT/none/partial"
	: >>"$APT/status"
	APT_OPTIONS="-oAPT::Architecture=$ARCH -oAPT::Architectures=$ARCH -oDir::State::Lists=$APT/lists
		-oDir::State::status=$APT/status -oDir::Cache::pkgcache= -oDir::Cache::srcpkgcache=
		-oDir::Cache::archives=$APT/archives -oDebug::NoLocking=1 -oAPT::Sandbox::User=root"
	if [ -n "${SUITE:-}" ]; then
		echo "deb http://deb.debian.org/debian $SUITE main" >"$APT/sources"
		APT_OPTIONS="$APT_OPTIONS -oDir::Etc::sourcelist=$APT/sources -oDir::Etc::sourceparts=$APT/none"
	fi
	# A source without packages for this architecture fails: ignored.
	[ -n "$(find "$APT/lists" -maxdepth 1 -name '*_Packages*' | head -n 1)" ] ||
		apt-get -qq $APT_OPTIONS update >&2 || true
}

# unpack DEB DIR: as dpkg-deb -x, but /lib stays the link to usr/lib that it is on a merged system.
unpack() {
	dpkg-deb --fsys-tarfile "$1" | tar -C "$2" -x --keep-directory-symlink
}
