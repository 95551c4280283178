//! `tpce-like`: OLTP on two database servers that nothing throttles.
//!
//! Per server, as published: pages of 8 KiB, nine reads to a write, all random and
//! strongly skewed; data files on 2 × 750 GB, which are hot, and on 2 × 100 GB, which
//! are not; sequential small writes to a log of 200 GB; tempdb of 2 × 100 and 50 GB.
//! The hosts are meant to do 25,000 operations per second each. A closed loop that stays
//! the same in every step, so that a pool without tiers saturates, and what tiers win is
//! seen.
//!
//! Chosen here:
//! - **Outstanding: 512** in the data files of a server. SQL Server on x64 has 512 worker
//!   threads with up to four processors, and a worker that reads a page waits for it. By
//!   Little's law the 25,000 operations per second that are wanted then take 20.5 ms each:
//!   what keeps up with the load is just at the usual limit of latency, and what does not
//!   shows in it.
//! - **Skew**: 70 % of the accesses to 30 % of the space at every grain, at the same places
//!   all the time ("strong" is all that was published), of which the server keeps the
//!   hottest 5 % in its own memory: a buffer pool of some 50 GB for a terabyte of data,
//!   which is not published either. What it keeps it does not ask for.
//! - **Which files**: 48 % of the pages to each of the two large ones, 2 % to each of the
//!   small ones.
//! - **Log**: 1,000 writes of 8 KiB per second, one for each transaction: the published
//!   servers did 940 and 1,150 transactions per second.
//! - **Tempdb**: 64 KiB (an extent), half reads, random, two at a time, by size of the
//!   volumes. The third volume is not taken for a log of its own.
//! - Of their hosts, the servers have what [`Compute::UNTOLD`] says.

use super::{Compute, DiskProfile, Entry, Limits, Mix, Pacing, Profile, Stream, VmProfile};
use crate::locality::Locality;

const NAME: &str = "tpce-like";

const KIB: u32 = 1024;

/// Operations under way in the data files of a server; see the module.
const WORKERS: usize = 512;

/// The profiles of this module.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: NAME,
    summary: "two database servers, 8 KiB, 90 % reads, skewed, 512 outstanding each; log, tempdb",
    make: |_| profile(),
}];

/// Writes to the log; see the module.
const TRANSACTIONS_PER_S: f64 = 1000.0;

/// Data, log, tempdb.
const DISKS_GIGABYTES: [u64; 8] = [750, 750, 100, 100, 200, 100, 100, 50];

fn profile() -> Profile {
    let closed = |outstanding| Pacing::Closed { outstanding };
    let data = Stream {
        locality: Locality::SelfSimilar {
            hot_percent: 70,
            host_keeps_percent: 5,
            drift: None,
        },
        ..Stream::alone(
            Mix::new(8 * KIB, 100, 90),
            closed(WORKERS),
            &[48, 48, 2, 2, 0, 0, 0, 0],
        )
    };
    let log = Stream::alone(
        Mix::new(8 * KIB, 0, 0),
        Pacing::Open {
            per_second: TRANSACTIONS_PER_S,
        },
        &[0, 0, 0, 0, 1, 0, 0, 0],
    );
    let tempdb = Stream::alone(
        Mix::new(64 * KIB, 100, 50),
        closed(2),
        &[0, 0, 0, 0, 0, 2, 2, 1],
    );
    let vm = VmProfile {
        name: String::new(),
        role: "OLTP database".into(),
        compute: Compute::UNTOLD,
        disks: DISKS_GIGABYTES.map(DiskProfile::gigabytes).to_vec(),
        streams: vec![data.named("data"), log.named("log"), tempdb.named("tempdb")],
    };
    Profile {
        name: NAME.into(),
        vms: vm.copies("SQL", 2),
        limits: Limits::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disk_has_one_kind_of_work() {
        let profile = profile();
        let names: Vec<&str> = profile.vms.iter().map(|vm| vm.name.as_str()).collect();
        assert_eq!(names, ["SQL01", "SQL02"]);
        let streams = &profile.vms[1].streams;
        for disk in 0..DISKS_GIGABYTES.len() {
            let on_it = streams.iter().filter(|stream| stream.weights[disk] > 0);
            assert_eq!(on_it.count(), 1, "disk {disk}");
        }
        let hot: u32 = streams[0].weights[..2].iter().sum();
        assert_eq!((hot, streams[0].weights.iter().sum::<u32>()), (96, 100));
        // 512, 64 of an open loop, 2.
        assert_eq!(profile.vms[0].outstanding_max(), 578);
    }
}
