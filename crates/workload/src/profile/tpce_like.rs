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
//!
//! **As a closed network** (`tpce-like-closed`) a server is what was published of it: worker threads
//! alternate between the processor work of a transaction and its operations, so what is under way
//! falls when storage gets faster. The data files have the same operations, and:
//! - **Threads: 832.** SQL Server's default on x64 is 512 + (24 - 4) × 16 for the server's 24 vCPUs
//!   (Microsoft, "Configure the max worker threads server configuration option").
//! - **6.9 operations of the data files** to a transaction (published: 6,500 to 940, 7,800 to 1,150).
//! - **Commits**: a write of the log ends each transaction, in the place of a fixed rate.
//! - **Work: 3.3 ms** of a vCPU for a transaction: at the 25,000 operations per second that a host
//!   is meant to do, half of the vCPUs are busy. Assumed; at 6.6 ms all of them would be, and a
//!   quarter of that is the least that is plausible.
//! - **Think: 68.3 ms.** Threads wait for locks, for the client, and for the next request. By the rule of
//!   [`super::closed`] the 25,000 are done at 20 ms for each operation, and the threads are known, so
//!   it is 832 × 6.9 / 25,000 - 7.9 × 20 ms - 3.3 ms. Assumed; without latency the server would do 3.2
//!   times its target then. 0 is plausible, with 832 under way always, and 226 ms, with the target
//!   out of reach of any storage.
//! - **Of the host**: 24 vCPUs, and 64 GB that are reserved, both published.

use super::{
    Compute, DiskProfile, Entry, GIB, Limits, MEAN_LATENCY_LIMIT, Mix, Pacing, Profile, Stream,
    VmProfile,
};
use crate::locality::Locality;
use crate::threads::Threads;
use std::time::Duration;

const NAME: &str = "tpce-like";

const KIB: u32 = 1024;

/// Operations under way in the data files of a server; see the module.
const WORKERS: usize = 512;

/// The profiles of this module.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: NAME,
        summary: "two database servers, 8 KiB, 90 % reads, skewed, 512 outstanding each; log, tempdb",
        make: |_| profile(),
    },
    Entry {
        name: "tpce-like-closed",
        summary: "the same servers as 832 worker threads each, 6.9 I/Os to a transaction",
        make: closed,
    },
];

/// What the host of a server is meant to do, operations of the data files.
const TARGET_PER_S: f64 = 25_000.0;

/// Operations of the data files in a transaction.
const OPERATIONS: f64 = 6.9;

/// Virtual processors of a server.
const VCPUS: u32 = 24;

/// SQL Server's worker threads for so many processors, beyond four, on x64.
const WORKER_THREADS: usize = 512 + (VCPUS as usize - 4) * 16;

/// Share of the vCPUs that is busy at the target.
const BUSY_AT_TARGET: f64 = 0.5;

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

/// Two servers as closed networks; see the module.
fn closed(name: &str) -> Profile {
    let transactions_per_s = TARGET_PER_S / OPERATIONS;
    let work_s = BUSY_AT_TARGET * f64::from(VCPUS) / transactions_per_s;
    let storage_s = (OPERATIONS + 1.0) * MEAN_LATENCY_LIMIT.as_secs_f64();
    let think_s = WORKER_THREADS as f64 / transactions_per_s - storage_s - work_s;
    let threads = Threads::connected(
        WORKER_THREADS,
        Duration::from_secs_f64(think_s),
        Duration::from_secs_f64(work_s),
        OPERATIONS,
    );
    let mut profile = profile();
    profile.name = name.into();
    for vm in &mut profile.vms {
        vm.compute = Compute {
            vcpus: VCPUS,
            memory_bytes: 64 * GIB,
            ..Compute::UNTOLD
        };
        vm.streams[0].set_threads(threads);
        vm.streams[1].pacing = Pacing::Commits { of: 0 };
        vm.settle();
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_server_has_its_worker_threads_and_does_its_target_at_the_limit() {
        let profile = closed("tpce-like-closed");
        let server = &profile.vms[0];
        let threads = server.streams[0].threads().unwrap();
        assert_eq!(
            (threads.count, server.streams[1].outstanding_max),
            (832, 832)
        );
        assert_eq!(
            (threads.think.as_micros(), threads.work.as_micros()),
            (68_320, 3_312)
        );
        let per_s = server.threads_per_s(0, MEAN_LATENCY_LIMIT).unwrap();
        assert!((per_s / 25_000.0 - 1.0).abs() < 1e-6, "{per_s}");
    }

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
