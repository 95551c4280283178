//! Checks of pools: load, space, and workloads that share drives.

use super::Severity::{Info, Warning};
use super::{COMMON, Check, CheckFindings, RULES, SQL, Scene, VNX_RAID};
use crate::plan::catalog;
use crate::plan::demand::{Disk, Vm};
use crate::plan::thumb::{PLANNED_MOST, group_bytes, lot};
use site::plan::Layout;
use site::{Level, Provisioning, human};
use std::collections::BTreeSet;

/// Most of a pool that is taken.
const SPACE_MOST_PERCENT: u64 = 80;

/// Share of random writes from which on RAID 6 is dear.
const WRITES_MANY: f64 = 0.3;

/// What profiles call the stream of temporary tables.
const TEMPDB: &str = "tempdb";

/// Commands under way for each drive for a long time.
const QUEUE_PER_DRIVE: f64 = 2.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "more-than-all-drives",
        severity: Warning,
        why: "the planned I/O is more than the drives do at their rule of thumb: queues grow unless caches, and the order in which drives work, make up for it",
        mend: "plan more or faster drives, another level, or less load",
        source: RULES,
        look: more_than_all_drives,
    },
    Check {
        name: "over-66-percent",
        severity: Warning,
        why: "response times rise steeply past 66 % of the rule of thumb",
        mend: "plan more drives, faster ones, or a level with a smaller write penalty",
        source: RULES,
        look: over_66_percent,
    },
    Check {
        name: "queue-beyond-drives",
        severity: Info,
        why: "more than two commands for each drive, for long, only wait",
        mend: "lower the depth, or plan more drives",
        source: "KPIs of the published reference architectures: mean queue of at most 2 for each spindle",
        look: queue_beyond_drives,
    },
    Check {
        name: "raid6-many-writes",
        severity: Warning,
        why: "each small write is six I/Os of the drives",
        mend: "put volumes with many random writes on RAID 1/0",
        source: VNX_RAID,
        look: raid6_many_writes,
    },
    Check {
        name: "log-with-data",
        severity: Warning,
        why: "a log's sequential writes become random ones between those of the data, and one lost group takes both",
        mend: "give logs a pool of their own (`disk_pools`)",
        source: SQL,
        look: log_with_data,
    },
    Check {
        name: "log-not-mirrored",
        severity: Info,
        why: "commits wait for the log, and small writes to parity are the dearest there are",
        mend: "put logs on RAID 1/0",
        source: SQL,
        look: log_not_mirrored,
    },
    Check {
        name: "tempdb-not-mirrored",
        severity: Info,
        why: "half of what a database does to its temporary tables are writes, and they are dear on parity",
        mend: "put tempdb on RAID 1/0",
        source: COMMON,
        look: tempdb_not_mirrored,
    },
    Check {
        name: "streams-with-random",
        severity: Info,
        why: "large sequential reads and small random ones on the same drives take each other's time",
        mend: "give scans and backups a pool of their own",
        source: COMMON,
        look: streams_with_random,
    },
    Check {
        name: "thin-and-thick",
        severity: Info,
        why: "thin disks can take the space that the room for thick ones was reckoned with",
        mend: "keep thin and thick disks in pools of their own",
        source: COMMON,
        look: thin_and_thick,
    },
    Check {
        name: "pool-over-80-percent",
        severity: Warning,
        why: "no room is left for snapshots, growth and moves",
        mend: "leave a fifth of the pool free",
        source: "Storage DRS: threshold of 80 % of a datastore",
        look: pool_over_80_percent,
    },
    Check {
        name: "space-promised-twice",
        severity: Warning,
        why: "thin disks are promised more than there is: the pool is full before they are",
        mend: "plan for growth, or watch the pool's thresholds",
        source: COMMON,
        look: space_promised_twice,
    },
    Check {
        name: "stripe-unit-below-io",
        severity: Info,
        why: "a random operation larger than the stripe unit moves the arms of several drives",
        mend: "take a stripe unit at least as large as the usual random operation",
        source: COMMON,
        look: stripe_unit_below_io,
    },
    Check {
        name: "unwritten-disks",
        severity: Info,
        why: "reads of disks that hold nothing are answered without a drive, so a rehearsal flatters",
        mend: "set `filled` to what the disks really hold",
        source: super::REHEARSAL,
        look: unwritten_disks,
    },
];

fn pools<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = (usize, &'a Layout)> {
    scene.plan.pools.iter().enumerate()
}

fn more_than_all_drives(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for thumb in scene
        .thumbs
        .iter()
        .filter(|thumb| thumb.utilisation.is_some_and(|u| u > 1.0))
    {
        seen.add(thumb.line, thumb.sentence.trim_end_matches('.'));
    }
}

fn over_66_percent(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let over = |utilisation: f64| utilisation > PLANNED_MOST && utilisation <= 1.0;
    for thumb in scene
        .thumbs
        .iter()
        .filter(|thumb| thumb.utilisation.is_some_and(over))
    {
        seen.add(thumb.line, thumb.sentence.trim_end_matches('.'));
    }
}

fn drives(pool: &Layout) -> f64 {
    let groups = pool.groups.iter();
    groups
        .map(|groups| f64::from(groups.drives) * f64::from(groups.count))
        .sum()
}

fn queue_beyond_drives(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene) {
        let flows = scene
            .demand
            .disks_in(place)
            .flat_map(|(_, disk)| &disk.flows);
        let queued: f64 = flows.filter_map(|flow| flow.outstanding).sum();
        // Flash works on many commands at once.
        let has_rule = scene.thumbs[place].drives_per_s.is_some();
        if has_rule && queued > QUEUE_PER_DRIVE * drives(pool) {
            seen.add(
                pool.line,
                format!(
                    "{queued:.0} commands are under way for {:.0} drives of pool {:?}",
                    drives(pool),
                    pool.name
                ),
            );
        }
    }
}

fn raid6_many_writes(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene).filter(|(_, pool)| has_level(pool, &[Level::Raid6])) {
        let (mut all, mut writes) = (0.0, 0.0);
        for flow in scene
            .demand
            .disks_in(place)
            .flat_map(|(_, disk)| &disk.flows)
        {
            // Closed loops by their depth, for want of a rate.
            let weight = flow.per_s + flow.outstanding.unwrap_or(0.0);
            all += weight;
            writes += weight * (1.0 - flow.reads) * flow.random;
        }
        if writes > WRITES_MANY * all {
            let percent = writes / all * 100.0;
            seen.add(
                pool.line,
                format!(
                    "{percent:.0} % of the I/O of pool {:?} are random writes to RAID 6",
                    pool.name
                ),
            );
        }
    }
}

/// Whether arms move: on flash, what shares drives costs little.
fn seeks(scene: &Scene<'_>, pool: &Layout) -> bool {
    let lots = pool
        .groups
        .iter()
        .filter_map(|groups| lot(scene.plan, &groups.from));
    lots.filter_map(|lot| catalog::drive(lot).ok())
        .any(|drive| drive.is_rotational())
}

fn has_level(pool: &Layout, levels: &[Level]) -> bool {
    pool.groups
        .iter()
        .any(|groups| levels.contains(&groups.level))
}

fn has_parity(pool: &Layout) -> bool {
    let mut levels = pool.groups.iter().map(|groups| groups.level);
    levels.any(|level| level.parity_drives() > 0)
}

fn is_log(disk: &Disk) -> bool {
    !disk.flows.is_empty() && disk.flows.iter().all(|flow| flow.is_log())
}

/// Names of VMs, each once, for messages.
fn names<'a>(vms: impl Iterator<Item = &'a Vm>) -> Vec<&'a str> {
    let names: BTreeSet<&str> = vms.map(|vm| vm.role.as_str()).collect();
    names.into_iter().take(5).collect()
}

fn log_with_data(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene).filter(|(_, pool)| seeks(scene, pool)) {
        let disks = || scene.demand.disks_in(place);
        let has_data = disks().any(|(_, disk)| disk.flows.iter().any(|flow| flow.is_random()));
        let logs = names(disks().filter(|(_, disk)| is_log(disk)).map(|(vm, _)| vm));
        if has_data && !logs.is_empty() {
            seen.add(
                pool.line,
                format!(
                    "pool {:?} has the logs of {} beside random I/O",
                    pool.name,
                    logs.join(", ")
                ),
            );
        }
    }
}

fn log_not_mirrored(scene: &Scene<'_>, seen: &mut CheckFindings) {
    on_parity(scene, seen, "logs", is_log);
}

fn tempdb_not_mirrored(scene: &Scene<'_>, seen: &mut CheckFindings) {
    on_parity(scene, seen, "temporary tables", |disk| {
        disk.flows.iter().any(|flow| flow.stream == TEMPDB)
    });
}

/// Disks that `is_one` and lie on parity of drives that seek.
fn on_parity(scene: &Scene<'_>, seen: &mut CheckFindings, what: &str, is_one: fn(&Disk) -> bool) {
    let wanted = |pool: &Layout| has_parity(pool) && seeks(scene, pool);
    for (place, pool) in pools(scene).filter(|(_, pool)| wanted(pool)) {
        let disks = scene.demand.disks_in(place);
        let vms = names(disks.filter(|(_, disk)| is_one(disk)).map(|(vm, _)| vm));
        if !vms.is_empty() {
            let vms = vms.join(", ");
            let name = &pool.name;
            seen.add(
                pool.line,
                format!("the {what} of {vms} are on parity in pool {name:?}"),
            );
        }
    }
}

fn streams_with_random(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene).filter(|(_, pool)| seeks(scene, pool)) {
        let flows = || {
            scene
                .demand
                .disks_in(place)
                .flat_map(|(vm, disk)| disk.flows.iter().map(move |flow| (vm, flow)))
        };
        let is_stream = |(_, flow): &(&Vm, &crate::plan::demand::Flow)| {
            flow.random < 0.5 && flow.reads > 0.5 && flow.bytes() > 65_536.0
        };
        let streams = names(flows().filter(is_stream).map(|(vm, _)| vm));
        if !streams.is_empty() && flows().any(|(_, flow)| flow.is_random()) {
            seen.add(
                pool.line,
                format!(
                    "pool {:?} has the scans of {} beside random I/O",
                    pool.name,
                    streams.join(", ")
                ),
            );
        }
    }
}

fn thin_and_thick(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene) {
        let kinds: BTreeSet<bool> = scene
            .demand
            .disks_in(place)
            .map(|(_, disk)| disk.provisioning == Provisioning::Thin)
            .collect();
        if kinds.len() > 1 {
            seen.add(
                pool.line,
                format!("pool {:?} has thin and thick disks", pool.name),
            );
        }
    }
}

fn room(scene: &Scene<'_>, pool: &Layout) -> u64 {
    group_bytes(scene.plan, pool).iter().sum()
}

fn pool_over_80_percent(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene) {
        let taken: u64 = scene
            .demand
            .disks_in(place)
            .map(|(_, disk)| disk.taken_bytes)
            .sum();
        let room = room(scene, pool);
        if room > 0 && taken / SPACE_MOST_PERCENT > room / 100 {
            seen.add(
                pool.line,
                format!(
                    "disks take {} of the {} of pool {:?}",
                    human(taken),
                    human(room),
                    pool.name
                ),
            );
        }
    }
}

fn space_promised_twice(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene) {
        let promised: u64 = scene
            .demand
            .disks_in(place)
            .map(|(_, disk)| disk.size_bytes)
            .sum();
        let room = room(scene, pool);
        if room > 0 && promised > room {
            seen.add(
                pool.line,
                format!(
                    "disks of {} are promised in the {} of pool {:?}",
                    human(promised),
                    human(room),
                    pool.name
                ),
            );
        }
    }
}

fn stripe_unit_below_io(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for (place, pool) in pools(scene) {
        let flows = scene
            .demand
            .disks_in(place)
            .flat_map(|(_, disk)| &disk.flows);
        let sizes = flows
            .filter(|flow| flow.is_random())
            .map(|flow| flow.bytes());
        let largest = sizes.fold(0.0, f64::max);
        if largest > f64::from(pool.stripe_unit_bytes) {
            let unit = pool.stripe_unit_bytes >> 10;
            seen.add(
                pool.line,
                format!(
                    "random I/O of {:.0} KiB on stripe units of {unit} KiB in pool {:?}",
                    largest / 1024.0,
                    pool.name
                ),
            );
        }
    }
}

fn unwritten_disks(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for vm_group in scene
        .plan
        .vm_groups
        .iter()
        .filter(|vm_group| vm_group.filled_percent == 0)
    {
        seen.add(
            vm_group.line,
            format!("disks of VM group {:?} hold nothing", vm_group.name),
        );
    }
}
