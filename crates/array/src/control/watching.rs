//! Captures: what is counted of all volumes for a while, beside the statistics that are always there.
//!
//! There is one at a time, and it has an id that no other has. It ends by itself: after its time
//! nothing is counted, and once it was read, or for [`KEPT`] was not, the next one takes its place.
//! Who began it reads it, and takes it away to free its memory.

use super::{ArrayError, ArrayErrorKind, ControlPlane, PlacedVolume};
use crate::shard::Watches;
use crate::shard::watch::Watch;
use base::Time;
use engine::World;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time that a capture may be given.
pub const WATCH_MAX: Duration = Duration::from_secs(3600);

/// How long a capture is kept for its reader once it is over.
pub const KEPT: Duration = Duration::from_secs(60);

/// What the counters of all volumes may take.
const BYTES_MAX: u64 = 128 << 20;

/// A capture, under way or over.
#[derive(Clone)]
pub struct Watching {
    /// What tells it from those before and after it.
    pub id: String,
    /// When it began, in seconds since 1970.
    pub since_unix_s: u64,
    /// How long it counts.
    pub duration: Duration,
    began: Time,
    /// What it has counted so far, by volume.
    pub watches: Watches,
    /// It was read when it was over.
    was_read: Arc<AtomicBool>,
}

/// Where the capture is that there is.
#[derive(Default)]
pub(super) struct Place {
    there: Mutex<Option<Watching>>,
    /// Captures that were begun.
    begun: AtomicU64,
}

impl Watching {
    /// It was read as a whole, and the next one may take its place.
    pub fn mark_read(&self) {
        self.was_read.store(true, Relaxed);
    }
}

impl<W: World> ControlPlane<W> {
    /// Begins to count for so long; snapshots are not counted.
    ///
    /// # Errors
    /// Another is under way, the time is too long or the volumes are too many, or a shard has
    /// stopped.
    pub async fn watch(&self, duration: Duration) -> Result<Watching, ArrayError> {
        let volumes = self.volumes().await?.into_iter();
        let volumes: Vec<PlacedVolume> = volumes.filter(|one| !one.is_snapshot()).collect();
        check(&volumes, duration)?;
        let began = self.runtime.now();
        let watch = |one: &PlacedVolume| {
            let watch = Watch::new(one.info.size_bytes, began, duration);
            (one.info.uuid, Arc::new(watch))
        };
        let turn = self.watching.begun.fetch_add(1, Relaxed) + 1;
        let watching = Watching {
            id: format!("{}-{turn}", self.unix_s()),
            since_unix_s: self.unix_s(),
            duration,
            began,
            watches: Arc::new(volumes.iter().map(watch).collect()),
            was_read: Arc::default(),
        };
        self.begin_watching(watching.clone())?;
        self.tell_shards().await?;
        Ok(watching)
    }

    /// Takes the capture of this id away, whether it is over or not; whether it was there.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn stop_watching(&self, id: &str) -> Result<bool, ArrayError> {
        let taken = self.watching_place().take_if(|there| there.id == id);
        match taken {
            Some(_) => self.tell_shards().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// The capture that was begun last, unless it was taken away.
    pub fn watching(&self) -> Option<Watching> {
        self.watching_place().clone()
    }

    // It is set in one step.
    fn watching_place(&self) -> MutexGuard<'_, Option<Watching>> {
        let there = self.watching.there.lock();
        there.unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts it in the place of one that is over.
    fn begin_watching(&self, watching: Watching) -> Result<(), ArrayError> {
        let mut place = self.watching_place();
        if let Some(left) = place.as_ref().and_then(|other| self.left_of(other)) {
            let left = left.as_secs() + 1;
            let context = format!(
                "another capture is under way; it ends within {left} s. `ashlar capture --stop` ends \
                 it now"
            );
            return Err(ArrayError::new(ArrayErrorKind::Busy, context));
        }
        if place.as_ref().is_some_and(|other| self.is_awaited(other)) {
            let context = format!(
                "another capture has just ended and was not read yet; it is kept for {} s. `ashlar \
                 capture --stop` forgets it",
                KEPT.as_secs()
            );
            return Err(ArrayError::new(ArrayErrorKind::Busy, context));
        }
        *place = Some(watching);
        Ok(())
    }

    /// How long a capture goes on counting; nothing once it is over.
    pub fn left_of(&self, watching: &Watching) -> Option<Duration> {
        let end = watching.began + watching.duration;
        let now = self.runtime.now();
        (now < end).then(|| end.since(now))
    }

    /// Whether a capture that is over may still be read by who began it.
    fn is_awaited(&self, over: &Watching) -> bool {
        let end = over.began + over.duration;
        !over.was_read.load(Relaxed) && self.runtime.now() < end + KEPT
    }

    /// Tells them of the capture that there is now.
    async fn tell_shards(&self) -> Result<(), ArrayError> {
        for shard in &self.shards {
            let watches = self.watching().map(|one| one.watches);
            let told = shard.call(move |state| async move { state.watch(watches) });
            told.await?;
        }
        Ok(())
    }
}

/// Refuses a time or volumes whose counters would take too much.
fn check(volumes: &[PlacedVolume], duration: Duration) -> Result<(), ArrayError> {
    let sizes = volumes.iter().map(|one| one.info.size_bytes);
    let bytes: u64 = sizes.map(|size| Watch::bytes(size, duration)).sum();
    if !duration.is_zero() && duration <= WATCH_MAX && bytes <= BYTES_MAX {
        return Ok(());
    }
    let (seconds, most) = (duration.as_secs(), WATCH_MAX.as_secs());
    let context = format!(
        "a capture of {seconds} s of {} volumes, whose counters take {bytes} bytes: it may last 1 to \
         {most} s, and they may take {BYTES_MAX} bytes; choose another time",
        volumes.len()
    );
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}
