//! Tests of drives on real files: round trips, refusals, many operations at once.

use super::*;
use crate::{OpenErrorKind, run, run_over, setup};
use base::Prng;
use futures_util::future::join_all;
use std::fs::{self, OpenOptions};
use std::future::{Future, poll_fn};
use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;
const BLOCK: u64 = BLOCK_BYTES as u64;

/// Runs `test` over a drive file in memory and over one where temporary files
/// go, on a disk as a rule; on the kind of ring that the kernel prefers, and on
/// the plain one that older kernels give.
fn with_drives<F: Future<Output = ()>>(
    capacity_bytes: u64,
    test: impl Fn(RealWorld, RealDrive, File) -> F,
) {
    for ring in [setup::ring, setup::plain] {
        let dirs = [
            tempfile::tempdir().unwrap(),
            tempfile::tempdir_in("/dev/shm").unwrap(),
        ];
        for dir in dirs {
            run_over(ring, |world| {
                let (drive, file) = make(&world, &dir, capacity_bytes);
                test(world, drive, file)
            })
            .unwrap();
        }
    }
}

/// A drive, and its file as somebody else sees it.
fn make(world: &RealWorld, dir: &TempDir, capacity_bytes: u64) -> (RealDrive, File) {
    let path = dir.path().join("drive");
    RealDrive::create_file(&path, capacity_bytes).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    (RealDrive::open(world, &path).unwrap(), file)
}

/// A drive over an open file that is not what drives are made of, to have the
/// kernel's errors without privileges.
fn strange(world: &RealWorld, path: &str) -> RealDrive {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let geometry = Geometry {
        capacity_bytes: MIB,
        rotational: false,
        discards: false,
    };
    RealDrive::over(
        world,
        Opened {
            file,
            geometry,
            direct: false,
            syncs: true,
            may_block: false,
            serial: None,
            path: None,
        },
    )
}

fn pattern(world: &RealWorld, seed: u64, len: usize) -> Slice {
    let mut buf = world.buffers().bytes(len);
    Prng::from_seed(seed).fill(buf.bytes_mut().unwrap());
    buf.freeze()
}

async fn read(
    world: &RealWorld,
    drive: &RealDrive,
    at: u64,
    len: usize,
) -> Result<Slice, DriveError> {
    let (buf, result) = drive
        .read(DriveOffset(at), world.buffers().bytes(len))
        .await;
    result.map(|()| buf.freeze())
}

#[test]
fn what_is_written_is_read_back_and_is_in_the_file() {
    with_drives(4 * MIB, |world, drive, file| async move {
        for (at, len) in [
            (0, 4096),
            (MIB, 2 << 20),
            (4 * MIB - BLOCK, 4096),
            (BLOCK, 0),
        ] {
            let data = pattern(&world, at, len);
            drive.write(DriveOffset(at), data.clone()).await.unwrap();
            drive.flush().await.unwrap();
            assert_eq!(
                read(&world, &drive, at, len).await.unwrap().bytes(),
                data.bytes()
            );
            let mut seen = vec![0; len];
            file.read_exact_at(&mut seen, at).unwrap();
            assert_eq!(Some(&seen[..]), data.bytes());
        }
    });
}

#[test]
fn a_durable_write_is_in_the_file() {
    with_drives(MIB, |world, drive, file| async move {
        let data = pattern(&world, 3, 2 * BLOCK_BYTES);
        drive
            .write_durable(DriveOffset(BLOCK), data.clone())
            .await
            .unwrap();
        let mut seen = vec![0; data.len()];
        file.read_exact_at(&mut seen, BLOCK).unwrap();
        assert_eq!(Some(&seen[..]), data.bytes());
        let outside = drive
            .write_durable(DriveOffset(MIB), data)
            .await
            .unwrap_err();
        assert_eq!(outside.kind, DriveErrorKind::OutOfRange);
    });
}

#[test]
fn data_that_is_not_aligned_in_memory_is_written() {
    with_drives(MIB, |world, drive, _| async move {
        let data = pattern(&world, 1, 3 * BLOCK_BYTES).slice(1000, BLOCK_BYTES);
        drive.write(DriveOffset(BLOCK), data.clone()).await.unwrap();
        let back = read(&world, &drive, BLOCK, BLOCK_BYTES).await.unwrap();
        assert_eq!(back.bytes(), data.bytes());
    });
}

#[test]
fn outside_and_off_grain_is_refused_before_it_reaches_the_kernel() {
    with_drives(MIB, |world, drive, file| async move {
        let cases = [
            (512, 4096),
            (0, 512),
            (MIB, 4096),
            (MIB - 4096, 8192),
            (u64::MAX - 4095, 4096),
        ];
        for (at, len) in cases {
            let at = DriveOffset(at);
            let (buf, read) = drive.read(at, world.buffers().bytes(len)).await;
            assert_eq!(buf.len(), len, "the buffer comes back");
            let write = drive.write(at, pattern(&world, 0, len)).await;
            let discard = drive.discard(at, len as u64).await;
            for (result, operation) in [(read, "read"), (write, "write"), (discard, "discard")] {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.kind, error.operation),
                    (DriveErrorKind::OutOfRange, operation)
                );
                assert_eq!((error.at, error.len_bytes), (at, len as u64));
            }
        }
        assert_eq!(file.metadata().unwrap().len(), MIB);
    });
}

#[test]
fn more_operations_than_the_ring_holds_all_end_well() {
    const OPERATIONS: u64 = 5_000;
    with_drives(OPERATIONS * BLOCK, |world, drive, _| async move {
        let writes = (0..OPERATIONS)
            .map(|i| drive.write(DriveOffset(i * BLOCK), pattern(&world, i, BLOCK_BYTES)));
        for result in join_all(writes).await {
            result.unwrap();
        }
        let reads = (0..OPERATIONS).map(|i| read(&world, &drive, i * BLOCK, BLOCK_BYTES));
        for (i, result) in (0..).zip(join_all(reads).await) {
            assert_eq!(
                result.unwrap().bytes(),
                pattern(&world, i, BLOCK_BYTES).bytes()
            );
        }
    });
}

#[test]
fn many_tasks_share_the_ring_over_many_turns() {
    with_drives(MIB, |world, drive, _| async move {
        let drive = Rc::new(drive);
        let left = Rc::new(std::cell::Cell::new(64));
        for task in 0..64 {
            let (world, drive, left) = (world.clone(), Rc::clone(&drive), Rc::clone(&left));
            world.clone().spawn(async move {
                let at = task * BLOCK;
                for round in 0..50 {
                    let data = pattern(&world, round << 8 | task, BLOCK_BYTES);
                    drive.write(DriveOffset(at), data.clone()).await.unwrap();
                    let back = read(&world, &drive, at, BLOCK_BYTES).await.unwrap();
                    assert_eq!(back.bytes(), data.bytes());
                }
                left.set(left.get() - 1);
            });
        }
        while left.get() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

/// Polls `future` once and drops it.
async fn start_and_drop(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_dropped_operation_keeps_its_buffer_until_the_kernel_is_done() {
    with_drives(MIB, |world, drive, _| async move {
        let data = pattern(&world, 7, BLOCK_BYTES);
        drive.write(DriveOffset(0), data.clone()).await.unwrap();
        let before = world.buffers().outstanding_bytes();
        for _ in 0..1000 {
            start_and_drop(drive.read(DriveOffset(0), world.buffers().bytes(BLOCK_BYTES))).await;
        }
        let held = world.buffers().outstanding_bytes() - before;
        assert_eq!(held, 1000 * BLOCK_BYTES, "no buffer may be taken again yet");
        while world.buffers().outstanding_bytes() > before {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            read(&world, &drive, 0, BLOCK_BYTES).await.unwrap().bytes(),
            data.bytes()
        );
    });
}

#[test]
fn a_world_that_ends_waits_for_the_kernel_and_returns_all_buffers() {
    let dir = tempfile::tempdir().unwrap();
    let (buffers, before) = run(|world| {
        let (drive, _) = make(&world, &dir, MIB);
        async move {
            let buffers = world.buffers().clone();
            let before = buffers.outstanding_bytes();
            for i in 0..200 {
                start_and_drop(drive.write(DriveOffset(i * BLOCK), pattern(&world, i, 4096))).await;
            }
            (buffers, before)
        }
    })
    .unwrap();
    assert_eq!(buffers.outstanding_bytes(), before);
}

#[test]
fn a_file_cut_off_under_us_gives_an_error_and_not_old_bytes() {
    with_drives(MIB, |world, drive, file| async move {
        file.set_len(MIB / 2 + 1000).unwrap();
        for (at, len) in [
            (MIB / 2, 4096),
            (MIB - BLOCK, 4096),
            (MIB / 2 - BLOCK, 8192),
        ] {
            let error = read(&world, &drive, at, len).await.unwrap_err();
            assert_eq!(error.kind, DriveErrorKind::Media, "{error}");
            assert!(error.context.contains("cut off"), "{error}");
        }
        read(&world, &drive, MIB / 2 - BLOCK, 4096).await.unwrap();
    });
}

#[test]
fn no_space_under_a_drive_is_told() {
    run(|world| async move {
        let drive = strange(&world, "/dev/full");
        let data = pattern(&world, 0, BLOCK_BYTES);
        let error = drive.write(DriveOffset(BLOCK), data).await.unwrap_err();
        assert_eq!(error.kind, DriveErrorKind::NoSpace, "{error}");
        assert_eq!((error.operation, error.at), ("write", DriveOffset(BLOCK)));
    })
    .unwrap();
}

#[test]
fn an_io_error_is_a_media_error() {
    run(|world| async move {
        // Nothing is mapped at the bottom of this process's memory, and the
        // kernel says EIO to a read there.
        let drive = strange(&world, "/proc/self/mem");
        let error = read(&world, &drive, 0, BLOCK_BYTES).await.unwrap_err();
        assert_eq!(error.kind, DriveErrorKind::Media, "{error}");
    })
    .unwrap();
}

#[test]
fn a_flush_that_fails_is_told() {
    run(|world| async move {
        // Character devices of memory have nothing to sync and say EINVAL.
        let error = strange(&world, "/dev/full").flush().await.unwrap_err();
        assert_eq!(
            (error.kind, error.operation),
            (DriveErrorKind::Other, "flush")
        );
    })
    .unwrap();
}

#[test]
fn a_discard_of_a_file_keeps_its_space() {
    with_drives(MIB, |world, drive, file| async move {
        use std::os::unix::fs::MetadataExt;
        drive
            .write(DriveOffset(0), pattern(&world, 0, 8192))
            .await
            .unwrap();
        let before = file.metadata().unwrap().blocks();
        drive.discard(DriveOffset(0), MIB).await.unwrap();
        assert_eq!(file.metadata().unwrap().blocks(), before);
        assert!(!drive.geometry().discards);
    });
}

#[test]
fn a_transfer_goes_on_where_the_kernel_stopped() {
    let mut direct = Progress {
        operation: "read",
        at: DriveOffset(0),
        len: 16384,
        done: 0,
        grain: 4096,
        in_worker: false,
        retries: Retries::some(),
    };
    direct.advance(Ok(4096 + 512)).unwrap();
    assert_eq!((direct.next().offset, direct.next().done), (4096, 4096));
    let at_once = direct.advance(failed(libc::EAGAIN)).unwrap();
    assert_eq!(at_once, None);
    assert!(direct.next().in_worker, "a worker may block");
    direct.advance(Ok(12288)).unwrap();
    assert!(direct.is_complete());
}

fn failed(errno: i32) -> io::Result<usize> {
    Err(io::Error::from_raw_os_error(errno))
}

fn write_of_a_block(retries: Retries) -> Progress {
    Progress {
        operation: "write",
        at: DriveOffset(0),
        len: 4096,
        done: 0,
        grain: 4096,
        in_worker: false,
        retries,
    }
}

#[test]
fn what_the_machine_is_short_of_is_waited_for() {
    let mut write = write_of_a_block(Retries::some());
    let said = [
        libc::EAGAIN,
        libc::EAGAIN,
        libc::ENOMEM,
        libc::EAGAIN,
        libc::EINTR,
        libc::EBUSY,
    ];
    let pauses = said.map(|errno| write.advance(failed(errno)).unwrap());
    assert_eq!(pauses[0], None, "the worker's turn comes at once");
    assert!(
        pauses[1..].iter().all(Option::is_some) && pauses.is_sorted(),
        "{pauses:?}"
    );
    write.advance(Ok(4096)).unwrap();
    assert!(write.is_complete());
}

#[test]
fn what_the_machine_stays_short_of_is_an_error_in_the_end() {
    let mut write = write_of_a_block(Retries::some());
    let error = (0..100).find_map(|_| write.advance(failed(libc::ENOMEM)).err());
    assert_eq!(error.unwrap().kind, DriveErrorKind::Other, "never for ever");
    // What the page cache tells of other writes it tells once.
    let mut cached = write_of_a_block(Retries::none());
    assert!(cached.advance(failed(libc::ENOMEM)).is_err());
    // And what is about the drive is not tried again.
    let mut write = write_of_a_block(Retries::some());
    let error = write.advance(failed(libc::ENXIO)).unwrap_err();
    assert_eq!(error.kind, DriveErrorKind::Gone);
}

#[test]
fn a_file_that_is_cut_off_is_seen() {
    with_drives(MIB, |_, drive, file| async move {
        drive.check().await.unwrap();
        file.set_len(2 * MIB).unwrap();
        drive.check().await.unwrap();
        file.set_len(MIB - BLOCK).unwrap();
        let error = drive.check().await.unwrap_err();
        assert_eq!(error.kind, DriveErrorKind::Gone);
        assert!(error.to_string().contains("cut off"), "{error}");
        file.set_len(MIB).unwrap();
        drive.check().await.unwrap();
    });
}

#[test]
fn a_drive_survives_its_file_being_unlinked() {
    let dir = tempfile::tempdir().unwrap();
    run(|world| {
        let (drive, _) = make(&world, &dir, MIB);
        fs::remove_file(dir.path().join("drive")).unwrap();
        async move {
            drive
                .write(DriveOffset(0), pattern(&world, 0, 4096))
                .await
                .unwrap();
            read(&world, &drive, 0, 4096).await.unwrap();
            let error = drive.check().await.unwrap_err();
            assert_eq!(error.kind, DriveErrorKind::Other);
            assert!(error.context.contains("deleted"), "{error}");
        }
    })
    .unwrap();
}

#[test]
fn a_drive_tells_that_its_path_leads_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    run(|world| {
        let (real, away) = (dir.path().join("real"), dir.path().join("away"));
        let link = dir.path().join("link");
        RealDrive::create_file(&real, MIB).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let drive = RealDrive::open(&world, &link).unwrap();
        async move {
            // The path is asked apart, and its answer counts in the next check.
            let check = async || {
                let _ = drive.check().await;
                while drive.path_now.is_asked.get() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                drive.check().await
            };
            check().await.unwrap();
            let assert_elsewhere = async || {
                let error = check().await.unwrap_err();
                assert_eq!(error.kind, DriveErrorKind::Other);
                let path = link.display().to_string();
                assert!(error.context.contains(&path), "{error}");
            };
            fs::rename(&real, &away).unwrap();
            assert_elsewhere().await;
            // A copy is another file.
            fs::copy(&away, &real).unwrap();
            assert_elsewhere().await;
            fs::rename(&away, &real).unwrap();
            check().await.unwrap();
            fs::remove_file(&link).unwrap();
            assert_elsewhere().await;
            fs::hard_link(&real, &link).unwrap();
            check().await.unwrap();
        }
    })
    .unwrap();
}

#[test]
#[ignore = "needs root and a free loop device"]
fn a_block_device_is_a_drive_that_discards() {
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("below");
    fs::write(&below, vec![1; MIB as usize]).unwrap();
    let out = Command::new("losetup")
        .args(["--find", "--show"])
        .arg(&below)
        .output()
        .unwrap();
    assert!(out.status.success(), "losetup: {out:?}");
    let device = String::from_utf8(out.stdout).unwrap();
    let path = Path::new(device.trim());
    run(|world| async move {
        let drive = RealDrive::open(&world, path).unwrap();
        let geometry = drive.geometry();
        assert_eq!((geometry.capacity_bytes, geometry.discards), (MIB, true));
        // Its node is in memory, and it is not.
        assert!(drive.syncs && drive.direct && !drive.suspicion.in_worker());
        assert_eq!(
            RealDrive::open(&world, path).err().unwrap().kind,
            OpenErrorKind::InUse
        );
        let data = pattern(&world, 1, BLOCK_BYTES);
        drive
            .write_durable(DriveOffset(0), data.clone())
            .await
            .unwrap();
        drive
            .discard(DriveOffset(BLOCK), MIB - BLOCK)
            .await
            .unwrap();
        drive.flush().await.unwrap();
        assert_eq!(
            read(&world, &drive, 0, BLOCK_BYTES).await.unwrap().bytes(),
            data.bytes()
        );
    })
    .unwrap();
    let left = fs::metadata(&below).unwrap().blocks() * 512;
    assert!(
        Command::new("losetup")
            .arg("--detach")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
    assert!(left < MIB / 2, "{left} bytes are still taken");
}
