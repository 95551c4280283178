//! Writes to a disk without rest, reads back, and compares: `disk-load DEVICE STOP`, until
//! there is a file STOP. Past the page cache, so that every read is the disk's. Runs in a
//! guest; a failed command or a wrong byte ends it with an error.

// A panic with its reason is how it fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use base::Prng;
use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const WRITERS: u64 = 4;
/// Blocks of a writer.
const BLOCKS: u64 = 48;
const BLOCK_BYTES: usize = 64 << 10;
/// Memory that is handed to the kernel begins at a multiple of this.
const ALIGNMENT: usize = 4096;
/// `open(2)`, `asm-generic/fcntl.h`.
const O_DIRECT: i32 = 0o40_000;
/// How often it tells.
const COMMANDS_A_LINE: u64 = 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().expect("a device");
    let stop = arguments.next().expect("the path of a stop file");
    let commands = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let disk = File::options()
                    .read(true)
                    .write(true)
                    .custom_flags(O_DIRECT)
                    .open(&device)
                    .expect("the device opens");
                let (stop, commands) = (Path::new(&stop), &commands);
                scope.spawn(move || write(&disk, number, stop, commands))
            })
            .collect();
        for writer in writers {
            // One that fails takes the others with it, at once.
            writer.join().expect("all well");
        }
    });
    let commands = commands.into_inner();
    println!("load: {commands} commands, every byte right");
}

/// One of several, each with blocks of its own.
fn write(disk: &File, number: u64, stop: &Path, commands: &AtomicU64) {
    let mut prng = Prng::from_seed(number);
    let mut rounds = vec![0_u64; BLOCKS as usize];
    while !stop.exists() {
        let block = prng.below(BLOCKS);
        let round = &mut rounds[block as usize];
        check(disk, number, block, *round);
        *round += 1;
        let place = number * BLOCKS + block;
        with_aligned(|buffer| {
            buffer.copy_from_slice(&content(place, *round));
            let written = disk.write_all_at(buffer, place * BLOCK_BYTES as u64);
            written.unwrap_or_else(|error| fail(&format!("write block {place}: {error}")));
        });
        let done = commands.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(COMMANDS_A_LINE) {
            println!("load: {done} commands");
        }
    }
    for (block, round) in (0..).zip(rounds) {
        check(disk, number, block, round);
    }
}

/// What was written there last is there; nothing was, before the first round.
fn check(disk: &File, number: u64, block: u64, round: u64) {
    if round == 0 {
        return;
    }
    let place = number * BLOCKS + block;
    with_aligned(|buffer| {
        let read = disk.read_exact_at(buffer, place * BLOCK_BYTES as u64);
        read.unwrap_or_else(|error| fail(&format!("read block {place}: {error}")));
        let wanted = content(place, round);
        if let Some(at) = buffer.iter().zip(&wanted).position(|(a, b)| a != b) {
            fail(&format!("block {place}, round {round}: byte {at} is wrong"));
        }
    });
}

fn content(place: u64, round: u64) -> Vec<u8> {
    e2e::pattern::bytes((place << 32) | round, BLOCK_BYTES)
}

fn with_aligned(run: impl FnOnce(&mut [u8])) {
    let mut memory = vec![0; BLOCK_BYTES + ALIGNMENT];
    let begin = memory.as_ptr().align_offset(ALIGNMENT);
    run(&mut memory[begin..begin + BLOCK_BYTES]);
}

fn fail(what: &str) -> ! {
    println!("load: FAILED {what}");
    std::process::exit(1);
}
