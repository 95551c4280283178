//! The classical arithmetic of array sizing: host I/O, times a penalty for the RAID level,
//! against so many I/Os a second for each drive.
//!
//! It knows of no cache, no queue and no place on a drive. It is what a rehearsal is held
//! beside: where the two differ, something that the arithmetic leaves out counts.
//!
//! Rules (published with array planning guides of 2011, for small random I/O):
//!
//! - a drive does 3,500 (flash, SLC), 180 (15k), 150 (10k) or 90 (7.2k) I/Os a second;
//! - a write is 2 I/Os of RAID 1/0, 4 of RAID 5, 6 of RAID 6, and 3 of three copies;
//! - I/O over 16 KiB wants a fifth more drives; the rule says so up to 32 KiB, and nothing of
//!   up to 64 KiB, where the same is taken;
//! - over 64 KiB bandwidth counts, not I/Os: what the drive gives in its innermost zone;
//! - plan to 66 % at most.

use super::catalog;
use super::demand::{Demand, Flow};
use crate::parts::drive::DriveKind;
use engine::raid::Protection;
use model::flash::Flash;
use site::Level;
use site::plan::{Layout, Lot, Plan};

/// Most of the rule of thumb that is planned for.
pub const PLANNED_MOST: f64 = 0.66;

const KIB: f64 = 1024.0;

/// From here on a fifth more drives.
const MEDIUM_ABOVE_BYTES: f64 = 16.0 * KIB;

/// From here on bandwidth.
const LARGE_ABOVE_BYTES: f64 = 64.0 * KIB;

/// So many more I/Os are reckoned for one of medium size.
const MEDIUM_FACTOR: f64 = 1.2;

/// What the rules say of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolThumb {
    /// The pool's name in the plan.
    pub pool: String,
    /// Where the file describes it.
    pub line: usize,
    /// Reads a second that hosts plan, of open loops.
    pub reads_per_s: f64,
    /// Writes a second that hosts plan, of open loops.
    pub writes_per_s: f64,
    /// I/Os a second of the drives, without those of large operations.
    pub back_end_per_s: f64,
    /// Bytes a second that drives read and write for large operations.
    pub large_bytes_per_s: f64,
    /// I/Os a second that the rule gives the drives; none without a rule for one of them.
    pub drives_per_s: Option<f64>,
    /// Bytes a second that the drives give.
    pub drives_bytes_per_s: f64,
    /// Share of the rule of thumb, or of the bandwidth, together; none without a rule.
    pub utilisation: Option<f64>,
    /// Whether closed loops are on it, which ask for what they can get.
    pub closed: bool,
    /// The result in one sentence, for reports.
    pub sentence: String,
}

/// I/Os of the drives for a write of a host.
pub fn write_penalty(level: Level) -> f64 {
    match level {
        Level::Simple => 1.0,
        Level::Raid10 { copies } => f64::from(copies),
        Level::Raid5 | Level::Raid50 => 4.0,
        Level::Raid6 => 6.0,
    }
}

/// I/Os of the drives for so many reads and writes of hosts.
pub fn back_end_per_s(level: Level, reads_per_s: f64, writes_per_s: f64) -> f64 {
    reads_per_s + writes_per_s * write_penalty(level)
}

/// Bytes that drives write for a byte of a large write, which fills whole stripes.
fn large_penalty(protection: Protection, drives: u16) -> f64 {
    let drives = usize::from(drives);
    // Nobody writes spare room.
    let spares = protection
        .spread
        .map_or(0, |spread| usize::from(spread.spares));
    protection
        .data_drives(drives)
        .map_or(1.0, |data| (drives - spares) as f64 / data as f64)
}

/// Small random I/Os a second of one drive; none for one that the rules don't know.
pub fn drive_per_s(kind: &DriveKind) -> Option<f64> {
    match kind {
        DriveKind::Hdd(drive) => match drive.rpm {
            15_000 => Some(180.0),
            10_000 => Some(150.0),
            7_200 => Some(90.0),
            _ => None,
        },
        DriveKind::Flash(drive) if *drive == Flash::SLC_SAS_100 || *drive == Flash::SLC_SAS_200 => {
            Some(3_500.0)
        }
        DriveKind::Flash(_) | DriveKind::Throttled(_) | DriveKind::Measured(_) => None,
    }
}

/// What a drive gives of large operations, where it is slowest.
fn drive_bytes_per_s(kind: &DriveKind) -> f64 {
    match kind {
        DriveKind::Hdd(drive) => drive.inner_bytes_per_s as f64,
        DriveKind::Flash(drive) => drive.read_bytes_per_second as f64,
        DriveKind::Throttled(drive) => drive.bytes_per_second as f64,
        DriveKind::Measured(drive) => drive.read_bytes_per_s(),
    }
}

/// The same of all drives of `groups`; drives that are parts of one device do what it does.
fn drives_bytes(kind: &DriveKind, groups: &site::plan::Groups) -> f64 {
    let drives = match kind.is_shared() {
        true => 1.0,
        false => f64::from(groups.drives) * f64::from(groups.count),
    };
    drive_bytes_per_s(kind) * drives
}

/// All pools of a plan, in the order of the file.
pub fn pools(plan: &Plan, demand: &Demand) -> Vec<PoolThumb> {
    let pools = plan.pools.iter().enumerate();
    pools
        .map(|(place, pool)| of_pool(plan, demand, place, pool))
        .collect()
}

/// I/Os a second of the active drives of `pool` by the rule; none without a rule for one.
pub fn drives_per_s(plan: &Plan, pool: &Layout) -> Option<f64> {
    let groups = pool.groups.iter().map(|groups| {
        let kind = catalog::drive(lot(plan, &groups.from)?).ok()?;
        Some(drive_per_s(&kind)? * f64::from(groups.drives) * f64::from(groups.count))
    });
    groups.sum()
}

/// The lot of that name.
pub(crate) fn lot<'a>(plan: &'a Plan, name: &str) -> Option<&'a Lot> {
    plan.lots.iter().find(|lot| lot.name == name)
}

/// Whether the file names the drives of `pool`.
pub(crate) fn has_names(plan: &Plan, pool: &Layout) -> bool {
    let mut lots = pool
        .groups
        .iter()
        .filter_map(|groups| lot(plan, &groups.from));
    lots.any(|lot| !lot.names.is_empty())
}

/// Bytes that each of `pool.groups` holds, in order; 0 of drives that are not known.
pub fn group_bytes(plan: &Plan, pool: &Layout) -> Vec<u64> {
    let bytes = |groups: &site::plan::Groups| -> Option<u64> {
        let kind = catalog::drive(lot(plan, &groups.from)?).ok()?;
        let data = groups
            .protection()
            .data_drives(usize::from(groups.drives))?;
        Some(
            catalog::capacity_bytes(lot(plan, &groups.from)?, &kind)
                * data as u64
                * u64::from(groups.count),
        )
    };
    pool.groups
        .iter()
        .map(|groups| bytes(groups).unwrap_or(0))
        .collect()
}

fn of_pool(plan: &Plan, demand: &Demand, place: usize, pool: &Layout) -> PoolThumb {
    let mut sum = Sum::default();
    let bytes = group_bytes(plan, pool);
    let all: u64 = bytes.iter().sum();
    let mut drives_bytes_per_s = 0.0;
    for (groups, bytes) in pool.groups.iter().zip(bytes) {
        // Volumes lie on all groups, by the room that they have.
        let share = if all == 0 {
            0.0
        } else {
            bytes as f64 / all as f64
        };
        for flow in demand.disks_in(place).flat_map(|(_, disk)| &disk.flows) {
            sum.add(flow, share, (groups.protection(), groups.drives));
        }
        if let Some(Ok(kind)) = lot(plan, &groups.from).map(catalog::drive) {
            drives_bytes_per_s += drives_bytes(&kind, groups);
        }
    }
    let drives_per_s = drives_per_s(plan, pool);
    let utilisation = drives_per_s.map(|per_s| {
        let large = if drives_bytes_per_s > 0.0 {
            sum.large_bytes_per_s / drives_bytes_per_s
        } else {
            0.0
        };
        sum.back_end_per_s / per_s + large
    });
    let mut thumb = PoolThumb {
        pool: pool.name.clone(),
        line: pool.line,
        reads_per_s: sum.reads_per_s,
        writes_per_s: sum.writes_per_s,
        back_end_per_s: sum.back_end_per_s,
        large_bytes_per_s: sum.large_bytes_per_s,
        drives_per_s,
        drives_bytes_per_s,
        utilisation,
        closed: sum.closed,
        sentence: String::new(),
    };
    thumb.sentence = sentence(&thumb);
    thumb
}

#[derive(Default)]
struct Sum {
    reads_per_s: f64,
    writes_per_s: f64,
    back_end_per_s: f64,
    large_bytes_per_s: f64,
    closed: bool,
}

impl Sum {
    fn add(&mut self, flow: &Flow, share: f64, (protection, drives): (Protection, u16)) {
        self.closed |= flow.outstanding.is_some();
        let per_size = flow.per_s * share / flow.sizes.len() as f64;
        let (reads, writes) = (per_size * flow.reads, per_size * (1.0 - flow.reads));
        for size in &flow.sizes {
            let bytes = f64::from(*size);
            self.reads_per_s += reads;
            self.writes_per_s += writes;
            if bytes > LARGE_ABOVE_BYTES {
                let of_drives = reads + writes * large_penalty(protection, drives);
                self.large_bytes_per_s += of_drives * bytes;
            } else {
                let factor = if bytes > MEDIUM_ABOVE_BYTES {
                    MEDIUM_FACTOR
                } else {
                    1.0
                };
                self.back_end_per_s += back_end_per_s(protection.level, reads, writes) * factor;
            }
        }
    }
}

fn sentence(thumb: &PoolThumb) -> String {
    let hosts = thumb.reads_per_s + thumb.writes_per_s;
    let closed = if thumb.closed {
        " Closed loops come on top, which ask for what they can get."
    } else {
        ""
    };
    if hosts == 0.0 {
        return match thumb.closed {
            true => format!(
                "Pool {:?} has closed loops only: the rule of thumb plans no rate for them.",
                thumb.pool
            ),
            false => format!("Pool {:?} has nothing to do.", thumb.pool),
        };
    }
    let planned = format!(
        "Pool {:?}: {hosts:.0} host I/Os a second ({:.0} reads, {:.0} writes) are {:.0} of the drives",
        thumb.pool, thumb.reads_per_s, thumb.writes_per_s, thumb.back_end_per_s
    );
    let large = match thumb.large_bytes_per_s {
        0.0 => String::new(),
        bytes => format!(" and {:.0} MB/s of large ones", bytes / 1e6),
    };
    match (thumb.drives_per_s, thumb.utilisation) {
        (Some(per_s), Some(utilisation)) => format!(
            "{planned}{large}, {:.0} % of the {per_s:.0} that the rule of thumb gives them; 66 % is planned at most.{closed}",
            utilisation * 100.0
        ),
        _ => format!("{planned}{large}; there is no rule of thumb for these drives.{closed}"),
    }
}
