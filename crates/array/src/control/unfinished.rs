//! Changes of several volumes: after a crash they are whole, or have not begun.
//!
//! Each lane commits what it changes by itself. So a note of what takes the whole change back goes on
//! record before the first lane changes, and off it after the last one. A start takes back what it
//! finds a note of.
//!
//! Invariants:
//! - No change is acknowledged before its note is off the record for certain.
//! - No change begins while the record may have a note that is not true any more.
//! - Only what the noted change has made is taken back, and nothing that came after it.

use super::{ArrayError, ControlPlane, PlacedVolume};
use base::Uuid;
use engine::World;
use engine::pool::AttributesChange;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A step that takes a part of a change back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeBack {
    /// A snapshot is deleted.
    Snapshot {
        /// Its whole name.
        name: String,
        /// The volume that it was taken from.
        of: Uuid,
        /// When it was taken, in seconds since 1970.
        at_unix_s: u64,
    },
    /// Attributes of a volume are what they were.
    Attributes {
        /// The volume.
        volume: Uuid,
        /// Those that changed.
        changes: Vec<AttributeChange>,
    },
}

/// How an attribute changed; an empty value stands for no attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeChange {
    /// Under which the volume has it.
    pub key: String,
    /// Its value before the change.
    pub from: String,
    /// Its value that the change gives it.
    pub to: String,
}

/// The notes of changes that have not ended.
#[derive(Debug, Default)]
pub(super) struct Unfinished(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// Of changes that are being made, by number.
    under_way: BTreeMap<u64, Vec<TakeBack>>,
    /// Of changes that have ended and can't be taken back yet: a pool is not open, or has stopped.
    left: Vec<TakeBack>,
    next: u64,
    /// The record may have others.
    is_stale: bool,
}

impl Unfinished {
    // Whoever panicked with this lock held has left whole notes behind.
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All steps, in the order of their changes.
    pub(super) fn steps(&self) -> Vec<TakeBack> {
        let notes = self.notes();
        let under_way = notes.under_way.values().flatten();
        notes.left.iter().chain(under_way).cloned().collect()
    }

    fn begin(&self, steps: Vec<TakeBack>) -> u64 {
        let mut notes = self.notes();
        notes.next += 1;
        let number = notes.next;
        notes.under_way.insert(number, steps);
        number
    }

    /// A change has ended; steps that can't be taken yet are `left`.
    fn end(&self, number: u64, left: Vec<TakeBack>) {
        let mut notes = self.notes();
        notes.under_way.remove(&number);
        notes.left.extend(left);
    }

    /// What a start has found on record.
    pub(super) fn begin_with(&self, steps: Vec<TakeBack>) {
        self.notes().left = steps;
    }
}

impl<W: World> ControlPlane<W> {
    /// Makes a change of several volumes: all of it or nothing, also over a crash. `steps` take it
    /// back. For one whose turn it is to change the array.
    ///
    /// # Errors
    /// What `change` says: nothing has changed then. Or the record can't be written; when that is so
    /// at the end, the change is made, and the message says that a restart may take it back.
    pub(super) async fn whole_or_not<T>(
        &self,
        steps: Vec<TakeBack>,
        change: impl Future<Output = Result<T, ArrayError>>,
    ) -> Result<T, ArrayError> {
        if self
            .runtime
            .planted("change of several lanes without a note")
        {
            return change.await;
        }
        let number = self.unfinished.begin(steps.clone());
        if let Err(error) = self.keep_notes().await {
            self.unfinished.end(number, Vec::new());
            return Err(error);
        }
        let outcome = change.await;
        let left = match &outcome {
            Ok(_) => Vec::new(),
            Err(_) => self.take_back(steps).await,
        };
        self.unfinished.end(number, left);
        if self.runtime.planted("note of a change stays on record") {
            return outcome;
        }
        let kept = self.keep_notes().await;
        match (outcome, kept) {
            (Ok(_), Err(error)) => Err(ArrayError {
                context: format!(
                    "the change is made, but a restart may take it back: {}",
                    error.context
                ),
                ..error
            }),
            (outcome, _) => outcome,
        }
    }

    async fn keep_notes(&self) -> Result<(), ArrayError> {
        self.unfinished.notes().is_stale = true;
        self.keep(self.configuration()).await?;
        self.unfinished.notes().is_stale = false;
        Ok(())
    }

    /// That the record has no note which is not true any more. For one whose turn it is.
    ///
    /// # Errors
    /// It may have one, and can't be written.
    pub(super) async fn check_notes(&self) -> Result<(), ArrayError> {
        let is_stale = self.unfinished.notes().is_stale;
        match is_stale && !self.runtime.planted("change begins over a stale note") {
            true => self.keep_notes().await,
            false => Ok(()),
        }
    }

    /// Takes back what a crash has left of changes, as far as pools are open.
    ///
    /// # Errors
    /// The record can't be written.
    pub async fn take_back_unfinished(self: &Arc<Self>) -> Result<(), ArrayError> {
        let is_nothing_left = self.unfinished.notes().left.is_empty();
        if is_nothing_left {
            return Ok(());
        }
        self.change(|array| async move {
            let left = array.unfinished.notes().left.clone();
            if array.runtime.planted("start takes nothing back") {
                array.unfinished.begin_with(Vec::new());
                return array.keep_notes().await;
            }
            let left = array.take_back(left).await;
            array.unfinished.begin_with(left);
            array.keep_notes().await
        })
        .await
    }

    /// Takes these steps, the last one first. Gives those that can't be taken yet.
    async fn take_back(&self, steps: Vec<TakeBack>) -> Vec<TakeBack> {
        let volumes = match self.volumes().await {
            Ok(volumes) => volumes,
            Err(error) => {
                tracing::error!("a change that failed can't be taken back now: {error}");
                return steps;
            }
        };
        let mut left = Vec::new();
        for step in steps.into_iter().rev() {
            let there = volumes.iter().find(|volume| step.is_of(volume));
            let is_done = match there {
                // It may be in a pool that is not open.
                None => self.closed_names().is_none(),
                Some(there) => match self.take_step(&step, there.clone()).await {
                    Ok(()) => true,
                    Err(error) => {
                        let name = &there.info.name;
                        tracing::error!("{name}: a change can't be taken back now: {error}");
                        false
                    }
                },
            };
            if !is_done {
                left.insert(0, step);
            }
        }
        left
    }

    async fn take_step(&self, step: &TakeBack, there: PlacedVolume) -> Result<(), ArrayError> {
        let name = there.info.name.clone();
        match step {
            TakeBack::Snapshot { .. } => {
                tracing::info!("deleting {name}: not all snapshots of its set could be taken");
                self.delete_now(there).await
            }
            TakeBack::Attributes { changes, .. } => {
                let is_made = |change: &&AttributeChange| {
                    let now = there.properties.attributes.get(&change.key);
                    now.map_or("", String::as_str) == change.to
                };
                let made = changes.iter().filter(is_made);
                let before = made.map(|change| (change.key.clone(), change.from.clone()));
                let before: Vec<_> = before.collect();
                if before.is_empty() {
                    return Ok(());
                }
                let change = AttributesChange {
                    name: None,
                    attributes: before,
                };
                let said = self.change_attributes_of(there, change).await?;
                self.learn_schedules(&said);
                Ok(())
            }
        }
    }
}

impl TakeBack {
    /// Of the attributes of `was` that become `attributes`.
    pub(super) fn attributes(was: &PlacedVolume, attributes: &[(String, String)]) -> TakeBack {
        let change = |(key, to): &(String, String)| AttributeChange {
            key: key.clone(),
            from: was
                .properties
                .attributes
                .get(key)
                .cloned()
                .unwrap_or_default(),
            to: to.clone(),
        };
        TakeBack::Attributes {
            volume: was.info.uuid,
            changes: attributes.iter().map(change).collect(),
        }
    }

    /// Whether it has to do with this volume or snapshot.
    fn is_of(&self, there: &PlacedVolume) -> bool {
        match self {
            TakeBack::Attributes { volume, .. } => there.info.uuid == *volume,
            TakeBack::Snapshot {
                name,
                of,
                at_unix_s,
            } => {
                let origin = there.properties.origin.as_ref();
                let is_taken_then =
                    origin.is_some_and(|from| (from.uuid, from.at_unix_s) == (*of, *at_unix_s));
                there.is_snapshot() && there.info.name == *name && is_taken_then
            }
        }
    }
}
