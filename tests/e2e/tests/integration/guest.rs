//! A virtual machine survives the loss of its host and of the array.

use e2e::array::Array;
use e2e::guest::{Guest, Image, Phase};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const DISK_BYTES: u64 = 128 << 20;
const BLOCK_BYTES: usize = 4096;

/// Lets a guest write until it has synced and is busy again, and kills it.
/// Gives the checksums of what it synced.
fn write_and_kill(image: &Image, disk: &str) -> Vec<String> {
    let mut guest = Guest::boot(image, disk, Phase::Write);
    guest.wait_for("SYNCED");
    guest.wait_for("noise 2");
    let checksums = guest.checksums();
    guest.kill();
    assert_eq!(
        checksums.len(),
        18,
        "20 files were written and 2 removed: {checksums:?}"
    );
    checksums
}

/// The guest's file system outlives QEMU and the array, both killed hard.
#[test]
fn a_guest_finds_its_files_after_qemu_and_the_array_were_killed() {
    let image = Image::build();
    let mut array = Array::start();
    let synced = write_and_kill(&image, &array.lun_url(2));
    array.kill();
    array.start_again();

    let mut guest = Guest::boot(&image, &array.lun_url(2), Phase::Check);
    guest.wait_for("CHECKED");
    assert_eq!(
        guest.checksums(),
        synced,
        "the guest read other checksums than it printed"
    );
}

/// The proof itself can fail: damage to a plain disk file is noticed.
#[test]
fn the_guest_notices_a_damaged_disk() {
    let image = Image::build();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("disk");
    File::create(&path).unwrap().set_len(DISK_BYTES).unwrap();
    let disk = path.to_str().unwrap();
    write_and_kill(&image, disk);
    Guest::boot(&image, disk, Phase::Check).wait_for("CHECKED");
    damage_half(&path);

    let checked = std::panic::catch_unwind(|| {
        Guest::boot(&image, disk, Phase::Check).wait_for("CHECKED");
    });
    let failure = checked.expect_err("half of the disk's blocks were zeroed");
    let message = failure.downcast_ref::<String>().unwrap();
    assert!(message.contains("guest: FAILED"), "{message}");
}

/// Zeroes every other block that holds anything.
fn damage_half(path: &Path) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut block = vec![0; BLOCK_BYTES];
    let mut used = 0;
    for at in (0..DISK_BYTES).step_by(BLOCK_BYTES) {
        file.read_exact_at(&mut block, at).unwrap();
        if block.iter().any(|&byte| byte != 0) {
            used += 1;
            if used % 2 == 0 {
                file.write_all_at(&[0; BLOCK_BYTES], at).unwrap();
            }
        }
    }
    assert!(used > 1000, "the guest wrote only {used} blocks");
}
