//! One VM, one disk, one kind of I/O: for benchmarks and path studies.
//!
//! They run as a closed loop (16 outstanding, as in the published network path
//! study) unless the caller sets a depth or a rate. `seq-read-256k`,
//! `seq-write-64k` and `rand-8k-67` are those of that study, with its 16 workers per
//! disk, each with one operation under way; the other names are ours and have one
//! worker. Chosen here: the workers of a disk each have a part of it (all at the
//! same place, one would read for fifteen others what the array then has in RAM),
//! and take turns. For `rand-8k-67` the study takes as many workers as keep reads
//! and writes within 20 ms: the limit is the profile's, and 16 is where to begin
//! (`--iodepth` sets others). It has up to eight disks per VM, here one, or eight in
//! the profiles whose names end in `-8disks`; each disk has its workers.

use super::{Compute, DiskProfile, Entry, Limits, Mix, Pacing, Profile, Stream, VmProfile};

const KIB: u32 = 1024;

/// Outstanding operations when the caller says nothing.
const OUTSTANDING: usize = 16;

/// The disk of the published network path study.
const DISK_GIGABYTES: u64 = 300;

/// What the names of the profiles with eight disks end in.
const EIGHT: &str = "-8disks";

struct Row {
    name: &'static str,
    bytes: u32,
    random_percent: u32,
    read_percent: u32,
    workers: u32,
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "rand-4k-read", bytes: 4 * KIB, random_percent: 100, read_percent: 100, workers: 1 },
    Row { name: "rand-4k-write", bytes: 4 * KIB, random_percent: 100, read_percent: 0, workers: 1 },
    Row { name: "rand-8k-write", bytes: 8 * KIB, random_percent: 100, read_percent: 0, workers: 1 },
    Row { name: "rand-8k-67", bytes: 8 * KIB, random_percent: 100, read_percent: 67, workers: 16 },
    Row { name: "rand-8k-90", bytes: 8 * KIB, random_percent: 100, read_percent: 90, workers: 1 },
    Row { name: "seq-read-256k", bytes: 256 * KIB, random_percent: 0, read_percent: 100, workers: 16 },
    Row { name: "seq-read-1m", bytes: 1024 * KIB, random_percent: 0, read_percent: 100, workers: 1 },
    Row { name: "seq-write-64k", bytes: 64 * KIB, random_percent: 0, read_percent: 0, workers: 16 },
    Row { name: "seq-write-1m", bytes: 1024 * KIB, random_percent: 0, read_percent: 0, workers: 1 },
];

/// The profiles of this module.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    Entry { name: "rand-4k-read", make: profile, summary: "4 KiB random reads, 16 outstanding" },
    Entry { name: "rand-4k-write", make: profile, summary: "4 KiB random writes, 16 outstanding" },
    Entry { name: "rand-8k-write", make: profile, summary: "8 KiB random writes, 16 outstanding" },
    Entry { name: "rand-8k-67", make: profile, summary: "8 KiB random, 67 % reads, 16 workers, within 20 ms" },
    Entry { name: "rand-8k-67-8disks", make: on_eight_disks, summary: "the same on eight disks of a VM" },
    Entry { name: "rand-8k-90", make: profile, summary: "8 KiB random, 90 % reads, 16 outstanding" },
    Entry { name: "seq-read-256k", make: profile, summary: "256 KiB sequential reads by 16 workers" },
    Entry { name: "seq-read-256k-8disks", make: on_eight_disks, summary: "the same on eight disks of a VM" },
    Entry { name: "seq-read-1m", make: profile, summary: "1 MiB sequential reads, 16 outstanding" },
    Entry { name: "seq-write-64k", make: profile, summary: "64 KiB sequential writes by 16 workers" },
    Entry { name: "seq-write-64k-8disks", make: on_eight_disks, summary: "the same on eight disks of a VM" },
    Entry { name: "seq-write-1m", make: profile, summary: "1 MiB sequential writes, 16 outstanding" },
];

/// One VM with eight disks, each as the profile without the ending has one.
fn on_eight_disks(name: &str) -> Profile {
    let mut profile = profile(name.strip_suffix(EIGHT).unwrap_or(name));
    profile.name = name.into();
    for vm in &mut profile.vms {
        vm.disks = vm.disks.repeat(8);
        let streams = std::mem::take(&mut vm.streams).into_iter();
        vm.streams = streams.flat_map(|stream| stream.on_each_disk(8)).collect();
    }
    profile
}

fn profile(name: &str) -> Profile {
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        unreachable!("{name} is one of the names of this module")
    };
    let mix = Mix::new(row.bytes, row.random_percent, row.read_percent);
    let pacing = Pacing::Closed {
        outstanding: OUTSTANDING,
    };
    let stream = Stream {
        workers_per_disk: row.workers,
        ..Stream::alone(mix, pacing, &[1])
    };
    let vm = VmProfile {
        name: "VM01".into(),
        role: name.into(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile::gigabytes(DISK_GIGABYTES)],
        streams: vec![stream],
    };
    Profile {
        name: name.into(),
        vms: vec![vm],
        limits: Limits::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_rows_agree() {
        let names = ENTRIES.iter().map(|entry| entry.name);
        let of_one = names.filter(|name| !name.ends_with(EIGHT));
        assert!(ROWS.iter().map(|row| row.name).eq(of_one));
    }

    #[test]
    fn each_of_eight_disks_has_workers_of_its_own() {
        let vm = Profile::named("seq-read-256k-8disks")
            .unwrap()
            .vms
            .remove(0);
        assert_eq!((vm.disks.len(), vm.outstanding_max()), (8, 128));
        for stream in &vm.streams {
            assert_eq!((stream.workers_per_disk, stream.outstanding_max), (16, 16));
            assert_eq!(stream.weights.iter().sum::<u32>(), 1);
        }
    }
}
