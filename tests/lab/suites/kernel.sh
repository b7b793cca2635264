# SPDX-License-Identifier: GPL-2.0-or-later
# Code of the kernel: modules that come and go, BPF programs, /proc/kcore.
. ./guest.sh

# A module is loaded and removed while proftop samples; its functions have its name.
(
	for i in 1 2 3 4 5 6; do
		modprobe zram && echo 64M >/sys/block/zram0/disksize 2>/dev/null &&
			for k in 1 2 3 4 5; do
				dd if=/dev/zero of=/dev/zram0 bs=64k count=1000 2>/dev/null
			done
		sleep 1
		echo 1 >/sys/block/zram0/reset 2>/dev/null
		rmmod zram 2>/dev/null
	done
) &
loop=$!
ticks "module loaded and removed" module:zram -n 12 -F 199 -e cpu-clock --rows=1000
wait $loop

# A file system: its functions below those of the system calls.
if modprobe ext4 && modprobe loop && dd if=/dev/zero of=/dev/shm/disk bs=1M count=32 2>/dev/null &&
	mke2fs -F /dev/shm/disk >/dev/null 2>&1 && mkdir -p /mnt && mount -t ext4 -o loop /dev/shm/disk /mnt; then
	(while :; do dd if=/dev/zero of=/mnt/file bs=4k count=4000 2>/dev/null; rm -f /mnt/file; done) &
	writer=$!
	ticks "ext4" module:ext4 -n 6 -F 199 -e cpu-clock --rows=1000
	kill $writer
	wait $writer 2>/dev/null
	# Its last dd still writes.
	for i in 1 2 3 4 5 6 7 8 9 10; do umount /mnt 2>/dev/null && break; sleep 1; done
	rmmod ext4 2>/tmp/err && ok "ext4 removed" || wrong "ext4 removed: $(cat /tmp/err)"
else
	skip "ext4: no file system"
fi

if bpf_hot 1 >/dev/null 2>/tmp/err; then
	start bpf_hot 60
	ticks "BPF program" module:bpf -n 6 -F 199 -e cpu-clock -p "$last"
else
	skip "BPF program: $(cat /tmp/err)"
fi

# The code of the hottest kernel function, from /proc/kcore.
start dd if=/dev/zero of=/dev/null bs=1
proftop -F 199 -e cpu-clock -p "$last" --size=100x40 \
	--script='<tick> <tick> <tick> U <tick> a <tick> <tick> <tick> <tick> <tick> <tick> <tick> <tick>' >/tmp/screen 2>/tmp/err || wrong "annotate: $(cat /tmp/err)"
if grep -qE '  (push|mov|test|call|ret|endbr64|nop|xor|lea|add|jmp|stp|ldp|str|ldr|bl|b\.|cmp|adrp|paciasp)' /tmp/screen; then
	ok "annotate kernel code"
else
	wrong "annotate kernel code:"
	cat /tmp/screen
fi
finish
