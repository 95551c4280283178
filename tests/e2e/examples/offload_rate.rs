//! How long hosts wait when they have a lot copied: a volume of 10 GiB, all of it mapped, to
//! another one of its lane, by EXTENDED COPY and by tokens, in commands of up to 256 MiB.
//! Prints seconds. `TMPDIR` says where the drive files are; they take up to 20 GiB.

// This measures the real world; and a panic with its reason is how it fails.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used
)]

use e2e::array::{Array, TARGET};
use e2e::copies::{extended_copy, naa, populate, told, write_using};
use e2e::initiator::{Answer, Initiator, SECTOR};
use std::time::Instant;

const GIB: u64 = 10;
const BLOCKS: u64 = (GIB << 30) / SECTOR as u64;
/// Of one command.
const COMMAND_BLOCKS: u64 = (256 << 20) / SECTOR as u64;
const SEGMENT_BLOCKS: u64 = 32768;
const WRITE_BLOCKS: u64 = 2048;
const UNDER_WAY: usize = 16;

fn site() -> String {
    let volume =
        |name: &str| format!("[[volume]]\nname = \"{name}\"\npool = \"p\"\nsize = \"{GIB} GiB\"\n");
    format!(
        "[site]\nname = \"rate\"\nshards = 1\n[api]\nlisten = \"127.0.0.1:0\"\n[[portal]]\n\
         address = \"127.0.0.1:0\"\n[[drive]]\nname = \"d0\"\nfile = \"d0.img\"\nsize = \"20 GiB\"\n\
         [[pool]]\nname = \"p\"\nlevel = \"simple\"\ndrives = [\"d0\"]\n{}{}[[export]]\n\
         target = \"{TARGET}\"\nvolumes = [\"a\", \"b\"]\ninitiators = \"any\"\n",
        volume("a"),
        volume("b"),
    )
}

fn good(answer: Answer) {
    assert_eq!(answer, Answer::Good(Vec::new()));
}

/// Writes all of LUN 0.
fn fill(initiator: &mut Initiator) {
    let data = |at: u64| vec![(at % 251) as u8 + 1; WRITE_BLOCKS as usize * SECTOR];
    let mut at = 0;
    while at < BLOCKS || initiator.under_way() > 0 {
        while at < BLOCKS && initiator.under_way() < UNDER_WAY {
            initiator.start_write(at, data(at)).unwrap();
            at += WRITE_BLOCKS;
        }
        good(initiator.next_end().unwrap().1);
    }
}

/// Sixteen blocks of both are alike, here and there.
fn compare(initiator: &mut Initiator) {
    for at in (0..BLOCKS).step_by(BLOCKS as usize / 64) {
        let mut read = |lun| {
            initiator.choose(lun).unwrap();
            initiator.read(at, 16).unwrap()
        };
        assert_eq!(read(0), read(1), "block {at}");
    }
    initiator.choose(0).unwrap();
}

fn main() {
    let array = Array::start_with(&site());
    let mut initiator = Initiator::login(array.portal(), "iqn.2026-11.test:host", TARGET).unwrap();
    fill(&mut initiator);
    let a = naa(&mut initiator).unwrap();
    initiator.choose(1).unwrap();
    let b = naa(&mut initiator).unwrap();
    initiator.choose(0).unwrap();
    for (run, offset) in [("whole chunks", 0), ("pages in other places", 512 * 3)] {
        let begun = Instant::now();
        for at in (0..BLOCKS - offset).step_by(COMMAND_BLOCKS as usize) {
            let end = (at + COMMAND_BLOCKS).min(BLOCKS - offset);
            let segments = (at..end).step_by(SEGMENT_BLOCKS as usize);
            let segment = |at| (at, at + offset, SEGMENT_BLOCKS.min(end - at) as u16);
            let segments: Vec<_> = segments.map(segment).collect();
            let (cdb, list) = extended_copy([&a, &b], &segments);
            good(initiator.execute(&cdb, 0, list).unwrap());
        }
        println!(
            "XCOPY, {GIB} GiB, {run}: {:.3} s",
            begun.elapsed().as_secs_f64()
        );
        if offset == 0 {
            compare(&mut initiator);
        }
    }
    let begun = Instant::now();
    for at in (0..BLOCKS).step_by(COMMAND_BLOCKS as usize) {
        let range = [(at, COMMAND_BLOCKS as u32)];
        let (cdb, list) = populate(&range, 0);
        good(initiator.execute(&cdb, 0, list).unwrap());
        let token = told(&mut initiator).unwrap().token;
        initiator.choose(1).unwrap();
        let (cdb, list) = write_using(&token, 0, &range);
        good(initiator.execute(&cdb, 0, list).unwrap());
        let written = told(&mut initiator).unwrap();
        assert_eq!((written.status, written.blocks), (1, COMMAND_BLOCKS));
        initiator.choose(0).unwrap();
    }
    println!("ODX, {GIB} GiB: {:.3} s", begun.elapsed().as_secs_f64());
    compare(&mut initiator);
}
