//! File systems of a guest, and snapshots of the volume below them: space that comes back,
//! states that mount clean, and files that are there again.

use e2e::array::Array;
use e2e::guest::{Disk, Guest, Image, Phase};
use e2e::site_text::OnePool;

const MIB: u64 = 1 << 20;
/// Seven of the eight files that a guest fills its disk with.
const REMOVED: u64 = 56 * MIB;

/// XFS wants 300 MiB at least.
const POOL: OnePool = OnePool {
    level: "10",
    drives: 2,
    spares: 0,
    drive_mib: 704,
    volume_mib: 384,
};

/// A file system, and what it needs in order to be mounted where nothing may be written:
/// its log can't be replayed there.
#[derive(Clone, Copy)]
struct Fs {
    name: &'static str,
    make: &'static str,
    as_it_is: &'static str,
}

const EXT4: Fs = Fs {
    name: "ext4",
    make: "mkfs.ext4 -q -F /dev/vda",
    as_it_is: "ro,noload",
};

/// One beside the volume that it is of has the same UUID.
const XFS: Fs = Fs {
    name: "xfs",
    make: "mkfs.xfs -q -f /dev/vda",
    as_it_is: "ro,norecovery,nouuid",
};

fn mount(guest: &mut Guest, fs: Fs) {
    guest.order(&format!("mount -t {} /dev/vda /mnt", fs.name));
}

fn unmount(guest: &mut Guest) {
    // Only what the disk has counts from here on.
    guest.order("umount /mnt && blockdev --flushbufs /dev/vda");
}

fn check(guest: &mut Guest, fs: Fs) {
    guest.order(&format!("check_{} /dev/vda", fs.name));
}

/// Bytes mapped in the volume and in the pool, once no page lies over another; printed, too.
fn mapped(array: &Array, fs: Fs, when: &str) -> (u64, u64) {
    array.wait_for(&["pool", "show", "p"], |pool| pool["backed_bytes"] == 0);
    let of = |arguments: &[&str]| array.json(arguments)["mapped_bytes"].as_u64().unwrap();
    let mapped = (of(&["volume", "show", "v"]), of(&["pool", "show", "p"]));
    let (volume, pool) = (mapped.0 >> 10, mapped.1 >> 10);
    println!(
        "{}, {when}: {volume} KiB of the volume mapped, {pool} KiB of the pool",
        fs.name
    );
    mapped
}

/// Removes seven of the eight files and trims; between, XFS has to be through with them.
fn remove_and_trim(guest: &mut Guest, fs: Fs) {
    mount(guest, fs);
    guest.order("rm /mnt/f[1-7]");
    unmount(guest);
    mount(guest, fs);
    guest.order("fstrim /mnt");
    unmount(guest);
}

/// What is removed and trimmed is free, once no snapshot has it; restoring brings it back.
fn space_and_restoring(fs: Fs) {
    let (image, array) = (Image::build(), Array::start_with(&POOL.text()));
    let mut guest = Guest::boot(&image, &array.lun_url(0), Phase::Obey);
    guest.order(fs.make);
    mount(&mut guest, fs);
    guest.order("fill /mnt");
    unmount(&mut guest);
    array.command(&["snapshot", "create", "v@full"]).ok();
    let full = mapped(&array, fs, "64 MiB in files, and a snapshot");
    assert!(full.0 >= 64 * MIB);

    remove_and_trim(&mut guest, fs);
    let trimmed = mapped(&array, fs, "56 MiB of them removed and trimmed");
    // Pages that something else is in, too, stay whole; and inodes are written.
    assert!(trimmed.0 + REMOVED - 4 * MIB <= full.0);
    assert!(trimmed.0 + REMOVED + 4 * MIB >= full.0);
    assert!(trimmed.1 >= full.1, "the snapshot has it all");

    let restore = [
        "snapshot",
        "restore",
        "v@full",
        "--discard",
        "--force",
        "--yes",
    ];
    array.command(&restore).ok();
    assert_eq!(mapped(&array, fs, "restored"), full);
    mount(&mut guest, fs);
    guest.order("check_filled /mnt");
    unmount(&mut guest);
    check(&mut guest, fs);

    remove_and_trim(&mut guest, fs);
    array
        .command(&["snapshot", "delete", "--yes", "--at-once", "v@full"])
        .ok();
    let free = mapped(&array, fs, "removed, trimmed, and the snapshot deleted");
    assert_eq!(free.0, free.1, "the volume has all that is mapped");
    assert!(free.0 + REMOVED - 4 * MIB <= full.0);
    check(&mut guest, fs);
}

/// The number of the newest round that the guest told of.
fn round(guest: &Guest) -> u64 {
    let said = guest.said("round");
    said.last().map_or(0, |number| number.parse().unwrap())
}

fn wait_rounds(guest: &mut Guest, more: u64) {
    let wanted = round(guest) + more;
    guest.wait_for(&format!("round {wanted}"));
}

/// The rounds of the slots that are whole below a directory.
fn whole_slots(guest: &mut Guest, directory: &str) -> Vec<u64> {
    guest.order(&format!("check_slots {directory}"));
    let said = guest.said("slot");
    let here = said.iter().filter_map(|slot| slot.split_once(' '));
    let here = here.filter(|(place, _)| *place == directory);
    here.map(|(_, number)| number.parse().unwrap()).collect()
}

/// Shows a volume or snapshot behind a target of its own, and gives its URL.
fn export(array: &Array, volume: &str, number: usize) -> String {
    let target = format!("iqn.2026-11.dev.ashlar:s{number}");
    let create = ["export", "create", "--any", &target, "--volume", volume];
    array.command(&create).ok();
    format!("{}/{target}/0", array.portal_url())
}

/// Snapshots while the guest writes: one in the middle of it, and one while the file
/// system is frozen, as backup software has it done.
fn snapshots_mount(fs: Fs) {
    let (image, array) = (Image::build(), Array::start_with(&POOL.text()));
    let mut guest = Guest::boot(&image, &array.lun_url(0), Phase::Obey);
    guest.order(fs.make);
    mount(&mut guest, fs);
    guest.order("rounds &");
    wait_rounds(&mut guest, 4);
    array.command(&["snapshot", "create", "v@running"]).ok();
    let running = round(&guest);
    wait_rounds(&mut guest, 4);
    guest.order("fsfreeze --freeze /mnt");
    array.command(&["snapshot", "create", "v@frozen"]).ok();
    let frozen = round(&guest);
    guest.order("fsfreeze --unfreeze /mnt");
    wait_rounds(&mut guest, 4);
    guest.order("end_rounds");
    let last = round(&guest);
    unmount(&mut guest);
    drop(guest);

    // One that may be written to is as a disk after a power cut, in every way.
    array.command(&["volume", "clone", "v@running", "c"]).ok();
    let clone = export(&array, "c", 0);
    let mut guest = Guest::boot(&image, &clone, Phase::Obey);
    mount(&mut guest, fs);
    let slots = whole_slots(&mut guest, "/mnt");
    let newest = slots.iter().max().copied();
    println!("{}: {running} rounds, and the clone has {slots:?}", fs.name);
    assert!(slots.len() >= 2, "one at most was being written: {slots:?}");
    assert!(newest >= Some(running) && newest < Some(last), "{slots:?}");
    unmount(&mut guest);
    check(&mut guest, fs);
    drop(guest);

    // One that is write-protected, beside the volume as it is now.
    let snapshot = export(&array, "v@frozen", 1);
    let disk = |file, read_only| Disk { file, read_only };
    let volume = array.lun_url(0);
    let disks = [disk(&volume, false), disk(&snapshot, true)];
    let mut guest = Guest::boot_with(&image, &disks, Phase::Obey);
    mount(&mut guest, fs);
    assert_eq!(whole_slots(&mut guest, "/mnt").iter().max(), Some(&last));
    let (name, how) = (fs.name, fs.as_it_is);
    guest.order(&format!("mount -t {name} -o {how} /dev/vdb /peek"));
    let slots = whole_slots(&mut guest, "/peek");
    let newest = slots.iter().max().copied();
    println!("{name}: {frozen} rounds, and the snapshot has {slots:?}");
    assert!(slots.len() >= 2, "one at most was being written: {slots:?}");
    assert!(newest >= Some(frozen) && newest < Some(last), "{slots:?}");
}

#[test]
fn ext4_gives_space_back_and_is_restored() {
    space_and_restoring(EXT4);
}

#[test]
fn xfs_gives_space_back_and_is_restored() {
    space_and_restoring(XFS);
}

#[test]
fn snapshots_of_a_busy_ext4_mount_clean() {
    snapshots_mount(EXT4);
}

#[test]
fn snapshots_of_a_busy_xfs_mount_clean() {
    snapshots_mount(XFS);
}
