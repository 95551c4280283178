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

# Waits until this line of shell succeeds; only a hang reaches the end.
wait_until() {
	tries=0
	until eval "$1"; do
		tries=$((tries + 1))
		[ $tries -lt 1200 ] || {
			echo "in vain: $1"
			return 1
		}
		sleep 0.1
	done
}

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
	udevadm trigger --action=add && udevadm settle || fail udevadm
	network || fail network
	echo "InitiatorName=$(word name)" >/etc/iscsi/initiatorname.iscsi
	iscsid || fail iscsid
	# Kernel messages would get between what is said here.
	dmesg -n 1
}

# Finds the targets behind the portal and logs in, by all the portals that it names.
log_in() {
	iscsiadm -m discovery -t sendtargets -p "$1" && iscsiadm -m node --login &&
		udevadm settle
}

# The disk with this LUN, behind any of its paths.
disk() {
	for each in /sys/class/scsi_disk/*:"$1"; do
		[ -e "$each" ] || continue
		echo "/dev/$(ls "$each/device/block")"
		return 0
	done
	return 1
}

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
