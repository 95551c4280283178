//! QEMU's own tools write images to the LUNs and read the same images back.

use e2e::array::Array;
use e2e::qemu_io::{Run, verify};
use e2e::{pattern, program};
use std::path::Path;

const IMAGE_BYTES: usize = 8 << 20;

/// Writes an image to a LUN, compares, and reads it back.
#[track_caller]
fn round_trip(url: &str, image: &Path, home: &Path) {
    let image = image.to_str().unwrap();
    program::run(
        "qemu-img",
        &["convert", "-n", "-f", "raw", "-O", "raw", image, url],
    )
    .ok();
    compare(url, image);
    let back = home.join("back");
    let back = back.to_str().unwrap();
    program::run(
        "qemu-img",
        &["convert", "-f", "raw", "-O", "raw", url, back],
    )
    .ok();
    compare(back, image);
}

/// Same bytes; what is longer must hold zeroes there.
#[track_caller]
fn compare(one: &str, other: &str) {
    program::run(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", one, other],
    )
    .ok();
}

#[test]
fn patterns_come_back_from_thin_and_thick_luns() {
    let array = Array::start();
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image");
    for lun in [0, 1] {
        // The second one overwrites the first.
        for seed in [1, 2] {
            pattern::file(&image, seed + 10 * lun as u64, IMAGE_BYTES);
            round_trip(&array.lun_url(lun), &image, home.path());
        }
    }
}

#[test]
fn a_difference_of_one_byte_is_seen() {
    let array = Array::start();
    let home = tempfile::tempdir().unwrap();
    let image = home.path().join("image");
    pattern::file(&image, 3, IMAGE_BYTES);
    round_trip(&array.lun_url(0), &image, home.path());
    let mut bytes = pattern::bytes(3, IMAGE_BYTES);
    bytes[5_000_001] ^= 1;
    std::fs::write(&image, bytes).unwrap();
    let compared = program::run(
        "qemu-img",
        &[
            "compare",
            "-f",
            "raw",
            "-F",
            "raw",
            &array.lun_url(0),
            image.to_str().unwrap(),
        ],
    );
    assert_eq!(compared.code, Some(1), "{compared:?}");
}

#[test]
fn a_file_system_comes_back_clean_also_after_a_restart() {
    let mut array = Array::start();
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("files");
    std::fs::create_dir(&files).unwrap();
    for seed in 0..20 {
        pattern::file(
            &files.join(format!("f{seed}")),
            seed,
            1000 + 9_973 * seed as usize,
        );
    }
    let image = home.path().join("ext4");
    let (image_path, files_path) = (image.to_str().unwrap(), files.to_str().unwrap());
    program::run("mkfs.ext4", &["-q", "-d", files_path, image_path, "32M"]).ok();
    round_trip(&array.lun_url(0), &image, home.path());
    let back = home.path().join("back");
    program::run("e2fsck", &["-fn", back.to_str().unwrap()]).ok();

    let ended = array.stop();
    assert_eq!(ended.code(), Some(0), "SIGTERM ends it well");
    array.start_again();
    compare(&array.lun_url(0), image_path);
}

#[test]
fn odd_offsets_and_sizes_keep_their_neighbours() {
    let array = Array::start();
    let url = array.lun_url(0);
    let mut arguments: Vec<String> = ["-f", "raw"].map(str::to_owned).to_vec();
    let mut expected = Vec::new();
    let mut at = 1;
    // From one byte to more than four pages, each a little off every grain.
    for (step, len_bytes) in [
        1, 511, 513, 4095, 4097, 65_535, 65_537, 262_143, 262_145, 1_100_001,
    ]
    .into_iter()
    .enumerate()
    {
        let value = 0x11 + u8::try_from(step).unwrap();
        arguments.extend([
            "-c".to_owned(),
            format!("write -P {value} {at} {len_bytes}"),
        ]);
        expected.push(Run {
            at,
            len_bytes,
            value,
        });
        // What lies between two runs was never written.
        expected.push(Run {
            at: at + len_bytes,
            len_bytes: 777,
            value: 0,
        });
        at += len_bytes + 777;
    }
    arguments.push(url.clone());
    program::run("qemu-io", &arguments).ok();
    verify(&url, &expected);
}

#[test]
fn verification_can_fail() {
    let array = Array::start();
    let wrong = Run {
        at: 0,
        len_bytes: 512,
        value: 7,
    };
    let checked = std::panic::catch_unwind(|| verify(&array.lun_url(0), &[wrong]));
    assert!(
        checked.is_err(),
        "an unwritten sector is not full of sevens"
    );
}
