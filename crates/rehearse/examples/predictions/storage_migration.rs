//! The ten VMs of the PS6110XV under load while their storage moves.

use crate::row::{Section, asked};
use crate::run::{Outcomes, Run};

/// The event of the site's file is at 30 s: all that is measured lies within the migration, if
/// that takes so long.
const fn moved(variant: &'static str) -> Run {
    Run::of("ps6110xv", variant, (31, 60))
}

const OFFLOADED: Run = moved("storage migration with offload");
const BY_HOSTS: Run = moved("storage migration without offload");
const OFFLOADED_AWAY: Run = moved("storage migration to a second array with offload");
const BY_HOSTS_AWAY: Run = moved("storage migration to a second array without offload");

/// How long the migration took; of one that had not ended, at its pace until then.
fn migration_min(o: &Outcomes, run: Run) -> Option<f64> {
    let moved = o.undertook(run, "move of VM group")?;
    let took = moved.took.as_secs_f64() / 60.0;
    match moved.has_ended {
        true => Some(took),
        false if moved.bytes == 0 => None,
        false => Some(took * o.first_disks_bytes(run)? as f64 / moved.bytes as f64),
    }
}

pub fn section() -> Section {
    Section {
        title: "E. PS6110XV, storage migration of ten VMs",
        runs: &[OFFLOADED, BY_HOSTS, OFFLOADED_AWAY, BY_HOSTS_AWAY],
        rows: vec![
            asked(
                "with offload, in the array",
                "IO/s",
                |o| o.iops(OFFLOADED),
                "the system disks of all ten VMs, full: 520 GB, without the memory files of the published 684; within a pool the engine refers to what is there, so this is the load without a migration",
            ),
            asked(
                "with offload, in the array, read latency",
                "ms",
                |o| o.read_service_ms(OFFLOADED),
                "",
            ),
            asked(
                "with offload, in the array, duration",
                "s",
                |o| Some(migration_min(o, OFFLOADED)? * 60.0),
                "nothing is copied, which an array that copies can't match",
            ),
            asked(
                "without offload, in the array",
                "IO/s",
                |o| o.iops(BY_HOSTS),
                "the hosts copy two VMs each at once, 256 KiB at a time, which is a small write of RAID 6: the VMs do not get what they ask for",
            ),
            asked(
                "without offload, in the array, read latency",
                "ms",
                |o| o.read_service_ms(BY_HOSTS),
                "from the issue, not from when it was due",
            ),
            asked(
                "without offload, in the array, duration",
                "min",
                |o| migration_min(o, BY_HOSTS),
                "at the pace of its first minute",
            ),
            asked(
                "with offload, to a second array",
                "IO/s",
                |o| o.iops(OFFLOADED_AWAY),
                "not published: the engine copies where it can't refer",
            ),
            asked(
                "with offload, to a second array, read latency",
                "ms",
                |o| o.read_service_ms(OFFLOADED_AWAY),
                "from the issue",
            ),
            asked(
                "with offload, to a second array, duration",
                "min",
                |o| migration_min(o, OFFLOADED_AWAY),
                "at the pace of its first minute",
            ),
            asked(
                "without offload, to a second array",
                "IO/s",
                |o| o.iops(BY_HOSTS_AWAY),
                "not published",
            ),
            asked(
                "without offload, to a second array, read latency",
                "ms",
                |o| o.read_service_ms(BY_HOSTS_AWAY),
                "from the issue",
            ),
            asked(
                "without offload, to a second array, duration",
                "min",
                |o| migration_min(o, BY_HOSTS_AWAY),
                "at the pace of its first minute",
            ),
        ],
    }
}
