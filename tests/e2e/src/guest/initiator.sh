#!/bin/busybox sh
# PID 1 of a guest that is an iSCSI initiator. Brings up what a Linux host has for that,
# and does what it is told over the console: a line of shell, said to be OBEYED; or, when
# it begins with "?", its output in lines that begin with "guest: | ", with "= " and the
# exit code in the end, and ANSWERED.
export PATH=/sbin:/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs run /run
# Where open-iscsi keeps what it finds, old and new.
mkdir -p /run/lock/iscsi /etc/iscsi/nodes /etc/iscsi/send_targets /var/lib/iscsi

fail() {
	echo "guest: FAILED $*"
	poweroff -f
}

seconds() { cut -d . -f 1 /proc/uptime; }

# Waits until this line of shell succeeds; only a hang reaches the end.
wait_until() {
	end=$(($(seconds) + 400))
	until eval "$1"; do
		[ "$(seconds)" -lt $end ] || {
			echo "in vain: $1"
			return 1
		}
		sleep 0.1
	done
}

# Waits until udev has done all that it was told; its own patience is 2 minutes.
settle() { udevadm settle --timeout=600; }

word() { tr ' ' '\n' </proc/cmdline | sed -n "s/^ashlar.$1=//p"; }

network() {
	n=0
	for address in $(word addresses | tr ',' ' '); do
		ip addr add "$address/24" dev eth$n && ip link set eth$n up || return 1
		n=$((n + 1))
	done
	ip link set lo up
}

# As the modules and daemons of a distribution come up, udev first.
bring_up() {
	while read -r module; do
		insmod "/modules/$module" || fail "insmod $module"
	done </modules.list
	systemd-udevd --daemon || fail systemd-udevd
	udevadm trigger --action=add && settle || fail udevadm
	network || fail network
	echo "InitiatorName=$(word name)" >/etc/iscsi/initiatorname.iscsi
	iscsid || fail iscsid
	# Kernel messages would get between what is said here.
	dmesg -n 1
}

# From now on a login is for one path of several: it is given up in seconds, and not never.
expect_dead_paths() {
	conf=/etc/iscsi/iscsid.conf
	sed -i -e 's/^\(.*replacement_timeout\) = .*/\1 = 5/' \
		-e 's/^\(.*noop_out_interval\) = .*/\1 = 2/' \
		-e 's/^\(.*noop_out_timeout\) = .*/\1 = 10/' $conf
}

# Finds the targets behind the portal and logs in, by all the portals that it names;
# waits until so many disks are there and ready: a login has ended before the kernel has
# looked at its disks, and before they have said that they are new.
log_in() {
	iscsiadm -m discovery -t sendtargets -p "$1" && iscsiadm -m node --login &&
		wait_until "[ \$(disks '*' | wc -l) = $2 ]" && settle || return 1
	for each in $(disks '*'); do
		wait_until "sg_turs $each" || return 1
	done
}

# The disks with this LUN, one for each of its paths.
disks() {
	for each in /sys/class/scsi_disk/*:$1/device/block/*; do
		[ -b "/dev/${each##*/}" ] && echo "/dev/${each##*/}"
	done
}

# The first one of them.
disk() { disks "$1" | grep -m 1 .; }

# The disk behind the session with this address.
path_by() {
	iscsiadm -m session -P 3 |
		sed -n "/Current Portal: $1:/,/Attached scsi disk/s/.*Attached scsi disk \([a-z]*\).*/\1/p"
}

# The multipath map, with single spaces.
map() { multipath -ll mpatha | tr -s ' '; }

# A writer and verifier of this device, in the background.
start_load() {
	rm -f /load.stop
	: >/load.log
	disk-load "$1" /load.stop >/load.log 2>&1 &
	load=$!
	load_goes_on
}

lines() { wc -l </load.log; }

# It has done some more since this was asked.
load_goes_on() {
	before=$(lines)
	wait_until "[ \$(lines) -gt $((before + 3)) ] || ! kill -0 $load" && kill -0 "$load" && return 0
	cat /load.log
	return 1
}

# Ends it; succeeds when every byte was right, and no command failed.
end_load() {
	touch /load.stop
	wait "$load"
	code=$?
	sed 's/^/guest: /' /load.log
	return $code
}

answer() {
	{
		(eval "$1") </dev/null 2>&1
		code=$?
		echo
		echo "= $code"
	} | sed 's/^/guest: | /'
	echo "guest: ANSWERED"
}

bring_up
# The console would show what it is told, too.
stty -echo
echo "guest: OBEYS"
while read -r order; do
	case $order in
	\?*) answer "${order#?}" ;;
	*)
		eval "$order" || fail "$order"
		echo "guest: OBEYED"
		;;
	esac
done
