//! Tests of opening and creating drive files: locks, sizes, refusals.

use super::*;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// One directory in memory, and one where temporary files go, on a disk as a rule.
fn directories() -> [TempDir; 2] {
    [
        tempfile::tempdir().unwrap(),
        tempfile::tempdir_in("/dev/shm").unwrap(),
    ]
}

#[test]
fn a_created_file_has_its_space_and_its_capacity() {
    for dir in directories() {
        let path = dir.path().join("drive");
        create_file(&path, 3 * MIB).unwrap();
        let reserved = fs::metadata(&path).unwrap().blocks() * 512;
        assert!(reserved >= 3 * MIB, "{reserved} bytes are reserved");
        assert_eq!(open(&path).unwrap().geometry.capacity_bytes, 3 * MIB);
    }
}

#[test]
fn a_file_in_memory_needs_no_flush() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("drive");
    create_file(&path, MIB).unwrap();
    let opened = open(&path).unwrap();
    assert!(!opened.syncs && !opened.direct && !opened.geometry.rotational);
}

#[test]
fn creating_never_overwrites() {
    for dir in directories() {
        let path = dir.path().join("drive");
        fs::write(&path, "precious").unwrap();
        let error = create_file(&path, MIB).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::Exists, "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }
}

#[test]
fn too_little_space_is_told_and_leaves_nothing() {
    for dir in directories() {
        let path = dir.path().join("drive");
        let error = create_file(&path, 1 << 60).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::NoSpace, "{error}");
        let text = error.to_string();
        for part in [path.to_str().unwrap(), "1024 PiB are wanted"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!path.exists());
    }
}

#[test]
fn a_file_with_holes_gets_its_space_and_keeps_what_it_holds() {
    for dir in directories() {
        let path = dir.path().join("drive");
        create_file(&path, 2 * MIB).unwrap();
        assert_eq!(reserve_holes(&path).unwrap(), 0, "it has all its space");
        let file = File::create(&path).unwrap();
        file.set_len(4 * MIB).unwrap();
        let data = vec![7; 8192];
        file.write_all_at(&data, MIB).unwrap();
        let lacked = reserve_holes(&path).unwrap();
        assert!(lacked >= 3 * MIB, "{lacked}");
        assert_eq!(reserve_holes(&path).unwrap(), 0);
        let held = fs::read(&path).unwrap();
        let at = MIB as usize;
        assert_eq!(held.len() as u64, 4 * MIB);
        assert_eq!(held[at..at + data.len()], data);
        assert!(
            held[..at]
                .iter()
                .chain(&held[at + data.len()..])
                .all(|byte| *byte == 0)
        );
        let taken = fs::metadata(&path).unwrap().blocks();
        file.set_len(8 << 40).unwrap();
        let error = reserve_holes(&path).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::NoSpace, "{error}");
        assert_eq!(
            fs::metadata(&path).unwrap().blocks(),
            taken,
            "nothing is taken"
        );
    }
}

#[test]
fn a_size_off_the_block_grain_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for size in [0, 4095, MIB + 512] {
        let path = dir.path().join("drive");
        assert_eq!(
            create_file(&path, size).unwrap_err().kind,
            OpenErrorKind::Unfit
        );
        assert!(!path.exists());
    }
}

#[test]
fn a_directory_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("missing").join("drive");
    assert_eq!(
        create_file(&path, MIB).unwrap_err().kind,
        OpenErrorKind::NotFound
    );
    assert_eq!(open(&path).unwrap_err().kind, OpenErrorKind::NotFound);
}

#[test]
fn what_is_no_drive_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path(), Path::new("/dev/null")] {
        let error = open(path).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::Unfit, "{error}");
    }
    let small = dir.path().join("small");
    fs::write(&small, "less than a block").unwrap();
    assert_eq!(open(&small).unwrap_err().kind, OpenErrorKind::Unfit);
}

#[test]
fn a_ragged_end_is_left_unused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("drive");
    fs::write(&path, vec![0; 8192 + 100]).unwrap();
    assert_eq!(open(&path).unwrap().geometry.capacity_bytes, 8192);
}

#[test]
fn a_second_opener_is_told_that_the_drive_is_in_use() {
    for dir in directories() {
        let path = dir.path().join("drive");
        create_file(&path, MIB).unwrap();
        let first = open(&path).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind, OpenErrorKind::InUse, "{error}");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        drop(first);
        open(&path).unwrap();
    }
}

#[test]
fn zeroes_are_written_where_space_can_not_be_reserved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("drive");
    let mut file = File::create(&path).unwrap();
    write_zeroes(&mut file, MIB + 4096).unwrap();
    assert_eq!(fs::read(&path).unwrap(), vec![0; (MIB + 4096) as usize]);
}

#[test]
fn a_device_that_the_kernel_knows_may_become_ready() {
    let kind = |errno, is_known| {
        let error = io::Error::from_raw_os_error(errno);
        of_device(Path::new("/dev/sdx"), &error, is_known).kind
    };
    for errno in [libc::EIO, libc::ENXIO, libc::ENOMEDIUM] {
        assert_eq!(kind(errno, true), OpenErrorKind::NotReady);
        assert_eq!(kind(errno, false), OpenErrorKind::Other);
    }
    assert_eq!(kind(libc::EBUSY, true), OpenErrorKind::InUse);
}

#[test]
fn what_the_kernel_says_becomes_a_kind() {
    let cases = [
        (libc::ENOENT, OpenErrorKind::NotFound),
        (libc::EACCES, OpenErrorKind::Denied),
        (libc::EROFS, OpenErrorKind::Denied),
        (libc::EBUSY, OpenErrorKind::InUse),
        (libc::EEXIST, OpenErrorKind::Exists),
        (libc::ENOSPC, OpenErrorKind::NoSpace),
        (libc::EIO, OpenErrorKind::Other),
    ];
    for (errno, kind) in cases {
        let error = OpenError::said(Path::new("drives/3"), &io::Error::from_raw_os_error(errno));
        assert_eq!(error.kind, kind);
        assert!(
            error
                .to_string()
                .starts_with(&format!("drives/3: {kind}: ")),
            "{error}"
        );
    }
}
