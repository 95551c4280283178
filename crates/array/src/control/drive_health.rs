//! Has drives say how healthy they are, now and then, and tells of those that warn.
//!
//! Invariants:
//! - Drives are asked one after the other, beside the data path. A drive that does not answer in the
//!   reader's time delays the asking of others by no more than that.
//! - No drive is taken out of use for what it says: somebody else decides that
//!   ([`ControlPlane::health_of`]).

use super::{ControlPlane, KnownDrive};
use crate::drive_health::{DriveHealth, HealthNews, Reading};
use crate::shard::ShardState;
use engine::World;
use engine::drives::EventKind;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often to look whether a drive is to be asked.
const LOOK: Duration = Duration::from_secs(5);

/// Asks drives of a machine for their health.
pub trait HealthReader: Send + Sync {
    /// What the drive at `path` says of itself. Ends in bounded time.
    ///
    /// # Errors
    /// Why it says nothing, for people.
    fn read(&self, path: &Path) -> BoxFuture<'static, Result<Reading, String>>;
}

/// What is known of all drives that were asked, by identity; each with the place where it was.
#[derive(Debug, Default)]
pub(super) struct Healths(Mutex<BTreeMap<String, (PathBuf, DriveHealth)>>);

impl Healths {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, (PathBuf, DriveHealth)>> {
        // Each drive is taken in whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: World> ControlPlane<W> {
    /// What the drive with this identity has said of its health; none before it was asked.
    ///
    /// What it warns of are its [`DriveHealth::warnings`]: none for a drive that is well, or of which
    /// nothing is known.
    pub fn health_of(&self, uuid: &str) -> Option<DriveHealth> {
        let all = self.healths.all();
        all.get(uuid).map(|(_, health)| health.clone())
    }

    /// Has `reader` ask all drives in use and all spares from now on.
    pub fn keep_drive_health(self: &Arc<Self>, reader: Arc<dyn HealthReader>) {
        let (array, runtime) = (Arc::downgrade(self), Arc::clone(&self.runtime));
        let keep = async move {
            while let Some(array) = array.upgrade() {
                array.ask_drives(&*reader).await;
                drop(array);
                runtime.sleep(LOOK).await;
            }
        };
        self.runtime.spawn(keep.boxed());
    }

    /// Asks the drives that are to be asked now.
    async fn ask_drives(&self, reader: &dyn HealthReader) {
        let mut drives = self.known_drives();
        drives.retain(|drive| drive.failure.is_none() && !self.is_closed(&drive.pool));
        let is_known = |uuid: &String| drives.iter().any(|drive| drive.uuid == *uuid);
        self.healths.all().retain(|uuid, _| is_known(uuid));
        for drive in drives {
            let Some(path) = drive.path.clone() else {
                continue;
            };
            if self.is_due(&drive.uuid, &path) {
                let answer = reader.read(&path).await;
                for news in self.take_answer(&drive.uuid, path, answer) {
                    self.tell_of(&drive, news);
                }
            }
        }
    }

    /// Whether to ask a drive now: one that is elsewhere than before at once.
    fn is_due(&self, uuid: &str, path: &Path) -> bool {
        let all = self.healths.all();
        let now = self.runtime.now();
        all.get(uuid)
            .is_none_or(|(there, health)| there != path || health.is_due(now))
    }

    fn take_answer(
        &self,
        uuid: &str,
        path: PathBuf,
        answer: Result<Reading, String>,
    ) -> Vec<HealthNews> {
        let at = (self.runtime.now(), self.unix_s());
        let mut all = self.healths.all();
        let (there, health) = all.entry(uuid.to_owned()).or_default();
        *there = path;
        health.take(answer, at)
    }

    /// Has an event of the drive's pool say it.
    fn tell_of(&self, drive: &KnownDrive, news: HealthNews) {
        let name = &drive.name;
        let (kind, text) = match news {
            HealthNews::Warns(warning) => (
                EventKind::DriveWarning,
                format!("drive '{name}' warns: {}", warning.text),
            ),
            HealthNews::WarnsNoMore(warning) => (
                EventKind::DriveWarningOver,
                format!("drive '{name}' no longer warns: {}", warning.text),
            ),
        };
        let Some(home) = self
            .home_map()
            .get(&drive.pool)
            .and_then(|on| on.first().copied())
        else {
            return;
        };
        let pool = drive.pool.clone();
        let visit = move |state: Rc<ShardState<W>>| async move {
            if let Some(pool) = state.pool(&pool) {
                pool.tell(kind, text);
            }
        };
        // A shard that has stopped has nothing to tell any more.
        let _ = self.shards[home].post(visit);
    }
}
