//! Events of lanes in the words of the array: their kinds, how much they matter, and when they were.

use super::{PoolEvent, ROUTINE};
use crate::control::Runtime;
use crate::shard::ShardState;
use base::Time;
use engine::World;
use engine::pool::{Event, EventKind, Lane};
use std::time::Duration;
use tracing::Level;

/// The time of day at one moment of the worlds' clock, from which follows that at any other.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct ClockReading {
    unix_us: u64,
    at: Time,
}

impl ClockReading {
    /// The time of day now.
    pub(in crate::control) fn now(runtime: &dyn Runtime) -> Self {
        ClockReading {
            unix_us: runtime.unix_us(),
            at: runtime.now(),
        }
    }

    /// The time of day at `at`, in microseconds since 1970.
    fn unix_us_at(self, at: Time) -> u64 {
        let us = |duration: Duration| duration.as_micros() as u64;
        let before = self.unix_us.saturating_sub(us(self.at.since(at)));
        before.saturating_add(us(at.since(self.at)))
    }
}

/// Says an event in the log.
pub(super) fn log(event: &PoolEvent) {
    let (pool, text) = (&event.pool, &event.text);
    match urgency(&event.kind) {
        Level::ERROR => tracing::error!("pool {pool}: {text}"),
        Level::WARN => tracing::warn!("pool {pool}: {text}"),
        _ => tracing::info!("pool {pool}: {text}"),
    }
}

/// How much an event of this kind matters: data or service is lost, somebody has to act, or
/// nobody has to.
fn urgency(kind: &str) -> Level {
    match kind {
        "pool_stopped" | "block_lost" => Level::ERROR,
        "drive_failed" | "drive_missing" | "drive_suspect" | "drive_warning" | "space"
        | "schedule" | "move" | "trouble" => Level::WARN,
        _ => Level::INFO,
    }
}

/// All events of the pools on a shard.
pub(in crate::control) fn events_on<W: World>(
    state: &ShardState<W>,
    clock: ClockReading,
) -> Vec<PoolEvent> {
    let pools = state.pools();
    let all = pools.iter().map(|pool| (pool, pool.events(0)));
    let told = all.flat_map(|(pool, events)| told(pool, events, clock));
    told.collect()
}

/// Events of a pool, or of a lane of one, as the array tells of them.
pub(super) fn told<W: World>(
    pool: &Lane<W>,
    events: Vec<Event>,
    clock: ClockReading,
) -> Vec<PoolEvent> {
    if events.is_empty() {
        return Vec::new();
    }
    let (info, lane) = (pool.info(), pool.lane());
    let events = events.into_iter().map(|event| PoolEvent {
        pool: info.name.clone(),
        pool_uuid: info.uuid.to_string(),
        lane,
        sequence: event.sequence,
        at_unix_us: clock.unix_us_at(event.at),
        kind: word(event.kind).to_owned(),
        text: match info.lanes {
            1 => event.text,
            _ => format!("lane {lane}: {}", event.text),
        },
        lost_blocks: event.lost_blocks,
        before_start: false,
    });
    events.collect()
}

fn word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::DriveFailed => "drive_failed",
        EventKind::DriveSuspect => "drive_suspect",
        EventKind::DriveHealthy => "drive_healthy",
        EventKind::DriveMissing => "drive_missing",
        EventKind::DriveBack => "drive_back",
        EventKind::DriveWarning => "drive_warning",
        EventKind::DriveWarningOver => "drive_warning_over",
        EventKind::SpareTaken => "spare_taken",
        EventKind::Rebuild => "rebuild",
        EventKind::BlockMended => ROUTINE,
        EventKind::BlockLost => "block_lost",
        EventKind::CopyMoved => "copy_moved",
        EventKind::Scrub => "scrub",
        EventKind::Group => "group",
        EventKind::Schedule => "schedule",
        EventKind::Move => "move",
        EventKind::Trash => "trash",
        EventKind::Space => "space",
        EventKind::SpaceFreed => "space_freed",
        EventKind::Trouble => "trouble",
        EventKind::PoolStopped => "pool_stopped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [EventKind; 21] = [
        EventKind::DriveFailed,
        EventKind::DriveSuspect,
        EventKind::DriveHealthy,
        EventKind::DriveMissing,
        EventKind::DriveBack,
        EventKind::DriveWarning,
        EventKind::DriveWarningOver,
        EventKind::SpareTaken,
        EventKind::Rebuild,
        EventKind::BlockMended,
        EventKind::BlockLost,
        EventKind::CopyMoved,
        EventKind::Scrub,
        EventKind::Group,
        EventKind::Schedule,
        EventKind::Move,
        EventKind::Trash,
        EventKind::Space,
        EventKind::SpaceFreed,
        EventKind::Trouble,
        EventKind::PoolStopped,
    ];

    #[test]
    fn the_documents_name_every_kind_of_event_and_its_level() {
        let reference = include_str!("../../../../../docs/reference/events.md");
        let guide = include_str!("../../../../../docs/guide/monitoring.md");
        let api = include_str!("../../../../api/src/events.rs");
        let rows: Vec<_> = reference
            .lines()
            .filter_map(|line| line.strip_prefix("| [`")?.split_once("`]"))
            .collect();
        assert_eq!(rows.len(), ALL.len(), "{rows:?}");
        for kind in ALL.map(word) {
            let row = rows.iter().find(|(name, _)| *name == kind);
            let level = format!(" | {} | ", urgency(kind));
            let is_told = row.is_some_and(|(_, rest)| rest.contains(&level));
            assert!(is_told, "events.md has no row of {kind}{level}");
            let quoted = format!("`{kind}`");
            assert!(guide.contains(&quoted), "monitoring.md lacks {quoted}");
            assert!(api.contains(&quoted), "the API's Event lacks {quoted}");
        }
    }

    #[test]
    fn the_time_of_day_of_an_event_follows_from_one_reading_of_the_clock() {
        let second = |at: u64| Time(at * 1_000_000_000);
        let clock = ClockReading {
            unix_us: 5_000_000,
            at: second(10),
        };
        let times = [8, 10, 11, 0].map(|at| clock.unix_us_at(second(at)));
        assert_eq!(times, [3_000_000, 5_000_000, 6_000_000, 0]);
    }
}
