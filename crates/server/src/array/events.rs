//! Collects the events of all pools and puts them on record.
//!
//! Invariants:
//! - Each event is put on record once, soon after it happened; one that may still become
//!   another, when it can't any more.
//! - Nobody waits for the record but a server that stops.

use super::history::History;
use super::{Array, ArrayError, Loss, Losses, PoolEvent, ROUTINE, SentWarnings};
use crate::record::EVENTS_FILE;
use crate::shard::ShardState;
use engine::World;
use engine::pool::{Event, EventKind, Lane};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tracing::Level;
use world_real::RealWorld;

/// How often to look for new events.
const PAUSE: Duration = Duration::from_millis(200);

/// An event of damage that was put right is told anew while more of it is found, so many
/// seconds at most after the last; then it stays as it is.
const SETTLED: Duration = Duration::from_secs(11);

/// A lane as it was opened: its shard, and the number of the opening there.
type Opening = (usize, u64);

/// Which events of a lane are on record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RecordedEvents {
    /// All up to this one.
    to: u64,
    /// And these.
    beyond: BTreeSet<u64>,
}

impl RecordedEvents {
    /// Takes those of `events`, all after [`RecordedEvents::to`], that are new and will stay as
    /// they are; all that are new when there is no later.
    fn take(&mut self, events: Vec<(Duration, Event)>, is_last: bool) -> Vec<(Duration, Event)> {
        let newest = events.last().map_or(self.to, |(_, event)| event.sequence);
        let mut waits = None;
        let mut taken = Vec::new();
        for (age, event) in events {
            let may_go_on = event.kind == EventKind::BlockMended && age < SETTLED && !is_last;
            if may_go_on {
                waits = waits.or(Some(event.sequence));
            } else if self.beyond.insert(event.sequence) {
                taken.push((age, event));
            }
        }
        self.to = waits.map_or(newest, |first| first - 1);
        self.beyond.retain(|sequence| *sequence > self.to);
        taken
    }
}

/// What puts events on record.
#[derive(Debug)]
pub(super) struct Recorder {
    /// What happened before this start.
    earlier: Vec<PoolEvent>,
    history: Arc<Mutex<History>>,
    losses: Mutex<Losses>,
    /// Of the lanes that are open. The numbers of a lane's events begin anew with each opening.
    taken: tokio::sync::Mutex<BTreeMap<Opening, RecordedEvents>>,
}

impl Recorder {
    pub(super) fn new(history: History) -> Self {
        let earlier = history.kept();
        let mut losses = Losses::default();
        losses.take(&earlier);
        Recorder {
            earlier,
            losses: Mutex::new(losses),
            history: Arc::new(Mutex::new(history)),
            taken: tokio::sync::Mutex::default(),
        }
    }

    fn losses(&self) -> MutexGuard<'_, Losses> {
        // Each event is taken in whole.
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, events: Vec<PoolEvent>) {
        if events.is_empty() {
            return;
        }
        events.iter().for_each(log);
        let history = Arc::clone(&self.history);
        let writing = tokio::task::spawn_blocking(move || {
            // Whoever panicked with this lock held has left it to be written anew.
            let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
            history.add(events)
        });
        let why = match writing.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!("{EVENTS_FILE}: can't write it, events come with the next: {why}");
    }
}

/// Says an event in the server's log.
fn log(event: &PoolEvent) {
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
        "drive_failed" | "drive_missing" | "drive_suspect" | "space" | "schedule" | "move"
        | "trouble" => Level::WARN,
        _ => Level::INFO,
    }
}

impl Array {
    /// Events of all pools, oldest first: those on record of before this start, then all
    /// since.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn events(&self) -> Result<Vec<PoolEvent>, ArrayError> {
        let mut since = Vec::new();
        for shard in self.shards() {
            let visit = |state: std::rc::Rc<ShardState>| async move { events_on(&state) };
            since.extend(shard.call(visit).await?);
        }
        Ok(self.with_earlier(since))
    }

    /// Those on record of before this start, and then these by their time.
    pub(super) fn with_earlier(&self, mut since: Vec<PoolEvent>) -> Vec<PoolEvent> {
        since.sort_by_key(|event| event.at_unix_us);
        [self.recorder.earlier.clone(), since].concat()
    }

    /// What a pool has lost that no scrub since has found to be whole again.
    pub(crate) fn loss_of(&self, pool_uuid: &str) -> Option<Loss> {
        self.recorder.losses().of(pool_uuid)
    }

    /// Puts new events on record: all of them when there is no later. So is what they say of
    /// drives.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(crate) async fn record_events(&self, is_last: bool) -> Result<(), ArrayError> {
        self.record(is_last, move |_| is_last).await
    }

    /// Puts new events on record, and all of a pool that is about to be no more.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(crate) async fn record_last_events(&self, pool: &str) -> Result<(), ArrayError> {
        let going = pool.to_owned();
        self.record(true, move |name| name == going).await
    }

    /// Puts new events on record, all of them of pools of which these are the last. Shards have
    /// longer to answer if `there_is_no_later`.
    async fn record(
        &self,
        there_is_no_later: bool,
        is_last: impl Fn(&str) -> bool + Clone + Send + 'static,
    ) -> Result<(), ArrayError> {
        let mut taken = self.recorder.taken.lock().await;
        let visit = |index| {
            let (mut before, is_last) = (taken.clone(), is_last.clone());
            move |state: std::rc::Rc<ShardState>| async move {
                let (mut after, mut new) = (Vec::new(), Vec::new());
                for (opening, pool) in state.openings() {
                    let lane = (index, opening);
                    let mut of_lane = before.remove(&lane).unwrap_or_default();
                    let events = events_of(&state, &pool, of_lane.to);
                    new.extend(told(&pool, of_lane.take(events, is_last(pool.name()))));
                    after.push((lane, of_lane));
                }
                (after, new)
            }
        };
        let answers = self.ask_all(there_is_no_later, visit).await?;
        let mut new = Vec::new();
        for (index, answer) in answers {
            // What a silent shard has to tell comes on record once it answers.
            let Some((after, of_shard)) = answer else {
                continue;
            };
            taken.retain(|(shard, _), _| *shard != index);
            taken.extend(after);
            new.extend(of_shard);
        }
        new.sort_by_key(|event: &PoolEvent| event.at_unix_us);
        self.recorder.losses().take(&new);
        let is_about_drives = self.roster.is_due(&new);
        self.recorder.write(new).await;
        if is_about_drives {
            self.note_drives_and_warn().await;
        }
        Ok(())
    }

    /// Puts events on record in the background from now on.
    pub(crate) fn keep_events(self: &Arc<Self>) {
        let array = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut told = SentWarnings::default();
            while let Some(array) = array.upgrade() {
                let warned = array.warn_initiators(&mut told).await;
                if array
                    .record_events(false)
                    .await
                    .and(warned.map(drop))
                    .is_err()
                {
                    return;
                }
                drop(array);
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
}

/// All events of the pools on a shard.
pub(super) fn events_on(state: &ShardState) -> Vec<PoolEvent> {
    let pools = state.pools();
    let all = pools.iter().map(|pool| (pool, events_of(state, pool, 0)));
    let told = all.flat_map(|(pool, events)| told(pool, events));
    told.collect()
}

/// The events of a pool, or of a lane of one, after `sequence`, and how long ago they
/// happened.
fn events_of(state: &ShardState, pool: &Lane<RealWorld>, sequence: u64) -> Vec<(Duration, Event)> {
    let now = state.world().now();
    let events = pool.events(sequence).into_iter();
    events.map(|event| (now.since(event.at), event)).collect()
}

fn told(pool: &Lane<RealWorld>, events: Vec<(Duration, Event)>) -> Vec<PoolEvent> {
    if events.is_empty() {
        return Vec::new();
    }
    let (info, lane) = (pool.info(), pool.lane());
    let now = SystemTime::now();
    let events = events.into_iter().map(|(age, event)| {
        let at = now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let since = at.duration_since(SystemTime::UNIX_EPOCH);
        PoolEvent {
            pool: info.name.clone(),
            pool_uuid: info.uuid.to_string(),
            lane,
            sequence: event.sequence,
            at_unix_us: since.map_or(0, |since| since.as_micros() as u64),
            kind: word(event.kind).to_owned(),
            text: match info.lanes {
                1 => event.text,
                _ => format!("lane {lane}: {}", event.text),
            },
            lost_blocks: event.lost_blocks,
            before_start: false,
        }
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

    fn event(sequence: u64, kind: EventKind, age_s: u64) -> (Duration, Event) {
        let event = Event {
            sequence,
            at: base::Time(0),
            kind,
            text: String::new(),
            lost_blocks: None,
        };
        (Duration::from_secs(age_s), event)
    }

    fn numbers(taken: Vec<(Duration, Event)>) -> Vec<u64> {
        taken.iter().map(|(_, event)| event.sequence).collect()
    }

    const ALL: [EventKind; 19] = [
        EventKind::DriveFailed,
        EventKind::DriveSuspect,
        EventKind::DriveHealthy,
        EventKind::DriveMissing,
        EventKind::DriveBack,
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
        let reference = include_str!("../../../../docs/reference/events.md");
        let guide = include_str!("../../../../docs/guide/monitoring.md");
        let api = include_str!("../../../api/src/events.rs");
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
    fn each_event_is_taken_once_and_one_that_may_go_on_waits() {
        use EventKind::{BlockMended, DriveFailed};
        let mut taken = RecordedEvents::default();
        let seen = |age| {
            vec![
                event(1, DriveFailed, age),
                event(2, BlockMended, age),
                event(3, DriveFailed, age),
            ]
        };
        assert_eq!(numbers(taken.take(seen(1), false)), [1, 3]);
        assert_eq!(taken.to, 1, "the second is asked for again");
        assert!(numbers(taken.take(seen(2)[1..].to_vec(), false)).is_empty());
        // More was found: another event took its place.
        let later = vec![event(3, DriveFailed, 3), event(4, BlockMended, 0)];
        assert!(numbers(taken.take(later, false)).is_empty());
        assert_eq!(taken.to, 3);
        assert_eq!(
            numbers(taken.take(vec![event(4, BlockMended, 11)], false)),
            [4]
        );
        assert_eq!(taken.take(Vec::new(), false), []);
        assert_eq!(
            taken,
            RecordedEvents {
                to: 4,
                beyond: BTreeSet::new()
            }
        );
        assert_eq!(
            numbers(taken.take(vec![event(5, BlockMended, 0)], true)),
            [5]
        );
    }
}
