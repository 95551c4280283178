//! Tests of drives that hang, beside drives that do not.
//!
//! A failure here shows as a hang: nothing is timed.

use super::*;
use crate::{RealDrive, RealWorld, run, suspicion::Suspicion};
use base::{BLOCK_BYTES, DriveOffset};
use engine::World;
use engine::drive::Drive;
use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::path::Path;
use std::time::Duration;

mod fuse;

/// More than the kernel has workers for, without more being asked for.
const MANY: usize = 100;

/// A file that gives nothing until something is written to the other end.
fn hanging() -> (Arc<File>, PipeWriter) {
    let (reader, writer): (PipeReader, PipeWriter) = io::pipe().unwrap();
    // SAFETY: the descriptor is the reader's, which gives it away.
    let file = unsafe { File::from_raw_fd(reader.into_raw_fd()) };
    (Arc::new(file), writer)
}

fn read_of(world: &RealWorld, target: Target<'_>) -> Operation {
    let transfer = Transfer {
        offset: 0,
        done: 0,
        in_worker: false,
    };
    let buf = world.buffers().data(BLOCK_BYTES);
    world.ring().read(target, buf, transfer)
}

#[test]
fn a_drive_that_hangs_takes_few_workers_and_all_of_its_reads_end_in_the_end() {
    run(|world| async move {
        let (file, mut writer) = hanging();
        let suspicion = Suspicion::new(true);
        let target = Target {
            file: &file,
            suspicion: &suspicion,
        };
        let reads: Vec<_> = (0..MANY).map(|_| read_of(&world, target)).collect();
        tokio::task::yield_now().await;
        let with_kernel = world.ring().shared.queue.borrow().under_way;
        assert!(with_kernel < 16, "{with_kernel} are with the kernel");
        // A drive beside it.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sound");
        fs::write(&path, [7; BLOCK_BYTES]).unwrap();
        let sound = Arc::new(File::open(&path).unwrap());
        let beside = Target {
            file: &sound,
            suspicion: &Suspicion::new(true),
        };
        assert_eq!(read_of(&world, beside).await.0.unwrap(), BLOCK_BYTES);
        writer.write_all(&[1; MANY]).unwrap();
        drop(writer);
        for read in reads {
            read.await.0.unwrap();
        }
        let queue = world.ring().shared.queue.borrow();
        assert_eq!(queue.under_way, 0);
    })
    .unwrap();
}

#[test]
fn a_ring_with_a_drive_that_hangs_is_dropped_all_the_same() {
    let (file, _writer) = hanging();
    run(|world| async move {
        let suspicion = Suspicion::new(true);
        let target = Target {
            file: &file,
            suspicion: &suspicion,
        };
        for _ in 0..MANY {
            drop(read_of(&world, target));
        }
        tokio::task::yield_now().await;
    })
    .unwrap();
}

#[test]
fn drives_of_a_submission_that_took_long_are_left_to_workers() {
    run(|world| async move {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("drive");
        fs::write(&path, [7; BLOCK_BYTES]).unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let suspicion = Suspicion::new(false);
        let target = Target {
            file: &file,
            suspicion: &suspicion,
        };
        read_of(&world, target).await.0.unwrap();
        assert!(!suspicion.in_worker());
        let queued = read_of(&world, target);
        world.ring().shared.queue.borrow_mut().entered(queue::LONG);
        drop(queued);
        assert!(!suspicion.in_worker(), "it had been started before");
        let entry = opcode::Read::new(descriptor(&file), std::ptr::null_mut(), 0).build();
        let operation = world
            .ring()
            .start_transfer(entry, target, false, KernelBuffers::Nothing);
        world.ring().shared.queue.borrow_mut().entered(queue::LONG);
        assert!(suspicion.in_worker());
        operation.await.0.unwrap();
        assert_eq!(read_of(&world, target).await.0.unwrap(), BLOCK_BYTES);
    })
    .unwrap();
}

/// A drive in a file system whose server runs in this process.
#[test]
#[ignore = "needs root and FUSE"]
fn a_file_system_whose_server_stops_holds_up_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let mountpoint = dir.path().join("mnt");
    fs::create_dir(&mountpoint).unwrap();
    let server = fuse::Server::mount(&mountpoint, 1 << 20);
    let path = dir.path().join("sound");
    RealDrive::create_file(&path, 1 << 20).unwrap();
    run(|world| async move {
        let hung = RealDrive::open(&world, &mountpoint.join(fuse::FILE)).unwrap();
        let sound = RealDrive::open(&world, Path::new(&path)).unwrap();
        let block = |byte: u8| {
            let mut buf = world.buffers().data(BLOCK_BYTES);
            buf.bytes_mut().unwrap().fill(byte);
            buf.freeze()
        };
        hung.write(DriveOffset(0), block(3)).await.unwrap();
        server.hang();
        let hung = Rc::new(hung);
        let begin = |nth: usize| {
            let (hung, world, data) = (Rc::clone(&hung), world.clone(), block(4));
            tokio::task::spawn_local(async move {
                let at = DriveOffset(nth as u64 % 2 * BLOCK_BYTES as u64);
                match nth % 3 {
                    0 => hung.write_durable(at, data).await,
                    1 => hung.flush().await,
                    _ => hung.read(at, world.buffers().data(BLOCK_BYTES)).await.1,
                }
            })
        };
        let all: Vec<_> = (0..MANY).map(begin).collect();
        for byte in 0..50 {
            sound
                .write_durable(DriveOffset(0), block(byte))
                .await
                .unwrap();
            sound.flush().await.unwrap();
            let (read, said) = sound
                .read(DriveOffset(0), world.buffers().data(BLOCK_BYTES))
                .await;
            said.unwrap();
            assert_eq!(read.bytes().unwrap()[0], byte);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(all.iter().all(|one| !one.is_finished()));
        server.go_on();
        for one in all {
            one.await.unwrap().unwrap();
        }
    })
    .unwrap();
}
