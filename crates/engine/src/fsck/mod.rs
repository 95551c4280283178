//! The check of a pool that no array has open; it changes nothing.
//!
//! Invariants:
//! - Not one byte is written: drives are only ever read, and none is flushed.
//! - What a crash leaves behind, and the next opening puts right from the logs, is a
//!   note; what a clean close rules out is damage. (A close that was cut while it wrote
//!   its labels, its last writes, may count as clean.)
//! - A finding says where: the drive and the offset there, or the volume and the
//!   offset in it.
//!
//! Rooms: `report`, `subject` (what is looked at), `labels` and `slots` (from drives to
//! a pool), `table` (its members), `metadata` (checkpoints), `journal`, `map` (pages and
//! their owners), `logs` and `chain` (both rings), `held` (what they hold), `sums`
//! (integrity blocks), `data` (stripes), `row` (mirrors and parity).

mod chain;
mod data;
mod held;
mod journal;
mod labels;
mod logs;
mod map;
mod metadata;
mod report;
mod row;
mod slots;
mod subject;
mod sums;
mod table;

pub use report::{Counts, Finding, Report, Severity};

use crate::drives::NamedDrive;
use crate::drives::heartbeat;
use crate::error::{PoolError, PoolErrorKind};
use crate::lane::{LaneSlot, Part};
use crate::world::World;
use slots::Shared;
use std::cell::Cell;
use std::rc::Rc;
use subject::Subject;

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Read every block of every mapped page, its copies and its parity.
    pub deep: bool,
}

/// How far a look has come, for whoever waits. Nothing is known of the end before the
/// metadata has been read.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes that were read.
    pub read_bytes: Cell<u64>,
    /// Blocks of zones in use, looked at or skipped, and how many there are.
    pub done_blocks: Cell<u64>,
    /// Blocks of zones in use in all; see `done_blocks`.
    pub all_blocks: Cell<u64>,
}

impl Progress {
    fn did(&self, blocks: u64) {
        self.done_blocks.set(self.done_blocks.get() + blocks);
    }
}

/// Looks through the pool that the labels of `drives` describe, and tells `progress`.
///
/// # Errors
/// When it can't be said which pool that is: `Invalid` for no drives, for the same
/// drive twice and in a world without bytes; `Unlabelled`, `Foreign`, `Version` and
/// `Corrupt` as [`crate::Lane::open`]; `Drive` when no label can be read.
pub async fn check_watched<W: World>(
    world: &W,
    drives: Vec<NamedDrive<W>>,
    options: Options,
    progress: Rc<Progress>,
) -> Result<Report, PoolError> {
    if world.buffers().is_length_only() {
        let context = "drives that keep no bytes can't be checked";
        return Err(PoolError::new(PoolErrorKind::Invalid, context));
    }
    let drives: Vec<Shared<W>> = drives
        .into_iter()
        .map(|named| (named.name, Rc::new(named.drive)))
        .collect();
    let mut first = labels::find(world, &drives, (None, Part::WHOLE)).await?;
    first.progress = Rc::clone(&progress);
    let (registry, part) = (first.drives.lane().registry.clone(), first.part());
    for host in hosts_of_others(world, &drives, part).await {
        let text = format!(
            "host {host} had it open last, and has not closed it: what is found here may change meanwhile"
        );
        first.say(Severity::Note, first.pool(), text);
    }
    let mut report = look_through(first, options).await;
    for index in 1..registry.lanes() {
        let lane = LaneSlot {
            index,
            registry: registry.clone(),
        };
        let part = Part {
            lane: index,
            ..part
        };
        match labels::find(world, &drives, (Some(lane), part)).await {
            Ok(mut subject) => {
                subject.progress = Rc::clone(&progress);
                report.add(index, look_through(subject, options).await);
            }
            Err(error) => report.say(Severity::Loss, format!("lane {index}"), error.context),
        }
    }
    Ok(report)
}

/// Other hosts that may have the pool open.
async fn hosts_of_others<W: World>(world: &W, drives: &[Shared<W>], part: Part) -> Vec<String> {
    let drives = drives.iter().map(|(_, drive)| &**drive);
    let beats = heartbeat::of_others(world, drives, part).await;
    let mut hosts: Vec<String> = beats.iter().map(|beat| beat.host.to_string()).collect();
    hosts.dedup();
    hosts
}

/// Looks through one lane.
async fn look_through<W: World>(subject: Subject<W>, options: Options) -> Report {
    let state = metadata::check(&subject).await;
    let held = logs::check(&subject).await;
    if let Some(state) = state {
        let owners = map::check(&subject, &state);
        look_through_zones(&subject, &held, &owners, options).await;
    }
    subject.into_report(options.deep)
}

/// As [`check_watched`], when nobody waits.
///
/// # Errors
/// See there.
pub async fn check<W: World>(
    world: &W,
    drives: Vec<NamedDrive<W>>,
    options: Options,
) -> Result<Report, PoolError> {
    check_watched(world, drives, options, Rc::default()).await
}

async fn look_through_zones<W: World>(
    subject: &Subject<W>,
    held: &held::LogContents,
    owners: &map::Owners,
    options: Options,
) {
    let beyond = subject.groups_beyond_repair();
    let mut zones = subject.drives.zones();
    zones.retain(|zone| !beyond.contains(&zone.group.index));
    let all = zones.iter().map(|zone| zone.shape.blocks).sum();
    subject.progress.all_blocks.set(all);
    for zone in zones {
        let sums = sums::check(subject, &zone, held, owners).await;
        if options.deep {
            let scope = data::Scope {
                subject,
                zone: &zone,
                sums: &sums,
                held,
                owners,
            };
            scope.check().await;
        } else {
            subject.progress.did(zone.shape.blocks);
        }
    }
}
