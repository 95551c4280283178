//! The contents of targets before a run: nothing, data that a load has written, or other data,
//! which somebody may want to keep.
//!
//! Looked at are the first [`HEAD_BYTES`], where partition tables and file systems begin, the
//! last [`PIECE_BYTES`], and [`SAMPLES`] blocks between. So a target with data elsewhere only
//! can pass as empty. Nothing is written.

use crate::endpoint::{self, AnyEndpoint, CONNECT_TIMEOUT, OpenOptions};
use std::sync::Arc;
use workload::pattern::{self, Pattern};
use workload::plan::Plan;
use workload::url::TargetUrl;

/// Looked at from the start on.
const HEAD_BYTES: u64 = 1 << 20;

/// Read at a time.
const PIECE_BYTES: u64 = 64 << 10;

/// Blocks looked at between the first and the last piece.
const SAMPLES: u64 = 16;

/// Size and alignment of what is told apart, in bytes.
const BLOCK_BYTES: usize = 4096;

/// A target that holds something that no load has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignTarget {
    /// Its URL, without a password.
    pub target: String,
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// What it holds, for people: "a GPT partition table".
    pub what: String,
}

/// The targets that `plan` writes and that hold something, in its order. One that cannot be
/// opened is left out: the run tells all of them.
pub fn held(plan: &Plan) -> Vec<ForeignTarget> {
    let mut urls: Vec<&TargetUrl> = Vec::new();
    for (vm, places) in plan.profile.vms.iter().zip(&plan.vms) {
        if !vm.writes() && !plan.fill {
            continue;
        }
        for place in &places.disks {
            if !urls.contains(&&place.url) {
                urls.push(&place.url);
            }
        }
    }
    let pattern = Arc::new(Pattern::new(plan.seed));
    // Side by side: one that nobody answers at takes its time.
    std::thread::scope(|scope| {
        let look = |url| {
            let pattern = Arc::clone(&pattern);
            scope.spawn(move || held_by(url, pattern))
        };
        let looks: Vec<_> = urls.into_iter().map(look).collect();
        let join =
            |look: std::thread::ScopedJoinHandle<'_, Option<ForeignTarget>>| match look.join() {
                Ok(held) => held,
                Err(panic) => std::panic::resume_unwind(panic),
            };
        looks.into_iter().filter_map(join).collect()
    })
}

fn held_by(url: &TargetUrl, pattern: Arc<Pattern>) -> Option<ForeignTarget> {
    let options = OpenOptions {
        writes: false,
        outstanding_max: 1,
        pattern,
        timeout: CONNECT_TIMEOUT,
    };
    let mut endpoint = endpoint::open(url, &options).ok()?;
    let what = content(&mut endpoint)?;
    Some(ForeignTarget {
        target: url.to_string(),
        capacity_bytes: endpoint.geometry().capacity_bytes,
        what,
    })
}

/// What a target holds, if it is neither nothing nor a load's.
fn content(endpoint: &mut AnyEndpoint) -> Option<String> {
    let block = BLOCK_BYTES as u64;
    let capacity = endpoint.geometry().capacity_bytes / block * block;
    let mut head = Vec::new();
    let mut first = None;
    for (at, bytes) in places(capacity) {
        let data = match endpoint.look(at, bytes as u32) {
            Ok(data) => data,
            // What cannot be read may be worth keeping all the more.
            Err(answer) => return Some(format!("what cannot be read at byte {at}: {answer}")),
        };
        let blocks = data.chunks(BLOCK_BYTES).enumerate();
        let mut foreign = blocks
            .map(|(number, block)| (at + (number * BLOCK_BYTES) as u64, block))
            .filter(|(at, block)| !is_empty(block) && !pattern::is_of_a_load(*at, block));
        first = first.or(foreign.next().map(|(at, _)| at));
        if at < HEAD_BYTES {
            head.extend(data);
        }
    }
    let first = first?;
    Some(match recognised(&head) {
        Some(name) => name.to_owned(),
        None => format!("data at byte {first}"),
    })
}

/// Where to look on a target of this capacity: offset and size in bytes.
fn places(capacity: u64) -> Vec<(u64, u64)> {
    let head = HEAD_BYTES.min(capacity);
    let mut places = Vec::new();
    let mut at = 0;
    while at < head {
        let bytes = PIECE_BYTES.min(head - at);
        places.push((at, bytes));
        at += bytes;
    }
    let tail = capacity.saturating_sub(PIECE_BYTES).max(head);
    let block = BLOCK_BYTES as u64;
    let step = (tail - head) / (SAMPLES + 1) / block * block;
    if step > 0 {
        places.extend((1..=SAMPLES).map(|sample| (head + sample * step, block)));
    }
    if tail < capacity {
        places.push((tail, capacity - tail));
    }
    places
}

fn is_empty(block: &[u8]) -> bool {
    block.iter().all(|&byte| byte == 0)
}

/// What begins so, where it says.
fn recognised(head: &[u8]) -> Option<&'static str> {
    let has = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    // UEFI 2.10, 5.3.2: the header is in LBA 1.
    if has(512, b"EFI PART") || has(4096, b"EFI PART") {
        return Some("a GPT partition table");
    }
    let named: [(usize, &[u8], &str); 8] = [
        (0, b"LUKS\xba\xbe", "a LUKS container"),
        (0, b"XFSB", "an XFS file system"),
        (1080, &[0x53, 0xef], "an ext file system"),
        (65_600, b"_BHRfS_M", "a Btrfs file system"),
        (3, b"NTFS    ", "an NTFS file system"),
        (512, b"LABELONE", "an LVM physical volume"),
        (4086, b"SWAPSPACE2", "swap space"),
        // Last: several of the above have a boot sector in front.
        (510, &[0x55, 0xaa], "a partition table or a boot sector"),
    ];
    let found = named.iter().find(|(at, magic, _)| has(*at, magic));
    found.map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_lie_in_the_target_and_hold_both_ends() {
        for capacity in [0, 4096, 1 << 20, (1 << 20) + 4096, 3 << 20, 1 << 40] {
            let places = places(capacity);
            let mut end = 0;
            for (at, bytes) in &places {
                assert!(*at >= end && *bytes > 0, "{capacity}: {places:?}");
                assert!(at % 4096 == 0 && bytes % 4096 == 0);
                end = at + bytes;
            }
            assert_eq!(end, capacity, "{places:?}");
        }
        assert_eq!(places(1 << 40).len(), 16 + 16 + 1);
    }

    #[test]
    fn what_begins_a_disk_is_named() {
        let mut disk = vec![0; 1 << 20];
        assert_eq!(recognised(&disk), None);
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(
            recognised(&disk),
            Some("a partition table or a boot sector")
        );
        disk[512..520].copy_from_slice(b"EFI PART");
        assert_eq!(recognised(&disk), Some("a GPT partition table"));
        assert_eq!(recognised(b"XFSB"), Some("an XFS file system"));
    }
}
