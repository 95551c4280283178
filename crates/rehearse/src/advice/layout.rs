//! Checks of drives, RAID groups and spares.

use super::Severity::{Error, Info, Warning};
use super::{COMMON, Check, CheckFindings, ENGINE, PAC, RULES, Scene, VBLOCK};
use crate::parts::drive::DriveKind;
use crate::plan::catalog;
use crate::plan::thumb::{drive_per_s, lot};
use site::Level;
use site::plan::{Groups, Layout};
use std::collections::BTreeSet;

/// Drives for which there is one spare.
const DRIVES_PER_SPARE: u32 = 30;

/// Most drives of a RAID 5 group: 8 + 1.
const RAID5_MOST: usize = 9;

/// Most drives of a RAID 6 group: 14 + 2.
const RAID6_MOST: usize = 16;

/// Rebuilds of drives from here on take longer than one wants to be without a second parity.
const LARGE_BYTES: u64 = 1_000_000_000_000;

/// More drives than this behind one bus of several.
const BUS_MOST: u32 = 20;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "no-redundancy",
        severity: Error,
        why: "one failed drive loses the volumes of the pool",
        mend: "take a level with copies or parity",
        source: COMMON,
        look: no_redundancy,
    },
    Check {
        name: "no-spare",
        severity: Warning,
        why: "a group stays without its redundancy until somebody brings a drive",
        mend: "give the pool a spare: one for 30 drives",
        source: COMMON,
        look: no_spare,
    },
    Check {
        name: "few-spares",
        severity: Info,
        why: "a second drive that fails before the first is replaced has no spare",
        mend: "plan one spare for 30 drives",
        source: COMMON,
        look: few_spares,
    },
    Check {
        name: "spare-too-small",
        severity: Error,
        why: "a spare that is smaller than the drive can't stand in for it",
        mend: "take a spare at least as large as the largest drive of the pool",
        source: PAC,
        look: spare_too_small,
    },
    Check {
        name: "spare-slower",
        severity: Warning,
        why: "a group is as slow as its slowest drive once the spare stands in",
        mend: "take spares of the pool's own kind",
        source: "Reliant Technology, EMC VNX2 and hot sparing",
        look: spare_slower,
    },
    Check {
        name: "raid5-large-nearline",
        severity: Warning,
        why: "the rebuild of a large slow drive takes so long that a second failure or an unreadable sector is likely before its end",
        mend: "take RAID 6 for drives of 7,200 rpm of 1 TB and more",
        source: VBLOCK,
        look: raid5_large_nearline,
    },
    Check {
        name: "wide-raid5",
        severity: Warning,
        why: "the more drives share one parity, the likelier is a second failure during a rebuild",
        mend: "make groups of 5 (4+1) to 9 (8+1) drives",
        source: VBLOCK,
        look: wide_raid5,
    },
    Check {
        name: "wide-raid6",
        severity: Info,
        why: "a rebuild reads all drives of the group, and with many drives a third failure gets likely",
        mend: "make groups of at most 16 drives (14+2)",
        source: VBLOCK,
        look: wide_raid6,
    },
    Check {
        name: "mixed-drives",
        severity: Warning,
        why: "volumes lie over all groups of a pool, so the slowest drives decide",
        mend: "make a pool of one drive model",
        source: COMMON,
        look: mixed_drives,
    },
    Check {
        name: "mixed-levels",
        severity: Info,
        why: "what a volume costs and survives depends on the groups that it happens to be on",
        mend: "make all groups of a pool of one level",
        source: COMMON,
        look: mixed_levels,
    },
    Check {
        name: "uneven-groups",
        severity: Info,
        why: "groups of different width fill at the same rate but serve at different ones",
        mend: "make all groups of a pool equally wide",
        source: COMMON,
        look: uneven_groups,
    },
    Check {
        name: "pool-behind-one-bus",
        severity: Info,
        why: "all of the pool goes through one bus, and is gone with its shelf, while others are there",
        mend: "spread the groups of a pool over the buses",
        source: COMMON,
        look: pool_behind_one_bus,
    },
    Check {
        name: "page-not-of-full-stripes",
        severity: Info,
        why: "a page that is written as a whole is written without reading only where it is whole stripes",
        mend: "choose stripe unit and group so that the page is a multiple of stripe unit times data drives",
        source: ENGINE,
        look: page_not_of_full_stripes,
    },
    Check {
        name: "no-rule-of-thumb",
        severity: Info,
        why: "nothing that is planned is held against what its drives can do",
        mend: "rely on the rehearsal",
        source: RULES,
        look: no_rule_of_thumb,
    },
];

fn kind(scene: &Scene<'_>, from: &str) -> Option<DriveKind> {
    catalog::drive(lot(scene.plan, from)?).ok()
}

/// Groups that all of a VM's disks have something to do with: those of pools in use.
fn pools<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = &'a Layout> {
    scene.plan.pools.iter()
}

fn drives(pool: &Layout) -> u32 {
    let groups = pool.groups.iter();
    groups
        .map(|groups| u32::from(groups.drives) * u32::from(groups.count))
        .sum()
}

fn spares(pool: &Layout) -> u32 {
    pool.spares
        .iter()
        .map(|spares| u32::from(spares.count))
        .sum()
}

/// Drives' worth of spare room on the drives of its groups.
fn distributed_spares(pool: &Layout) -> u32 {
    let of_group = |groups: &Groups| groups.spread.map_or(0, |spread| u32::from(spread.spares));
    let groups = pool.groups.iter();
    groups
        .map(|groups| of_group(groups) * u32::from(groups.count))
        .sum()
}

/// Whether each group of a pool has spare room of its own.
fn all_have_room(pool: &Layout) -> bool {
    pool.groups.iter().all(|groups| groups.spread.is_some())
}

fn is_redundant(pool: &Layout) -> bool {
    pool.groups
        .iter()
        .all(|groups| groups.level != Level::Simple)
}

fn no_redundancy(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for pool in pools(scene).filter(|pool| !is_redundant(pool)) {
        seen.add(
            pool.line,
            format!("pool {:?} has drives without copy or parity", pool.name),
        );
    }
}

fn no_spare(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let lacks = |pool: &&Layout| is_redundant(pool) && spares(pool) == 0 && !all_have_room(pool);
    for pool in pools(scene).filter(lacks) {
        seen.add(
            pool.line,
            format!(
                "pool {:?} of {} drives has no spare",
                pool.name,
                drives(pool)
            ),
        );
    }
}

fn few_spares(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for pool in pools(scene) {
        let room = distributed_spares(pool);
        let (drives, spares) = (drives(pool) - room, spares(pool) + room);
        let wanted = drives.div_ceil(DRIVES_PER_SPARE);
        if spares > 0 && spares < wanted {
            seen.add(
                pool.line,
                format!(
                    "pool {:?} has {spares} of {wanted} spares for {drives} drives",
                    pool.name
                ),
            );
        }
    }
}

/// Calls `is_wrong` with each spare and each drive that it may stand in for.
/// A drive of a lot.
struct Drive {
    kind: DriveKind,
    capacity_bytes: u64,
}

fn drive(scene: &Scene<'_>, from: &str) -> Option<Drive> {
    let kind = kind(scene, from)?;
    let capacity_bytes = catalog::capacity_bytes(lot(scene.plan, from)?, &kind);
    Some(Drive {
        kind,
        capacity_bytes,
    })
}

fn spares_wrong(
    scene: &Scene<'_>,
    seen: &mut CheckFindings,
    how: &str,
    is_wrong: fn(&Drive, &Drive) -> bool,
) {
    for pool in pools(scene) {
        for spare in &pool.spares {
            let Some(stands_in) = drive(scene, &spare.from) else {
                continue;
            };
            let kinds = pool
                .groups
                .iter()
                .filter_map(|groups| drive(scene, &groups.from));
            if kinds.into_iter().any(|drive| is_wrong(&stands_in, &drive)) {
                seen.add(
                    pool.line,
                    format!(
                        "spares of pool {:?} from {:?} are {how} than its drives",
                        pool.name, spare.from
                    ),
                );
            }
        }
    }
}

fn spare_too_small(scene: &Scene<'_>, seen: &mut CheckFindings) {
    spares_wrong(scene, seen, "smaller", |spare, drive| {
        spare.capacity_bytes < drive.capacity_bytes
    });
}

fn spare_slower(scene: &Scene<'_>, seen: &mut CheckFindings) {
    spares_wrong(scene, seen, "slower", |spare, drive| {
        let (spare, drive) = (&spare.kind, &drive.kind);
        match (drive_per_s(spare), drive_per_s(drive)) {
            (Some(spare), Some(drive)) => spare < drive,
            // Flash that no rule knows is faster than any disk.
            (Some(_), None) => spare.is_rotational() && !drive.is_rotational(),
            _ => false,
        }
    });
}

fn raid5_large_nearline(scene: &Scene<'_>, seen: &mut CheckFindings) {
    each_group(scene, |pool, groups| {
        let Some(DriveKind::Hdd(drive)) = kind(scene, &groups.from) else {
            return;
        };
        let one_parity = groups.level.parity_drives() == 1;
        if one_parity && drive.rpm <= 7_200 && drive.capacity_bytes >= LARGE_BYTES {
            seen.add(
                pool.line,
                format!(
                    "pool {:?} has RAID {} of large drives of 7,200 rpm",
                    pool.name,
                    groups.level.as_str()
                ),
            );
        }
    });
}

fn each_group(scene: &Scene<'_>, mut look: impl FnMut(&Layout, &Groups)) {
    for pool in pools(scene) {
        for groups in &pool.groups {
            look(pool, groups);
        }
    }
}

/// Drives that share their parity: of RAID 50 a set, with distributed spares a stripe, else the
/// group.
fn span(groups: &Groups) -> usize {
    let drives = usize::from(groups.drives);
    if let Some(spread) = groups.spread {
        return usize::from(spread.width);
    }
    match (groups.level, groups.level.data_drives(drives)) {
        (Level::Raid50, Some(data)) if data < drives => drives / (drives - data),
        _ => drives,
    }
}

fn wide_raid5(scene: &Scene<'_>, seen: &mut CheckFindings) {
    each_group(scene, |pool, groups| {
        let one_parity = groups.level.parity_drives() == 1;
        if one_parity && span(groups) > RAID5_MOST {
            seen.add(
                pool.line,
                format!(
                    "pool {:?} has one parity for {} drives",
                    pool.name,
                    span(groups)
                ),
            );
        }
    });
}

fn wide_raid6(scene: &Scene<'_>, seen: &mut CheckFindings) {
    each_group(scene, |pool, groups| {
        if groups.level == Level::Raid6 && span(groups) > RAID6_MOST {
            seen.add(
                pool.line,
                format!(
                    "pool {:?} has a RAID 6 {} of {} drives",
                    pool.name,
                    groups.spread.map_or("group", |_| "stripe"),
                    span(groups)
                ),
            );
        }
    });
}

/// Pools whose groups have more than one `of_group`.
fn mixed<T: Ord + Clone>(
    scene: &Scene<'_>,
    seen: &mut CheckFindings,
    what: &str,
    of_group: impl Fn(&Groups) -> T,
) {
    for pool in pools(scene) {
        let kinds: BTreeSet<T> = pool.groups.iter().map(&of_group).collect();
        if kinds.len() > 1 {
            seen.add(
                pool.line,
                format!("pool {:?} has groups of {} {what}", pool.name, kinds.len()),
            );
        }
    }
}

fn mixed_drives(scene: &Scene<'_>, seen: &mut CheckFindings) {
    mixed(scene, seen, "drive models", |groups| {
        lot(scene.plan, &groups.from).map(|lot| lot.model.clone())
    });
}

fn mixed_levels(scene: &Scene<'_>, seen: &mut CheckFindings) {
    mixed(scene, seen, "levels", |groups| groups.level.as_str());
}

fn uneven_groups(scene: &Scene<'_>, seen: &mut CheckFindings) {
    mixed(scene, seen, "widths", |groups| groups.drives);
}

fn pool_behind_one_bus(scene: &Scene<'_>, seen: &mut CheckFindings) {
    let used = |pool: &Layout| -> BTreeSet<String> {
        let lots = pool
            .groups
            .iter()
            .filter_map(|groups| lot(scene.plan, &groups.from));
        lots.map(|lot| lot.bus.clone()).collect()
    };
    let all: BTreeSet<String> = pools(scene).flat_map(used).collect();
    for pool in pools(scene) {
        let buses = used(pool);
        if all.len() > 1 && buses.len() == 1 && drives(pool) > BUS_MOST {
            seen.add(
                pool.line,
                format!(
                    "all {} drives of pool {:?} are behind one of {} buses",
                    drives(pool),
                    pool.name,
                    all.len()
                ),
            );
        }
    }
}

fn page_not_of_full_stripes(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for pool in pools(scene) {
        let uneven = pool.groups.iter().find_map(|groups| {
            let parity = groups.level.parity_drives();
            if parity == 0 {
                return None;
            }
            let data = u32::try_from(span(groups) - parity).ok()?;
            let stripe_bytes = pool.stripe_unit_bytes.checked_mul(data)?;
            (!pool.page_bytes.is_multiple_of(stripe_bytes)).then_some(stripe_bytes)
        });
        if let Some(stripe_bytes) = uneven {
            let (page, stripe) = (pool.page_bytes >> 10, stripe_bytes >> 10);
            seen.add(
                pool.line,
                format!(
                    "pages of pool {:?} have {page} KiB, its stripes {stripe} KiB of data",
                    pool.name
                ),
            );
        }
    }
}

fn no_rule_of_thumb(scene: &Scene<'_>, seen: &mut CheckFindings) {
    for thumb in scene
        .thumbs
        .iter()
        .filter(|thumb| thumb.drives_per_s.is_none())
    {
        seen.add(
            thumb.line,
            format!("no rule of thumb knows the drives of pool {:?}", thumb.pool),
        );
    }
}
