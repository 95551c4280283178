//! New drives with their places on record, and the files that are made for them.
//!
//! Invariants:
//! - A drive is on record before it is part of a pool.
//! - When new drives are not taken, the record says what it said before, and no file stays that was
//!   made for them.

use super::placed::Placed;
use super::{AddedDrive, NewDrive};
use crate::bays::DriveBays;
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use crate::pool::NewDrives;
use engine::World;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// New drives of a pool, whose record the array keeps.
pub(in crate::control) struct Recorded<W: World> {
    array: Arc<ControlPlane<W>>,
    bays: Arc<dyn DriveBays<W>>,
    drives: Vec<Arc<Placed<W>>>,
    /// Where they are.
    places: Vec<AddedDrive>,
    undone: Mutex<Undone>,
}

/// What there is to do when the drives are not taken.
#[derive(Default)]
struct Undone {
    /// The files that were made.
    made: Vec<PathBuf>,
    /// What the record said before of what was at their places.
    before: Vec<AddedDrive>,
}

impl<W: World> Recorded<W> {
    /// Drives for a pool, which are at their places already or will be made there.
    pub(super) fn new(
        (array, bays): (Arc<ControlPlane<W>>, Arc<dyn DriveBays<W>>),
        pool: &str,
        new: &[NewDrive],
        drives: Vec<Arc<Placed<W>>>,
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
            bays,
            drives,
            undone: Mutex::default(),
        }
    }

    // Whoever panicked with this lock held has left it whole.
    fn undone(&self) -> MutexGuard<'_, Undone> {
        self.undone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the files of drives where nothing is.
    async fn make_files(&self) -> Result<(), ArrayError> {
        for drive in &self.drives {
            let Some(bytes) = drive.planned_bytes else {
                continue;
            };
            // Somebody may have made it meanwhile: it is judged as what is found there.
            if self.bays.is_taken(&drive.path).await {
                continue;
            }
            let making = self.bays.make_files(vec![(drive.path.clone(), bytes)]);
            let (made, outcome) = making.await;
            let kind = match made {
                Some(_) => ArrayErrorKind::Invalid,
                None => ArrayErrorKind::Internal,
            };
            self.undone().made.extend(made.into_iter().flatten());
            outcome.map_err(|why| ArrayError::new(kind, why).of_drive(&drive.name))?;
        }
        Ok(())
    }

    /// Removes files that were just made, and that nobody else has.
    async fn remove_files(&self) {
        let made = std::mem::take(&mut self.undone().made);
        if self.bays.planted("files of drives that are not taken stay") {
            return;
        }
        for path in made {
            self.bays.reached("file of a refused drive removed");
            if let Err(error) = self.bays.remove_file(&path).await {
                tracing::warn!("{}: can't remove it: {error}", path.display());
            }
        }
    }

    fn is_at(&self, path: &PathBuf) -> bool {
        self.places.iter().any(|ours| ours.path == *path)
    }

    /// The record with new drives; those that the settings name need none. They go first: a drive is
    /// where the record names it first, and an older place of its name may hold somebody's data by now.
    fn with_them(&self) -> Vec<AddedDrive> {
        let places = self.array.places();
        let is_settled =
            |ours: &&AddedDrive| places.is_of_settings(&ours.path, &ours.pool, &ours.name);
        let new = self.places.iter().filter(|ours| !is_settled(ours));
        let mut after: Vec<AddedDrive> = new.cloned().collect();
        let added = places.added();
        let others = added.iter().filter(|known| !self.is_at(&known.path));
        after.extend(others.cloned());
        after
    }
}

impl<W: World> NewDrives<W> for Recorded<W> {
    type Drive = Arc<Placed<W>>;

    fn drives(&self) -> &[Arc<Placed<W>>] {
        &self.drives
    }

    async fn make(&self) -> Result<(), ArrayError> {
        if let Err(error) = self.make_files().await {
            self.remove_files().await;
            return Err(error);
        }
        self.undone().before = self.array.places().added().clone();
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
        let before = std::mem::take(&mut self.undone().before);
        // Others may have been added to other pools meanwhile.
        let mut now = self.array.places().added().clone();
        now.retain(|known| !self.is_at(&known.path));
        now.extend(before.into_iter().filter(|known| self.is_at(&known.path)));
        if let Err(error) = self.array.places().keep(now).await {
            tracing::error!("drives that are not taken stay on record: {error}");
        }
        self.remove_files().await;
    }
}
