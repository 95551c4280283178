//! `oio-ladder-*`: load points at fixed outstanding I/O.
//!
//! 32 VMs, each one worker on a raw LUN of 10 GB of its own; all random, 75 % reads;
//! 4 or 8 KiB; 4, 8 or 16 operations under way per VM, which is 128, 256 or 512 in
//! all. A closed loop: what is asked is how many operations per second an array does
//! at that depth, and at what latency.
//!
//! Published: 5 min of ramp-up and 5 min measured (`--warmup 5m --duration 5m`), after
//! 5 min of random reads that are not counted, on data that is restored from a snapshot
//! before every series. Places are uniform: that is chosen here. So is what the VMs
//! have of their hosts ([`Compute::UNTOLD`]); of the published ones only their number on
//! a host is known, eight on each of four.

use super::{Compute, DiskProfile, Entry, Limits, Mix, Pacing, Profile, Stream, VmProfile};

const VMS: usize = 32;

const READ_PERCENT: u32 = 75;

struct Row {
    name: &'static str,
    kib: u32,
    outstanding: usize,
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "oio-ladder-4k-4", kib: 4, outstanding: 4 },
    Row { name: "oio-ladder-4k-8", kib: 4, outstanding: 8 },
    Row { name: "oio-ladder-4k-16", kib: 4, outstanding: 16 },
    Row { name: "oio-ladder-8k-4", kib: 8, outstanding: 4 },
    Row { name: "oio-ladder-8k-8", kib: 8, outstanding: 8 },
    Row { name: "oio-ladder-8k-16", kib: 8, outstanding: 16 },
];

/// The profiles of this module.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    Entry { name: "oio-ladder-4k-4", make: profile, summary: "32 VMs, 4 KiB random, 75 % reads, 128 outstanding in all" },
    Entry { name: "oio-ladder-4k-8", make: profile, summary: "32 VMs, 4 KiB random, 75 % reads, 256 outstanding in all" },
    Entry { name: "oio-ladder-4k-16", make: profile, summary: "32 VMs, 4 KiB random, 75 % reads, 512 outstanding in all" },
    Entry { name: "oio-ladder-8k-4", make: profile, summary: "32 VMs, 8 KiB random, 75 % reads, 128 outstanding in all" },
    Entry { name: "oio-ladder-8k-8", make: profile, summary: "32 VMs, 8 KiB random, 75 % reads, 256 outstanding in all" },
    Entry { name: "oio-ladder-8k-16", make: profile, summary: "32 VMs, 8 KiB random, 75 % reads, 512 outstanding in all" },
];

fn profile(name: &str) -> Profile {
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        unreachable!("{name} is one of the names of this module")
    };
    let mix = Mix::new(row.kib * 1024, 100, READ_PERCENT);
    let pacing = Pacing::Closed {
        outstanding: row.outstanding,
    };
    let vm = VmProfile {
        name: String::new(),
        role: "load point".into(),
        compute: Compute::UNTOLD,
        disks: vec![DiskProfile::gigabytes(10)],
        streams: vec![Stream::alone(mix, pacing, &[1])],
    };
    Profile {
        name: name.into(),
        vms: vm.copies("VM", VMS),
        limits: Limits::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_those_that_were_published() {
        assert!(
            ROWS.iter()
                .map(|row| row.name)
                .eq(ENTRIES.iter().map(|entry| entry.name))
        );
        let mut steps = Vec::new();
        for row in ROWS {
            let profile = profile(row.name);
            let outstanding: usize = profile.vms.iter().map(VmProfile::outstanding_max).sum();
            assert_eq!(profile.vms.len(), 32);
            assert_eq!(profile.vms[31].disks, [DiskProfile::gigabytes(10)]);
            steps.push((profile.vms[0].bytes_max(), outstanding));
        }
        let expected = [4096, 8192].map(|bytes| [128, 256, 512].map(|all| (bytes, all)));
        assert_eq!(steps, expected.concat());
    }
}
