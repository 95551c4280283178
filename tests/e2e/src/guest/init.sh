#!/bin/busybox sh
# PID 1 of the guest. Says everything over the serial console in lines that begin
# with "guest:"; the last one of a phase is in capitals.
export PATH=/bin:/sbin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null

fail() {
	echo "guest: FAILED $*"
	poweroff -f
}

while read -r module; do
	insmod "/modules/$module" || fail "insmod $module"
done </modules.list

disk=/dev/vda
[ -b $disk ] || fail "no $disk"
echo "guest: disk of $(blockdev --getsize64 $disk) bytes"

write_phase() {
	mkfs.ext4 -q -F $disk || fail mkfs
	mount -t ext4 $disk /mnt || fail mount
	# Some to keep, some to overwrite, some to delete: so that the journal and
	# the allocator have had work to do.
	i=1
	while [ $i -le 20 ]; do
		mkdir -p /mnt/d$((i % 4))
		dd if=/dev/urandom of=/mnt/d$((i % 4))/f$i bs=1000 count=$((i * 41)) 2>/dev/null || fail "write f$i"
		i=$((i + 1))
	done
	dd if=/dev/urandom of=/mnt/d1/f1 bs=3333 count=100 seek=7 conv=notrunc 2>/dev/null || fail overwrite
	rm /mnt/d2/f2 /mnt/d3/f19 || fail rm
	(cd /mnt && find d* -type f | sort | xargs sha256sum >/sums && cp /sums sums) || fail sha256sum
	sync
	sed 's/^/guest: sum /' /sums
	echo "guest: SYNCED"
	# Unsynced business for the moment of the crash.
	n=0
	while :; do
		n=$((n + 1))
		dd if=/dev/urandom of=/mnt/noise$((n % 5)) bs=64k count=16 conv=fsync 2>/dev/null
		echo "guest: noise $n"
	done
}

fill_phase() {
	mkfs.ext4 -q -F $disk || fail mkfs
	mount -t ext4 $disk /mnt || fail mount
	i=1
	while [ $i -le 8 ]; do
		dd if=/dev/urandom of=/mnt/f$i bs=64k count=128 2>/dev/null || fail "write f$i"
		i=$((i + 1))
	done
	(cd /mnt && sha256sum f8 >sums) || fail sha256sum
	umount /mnt || fail umount
	echo "guest: FILLED"
	poweroff -f
}

trim_phase() {
	mount -t ext4 $disk /mnt || fail mount
	rm /mnt/f[1-7] || fail rm
	# What was removed may be trimmed once the journal has it.
	sync
	fstrim /mnt || fail fstrim
	(cd /mnt && sha256sum -c sums >/dev/null) || fail "checksums differ"
	sed 's/^/guest: sum /' /mnt/sums
	umount /mnt || fail umount
	echo "guest: TRIMMED"
	poweroff -f
}

check_phase() {
	# Mounting replays the journal, as on every boot after a power loss.
	mount -t ext4 $disk /mnt || fail "mount after the crash"
	umount /mnt || fail umount
	e2fsck -fn $disk || fail "e2fsck found damage"
	mount -t ext4 -o ro $disk /mnt || fail "mount to check"
	(cd /mnt && sha256sum -c sums >/dev/null) || fail "checksums differ"
	sed 's/^/guest: sum /' /mnt/sums
	umount /mnt
	echo "guest: CHECKED"
	poweroff -f
}

obey_phase() {
	. /slots.sh
	# The console would show what it is told, too.
	stty -echo
	echo "guest: OBEYS"
	while read -r order; do
		eval "$order" || fail "$order"
		echo "guest: OBEYED"
	done
}

case $(cat /proc/cmdline) in
*ashlar.phase=write*) write_phase ;;
*ashlar.phase=fill*) fill_phase ;;
*ashlar.phase=trim*) trim_phase ;;
*ashlar.phase=check*) check_phase ;;
*ashlar.phase=obey*) obey_phase ;;
*) fail "no phase" ;;
esac
