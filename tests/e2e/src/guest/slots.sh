# What a guest can be told to do in its phase "obey", beside all that a shell can.

# The file system's own checker, which changes nothing.
check_ext4() { e2fsck -fn "$1"; }
check_xfs() { xfs_repair -n "$1" 2>&1; }

# Files of random content that the disk notices, and their sums.
fill() {
	for i in 1 2 3 4 5 6 7 8; do
		dd if=/dev/urandom of="$1/f$i" bs=64k count=128 2>/dev/null || return 1
	done
	(cd "$1" && sha256sum f? >sums) && sync
}

check_filled() { (cd "$1" && sha256sum -c sums >/dev/null); }

# The n-th round writes over the files of one of three slots, in place. A slot has sums
# only while they, and all that they are of, are on the disk.
write_round() {
	slot=/mnt/s$(($1 % 3))
	mkdir -p $slot && rm -f $slot/sums && sync || return 1
	for file in a b c; do
		dd if=/dev/urandom of=$slot/$file bs=40000 count=8 conv=notrunc 2>/dev/null || return 1
	done
	echo "$1" >$slot/number && sync || return 1
	(cd $slot && sha256sum a b c number >new && sync && mv new sums && sync) || return 1
	echo "guest: round $1"
}

rounds() {
	n=1
	while [ ! -e /stop ]; do
		write_round $n || fail "round $n"
		n=$((n + 1))
	done
}

end_rounds() { touch /stop && wait; }

# Every slot that has sums is as these say; tells the rounds that they are of.
check_slots() {
	for sums in "$1"/s?/sums; do
		slot=${sums%/sums}
		(cd "$slot" && sha256sum -c sums >/dev/null) || return 1
		echo "guest: slot $1 $(cat "$slot/number")"
	done
}
