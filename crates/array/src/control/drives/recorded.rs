//! New drives with their places on record.
//!
//! Invariants:
//! - A drive is on record before it is part of a pool.
//! - When new drives are not taken, the record says what it said before.

use super::{AddedDrive, NewDrive};
use crate::control::{ArrayError, ControlPlane};
use crate::pool::NewDrives;
use engine::World;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// New drives of a pool, whose record the array keeps.
pub(in crate::control) struct Recorded<W: World, N> {
    array: Arc<ControlPlane<W>>,
    placed: N,
    /// Where they are.
    places: Vec<AddedDrive>,
    /// What the record said before of what was at their places.
    before: Mutex<Vec<AddedDrive>>,
}

impl<W: World, N> Recorded<W, N> {
    /// Drives for a pool, which are at their places already or will be made there.
    pub(super) fn new(
        array: Arc<ControlPlane<W>>,
        pool: &str,
        new: &[NewDrive],
        placed: N,
    ) -> Self {
        let data = array.places().data();
        let place = |new: &NewDrive| AddedDrive {
            pool: pool.to_owned(),
            name: new.name.clone(),
            path: data.join(&new.path),
            is_device: new.is_device,
        };
        Recorded {
            places: new.iter().map(place).collect(),
            array,
            placed,
            before: Mutex::default(),
        }
    }

    // Whoever panicked with this lock held has left it whole.
    fn before(&self) -> MutexGuard<'_, Vec<AddedDrive>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_at(&self, path: &PathBuf) -> bool {
        self.places.iter().any(|ours| ours.path == *path)
    }

    /// The record with new drives; those that the settings name need none.
    fn with_them(&self) -> Vec<AddedDrive> {
        let places = self.array.places();
        let mut after = places.added().clone();
        after.retain(|known| !self.is_at(&known.path));
        let is_settled =
            |ours: &&AddedDrive| places.is_of_settings(&ours.path, &ours.pool, &ours.name);
        let new = self.places.iter().filter(|ours| !is_settled(ours));
        after.extend(new.cloned());
        after
    }
}

impl<W: World, N: NewDrives<W> + Send> NewDrives<W> for Recorded<W, N> {
    type Drive = N::Drive;

    fn drives(&self) -> &[N::Drive] {
        self.placed.drives()
    }

    async fn make(&self) -> Result<(), ArrayError> {
        self.placed.make().await?;
        *self.before() = self.array.places().added().clone();
        let runtime = &self.array.runtime;
        if runtime.planted("new drives are part of a pool before they are on record") {
            return Ok(());
        }
        let kept = self.array.places().keep(self.with_them()).await;
        if kept.is_err() {
            self.unmake().await;
        }
        kept
    }

    async fn unmake(&self) {
        let before = std::mem::take(&mut *self.before());
        // Others may have been added to other pools meanwhile.
        let mut now = self.array.places().added().clone();
        now.retain(|known| !self.is_at(&known.path));
        now.extend(before.into_iter().filter(|known| self.is_at(&known.path)));
        if let Err(error) = self.array.places().keep(now).await {
            tracing::error!("drives that are not taken stay on record: {error}");
        }
        self.placed.unmake().await;
    }
}
