//! Tests that chains of VHDX files are read as Hyper-V would.

use super::*;
use crate::images::header::inspect;
use crate::images::header::vhdx::made::{Content, disk};
use crate::jobs::Directories;
use ::array::control::jobs::copy::Source as _;
use Content::{Absent, Full, Part, Zero};
use base::BufPool;

const MIB: usize = 1 << 20;

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Home {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn put(&self, name: &str, bytes: Vec<u8>) {
        std::fs::write(self.dir.path().join(name), bytes).unwrap();
    }

    async fn open(&self, name: &str) -> Result<Source, String> {
        let allowed = Directories::new(vec![self.dir.path().to_owned()]);
        let layer = inspect(&allowed, &self.dir.path().join(name), None);
        let layer = layer.map_err(|error| error.context)?;
        assert_eq!(layer.size_bytes, 4 * MIB as u64);
        Source::image(layer, Path::new("/none")).await
    }

    #[track_caller]
    fn refused(&self, name: &str, why: &str) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let said = runtime.block_on(self.open(name)).err();
        assert!(
            said.as_ref().is_some_and(|said| said.contains(why)),
            "{said:?}"
        );
    }
}

async fn content(source: &mut Source, at: usize, len: usize) -> Vec<u8> {
    // Another byte, so that zeroes have to be put there.
    let mut buf = BufPool::new().bytes(len);
    buf.bytes_mut().unwrap().fill(0xee);
    let buf = source.read(at as u64, buf, 0..len).await.unwrap();
    buf.bytes().unwrap().to_vec()
}

#[tokio::test]
async fn a_differencing_disk_shows_what_is_below() {
    let home = Home::new();
    home.put(
        "base.vhdx",
        disk(1, [Full(10), Full(11), Full(12), Absent], None),
    );
    home.put(
        "mid.avhdx",
        disk(
            2,
            [Absent, Full(21), Part(22), Absent],
            Some((".\\base.vhdx", 1)),
        ),
    );
    home.put(
        "top.avhdx",
        disk(3, [Absent, Absent, Absent, Zero], Some((".\\mid.avhdx", 2))),
    );
    let mut top = home.open("top.avhdx").await.unwrap();
    assert_eq!(content(&mut top, 0, MIB).await, vec![10; MIB]);
    assert_eq!(content(&mut top, MIB, MIB).await, vec![21; MIB]);
    let mixed = content(&mut top, 2 * MIB, MIB).await;
    for (at, run) in mixed.chunks(4 * 512).enumerate() {
        let wanted = if at % 2 == 0 { 22 } else { 12 };
        assert!(run.iter().all(|byte| *byte == wanted), "run {at}");
    }
    assert_eq!(content(&mut top, 3 * MIB, MIB).await, vec![0; MIB]);
    // Across sectors and blocks, from the middle of a run.
    let across = content(&mut top, 2 * MIB - 512, 6 * 512).await;
    let wanted = [vec![21; 512], vec![22; 4 * 512], vec![12; 512]].concat();
    assert_eq!(across, wanted);
    assert_eq!(top.extent(0).await.unwrap(), (true, MIB as u64));
    assert_eq!(
        top.extent(3 * MIB as u64).await.unwrap(),
        (false, MIB as u64)
    );
    assert_eq!(
        top.extent(2 * MIB as u64 + 512).await.unwrap(),
        (true, 3 * 512)
    );
}

#[test]
fn a_parent_that_is_another_one_is_refused() {
    let home = Home::new();
    home.put("base.vhdx", disk(9, [Absent; 4], None));
    home.put("top.vhdx", disk(2, [Absent; 4], Some(("base.vhdx", 1))));
    home.refused("top.vhdx", "has changed since");
    home.put(
        "top.vhdx",
        disk(2, [Absent; 4], Some(("..\\..\\etc\\passwd", 1))),
    );
    home.refused("top.vhdx", "images may be under");
    home.put("top.vhdx", disk(2, [Absent; 4], Some(("C:\\base.vhdx", 1))));
    home.refused("top.vhdx", "plain names");
    home.put("top.vhdx", disk(2, [Absent; 4], Some(("top.vhdx", 2))));
    home.refused("top.vhdx", "lie upon each other");
}

#[tokio::test]
async fn damage_is_told_and_never_read_as_zeroes() {
    let home = Home::new();
    let whole = disk(1, [Full(1), Absent, Absent, Absent], None);
    let mut cut = whole.clone();
    cut.truncate(3 * MIB + 1000);
    home.put("cut.vhdx", cut);
    let mut source = home.open("cut.vhdx").await.unwrap();
    let buf = BufPool::new().bytes(MIB);
    let said = source.read(0, buf, 0..MIB).await.unwrap_err();
    assert!(said.contains("can't be read"), "{said}");
    // A block in parts, and nothing below.
    home.put(
        "part.vhdx",
        disk(1, [Part(1), Absent, Absent, Absent], None),
    );
    let said = home
        .open("part.vhdx")
        .await
        .unwrap()
        .extent(0)
        .await
        .unwrap_err();
    assert!(said.contains("state 7"), "{said}");
}

#[test]
fn headers_that_lie_are_refused() {
    let home = Home::new();
    let whole = disk(1, [Absent; 4], None);
    let table = 2 * MIB;
    for (at, bytes, why) in [
        // The header's sum, its log, the regions, the metadata.
        ((128 << 10) + 9, &[1][..], "none of its headers"),
        (192 << 10, b"x", "table of regions"),
        (table, b"x", "metadata is damaged"),
        (table + 10, &[0, 0], "metadata is damaged"),
        // A block of 3 bytes, a sector of 1 byte, a size of 8 EiB and of 32 TiB.
        (table + (64 << 10), &[3, 0, 0, 0], "parameters are damaged"),
        (
            table + (64 << 10) + 16,
            &[1, 0, 0, 0],
            "parameters are damaged",
        ),
        (table + (64 << 10) + 15, &[0x7f], "which no VHDX has"),
        (table + (64 << 10) + 13, &[0x20], "too short for its size"),
    ] {
        let mut bad = whole.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        home.put("bad.vhdx", bad);
        home.refused("bad.vhdx", why);
    }
}

#[test]
fn a_log_that_is_not_in_place_is_told() {
    let home = Home::new();
    let mut logged = disk(1, [Absent; 4], None);
    let head = 128 << 10;
    logged[head + 48] = 1;
    logged[head + 4..head + 8].fill(0);
    let sum = base::checksum::crc32c(&logged[head..head + 4096]);
    logged[head + 4..head + 8].copy_from_slice(&sum.to_le_bytes());
    home.put("logged.vhdx", logged);
    home.refused("logged.vhdx", "not closed cleanly");
}

#[tokio::test]
async fn damaged_headers_never_cause_a_panic() {
    let home = Home::new();
    home.put(
        "base.vhdx",
        disk(1, [Full(10), Full(11), Full(12), Absent], None),
    );
    let whole = disk(
        2,
        [Absent, Full(21), Part(22), Zero],
        Some(("base.vhdx", 1)),
    );
    let path = home.dir.path().join("top.vhdx");
    std::fs::write(&path, &whole).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    // Where there is something to damage, but what a sum protects.
    let mut places: Vec<usize> = Vec::new();
    for run in [
        192 << 10..(192 << 10) + 80,
        MIB..MIB + 32,
        MIB + 32_768..MIB + 32_776,
    ] {
        places.extend(run);
    }
    places.extend(2 * MIB..2 * MIB + 160);
    places.extend(2 * MIB + (64 << 10)..2 * MIB + (64 << 10) + 300);
    let (mut opened, mut refused) = (0, 0);
    for (at, byte) in places
        .iter()
        .flat_map(|at| [1, 0x80, 0xff].map(|byte| (*at, byte)))
    {
        file.write_all_at(&[whole[at] ^ byte], at as u64).unwrap();
        let allowed = Directories::new(vec![home.dir.path().to_owned()]);
        match inspect(&allowed, &path, None) {
            Ok(layer) => {
                let end = layer.size_bytes;
                if let Ok(mut source) = Source::image(layer, Path::new("/none")).await {
                    opened += 1;
                    for at in (0..end.min(4 << 20)).step_by(MIB) {
                        let len = (end - at).min(MIB as u64) as usize;
                        let buf = BufPool::new().bytes(len);
                        // Whether it can be read or not.
                        let _ = source.extent(at).await;
                        let read = source.read(at, buf, 0..len).await;
                        let why = read.err().unwrap_or_default();
                        assert!(!why.contains("ended early"), "byte {at}: {why}");
                    }
                }
            }
            Err(_) => refused += 1,
        }
        file.write_all_at(&whole[at..=at], at as u64).unwrap();
    }
    assert!(opened > 100 && refused > 100, "{opened} {refused}");
}
