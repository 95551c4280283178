//! Writes that found no room in a pool, and wait until the array has freed some.
//!
//! Invariants:
//! - Who asks is answered by a look at the trash that begins afterwards, or gives up.
//! - Nobody waits here with anything locked: making room may need what a write holds.

use crate::wake::{Wake, in_time};
use base::Uuid;
use engine::World;
use futures_channel::oneshot;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest to wait: initiators are more patient than that.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who found no room.
#[derive(Debug)]
pub struct Request {
    volume: Uuid,
    answer: oneshot::Sender<bool>,
}

impl Request {
    /// The volume that was written to.
    pub fn volume(&self) -> Uuid {
        self.volume
    }

    /// Says whether trying again is worth it.
    pub fn answer(self, try_again: bool) {
        // Whoever asked may have given up.
        let _ = self.answer.send(try_again);
    }
}

/// Where writers and whoever makes room meet.
#[derive(Debug, Default)]
pub struct SpaceReclaim {
    requests: Mutex<Vec<Request>>,
    asked: Wake,
}

impl SpaceReclaim {
    /// Asks for room for this volume. Whether there is some now.
    pub async fn ask<W: World>(&self, world: &W, volume: Uuid) -> bool {
        let (answer, answered) = oneshot::channel();
        self.all().push(Request { volume, answer });
        self.asked.notify();
        matches!(in_time(world, PATIENCE, answered).await, Some(Ok(true)))
    }

    /// Waits until somebody asks.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Those who have asked.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.all())
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Request>> {
        // A vector is whole after each step.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
