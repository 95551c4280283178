//! `sqlio-8k`: stress of a single virtual disk, and of two on the same drives.
//!
//! As published: 8 KiB random reads, 10 threads with 16 operations each, which is 160
//! under way, over a virtual disk of 10 GB, for 1000 s (`--duration 1000s`). With two
//! such disks, work on quality of service is done: each is a stream of its own, whose
//! figures are told apart.
//!
//! Chosen here: the file is all of the disk, places in it are uniform, and the VM has of its
//! host what [`Compute::UNTOLD`] says.

use super::{Compute, DiskProfile, Entry, Limits, Mix, Pacing, Profile, Stream, VmProfile};

const THREADS: usize = 10;
const OUTSTANDING_PER_THREAD: usize = 16;
const DISK_GIGABYTES: u64 = 10;

/// The profiles of this module.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "sqlio-8k",
        summary: "8 KiB random reads of one disk, 160 outstanding",
        make: |name| profile(name, 1),
    },
    Entry {
        name: "sqlio-8k-2disks",
        summary: "8 KiB random reads of two disks of a VM, 160 outstanding each",
        make: |name| profile(name, 2),
    },
];

fn profile(name: &str, disks: usize) -> Profile {
    let pacing = Pacing::Closed {
        outstanding: THREADS * OUTSTANDING_PER_THREAD,
    };
    let all = Stream::alone(Mix::new(8192, 100, 100), pacing, &[1]);
    let vm = VmProfile {
        name: "VM01".into(),
        role: "single-disk stress".into(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile::gigabytes(DISK_GIGABYTES); disks],
        streams: all.on_each_disk(disks),
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
    fn each_disk_has_160_reads_under_way() {
        for (name, disks) in [("sqlio-8k", 1), ("sqlio-8k-2disks", 2)] {
            let vm = Profile::named(name).unwrap().vms.remove(0);
            assert_eq!((vm.disks.len(), vm.streams.len()), (disks, disks));
            for (index, stream) in vm.streams.iter().enumerate() {
                assert_eq!(stream.outstanding_max, 160);
                assert_eq!(stream.weights[index], 1);
                assert_eq!(stream.weights.iter().sum::<u32>(), 1);
            }
            assert!(!vm.writes());
        }
    }
}
