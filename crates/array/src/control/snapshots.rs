//! Snapshots and clones: volumes that share pages with the volume they come from.
//!
//! A snapshot is a volume that nobody writes, called `VOLUME@NAME`. Both are in the lane
//! of the volume that they were taken from, since they share its pages.

use super::new_names::{by_name, renamed};
use super::{ArrayError, ArrayErrorKind, ControlPlane, Deleted, Deletion, PlacedVolume};
use engine::pool::{SNAPSHOT_MARK, Taking};
use engine::{Lane, World};
use std::iter;
use std::sync::Arc;

impl PlacedVolume {
    /// Whether it is a snapshot: read-only for life.
    pub fn is_snapshot(&self) -> bool {
        self.info.read_only
    }

    /// `snapshot` or `volume`, for messages.
    pub fn kind(&self) -> &'static str {
        match self.is_snapshot() {
            true => "snapshot",
            false => "volume",
        }
    }

    /// Whether it was taken from `other`.
    pub fn is_of(&self, other: &PlacedVolume) -> bool {
        let origin = self.properties.origin.as_ref();
        origin.is_some_and(|origin| origin.uuid == other.info.uuid)
    }

    /// Whether a SANITIZE of it has not ended well: it is under way or has failed.
    pub(super) fn has_unended_erasure(&self) -> bool {
        scsi::has_unended_erasure(&self.properties.whole_memo())
    }

    /// That nothing of it may be half erased, before its data is taken elsewhere: the record of
    /// a SANITIZE does not go there with it.
    ///
    /// # Errors
    /// `Busy`, with what ends the SANITIZE.
    pub fn check_sound(&self) -> Result<(), ArrayError> {
        check_sound(&self.info.name, &self.properties.whole_memo())
    }
}

fn check_sound(name: &str, memo: &[u8]) -> Result<(), ArrayError> {
    if !scsi::has_unended_erasure(memo) {
        return Ok(());
    }
    let context = format!(
        "a SANITIZE of volume {name} is under way or has failed, so its data may be half \
         erased: wait until it ends. If it failed, export the volume with --sanitize and erase it \
         again, or remove it from its export and restore a snapshot with --discard"
    );
    Err(ArrayError::new(ArrayErrorKind::Busy, context))
}

/// As [`PlacedVolume::check_sound`], for all of these volumes, while they stand still: no
/// SANITIZE can begin then.
///
/// # Errors
/// `Busy`.
pub(super) fn check_all_sound<'a, W: World>(
    pool: &Lane<W>,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), ArrayError> {
    let mut present = names.filter_map(|name| pool.volume(name));
    present.try_for_each(|volume| check_sound(&volume.info().name, &volume.memo()))
}

impl<W: World> ControlPlane<W> {
    /// All snapshots, by name; of one volume, when it is named.
    ///
    /// # Errors
    /// No such volume, or a shard has stopped.
    pub async fn snapshots(&self, volume: Option<&str>) -> Result<Vec<PlacedVolume>, ArrayError> {
        let all = self.volumes().await?;
        let of = match volume {
            None => None,
            Some(name) => {
                let found = all.iter().find(|volume| volume.info.name == name);
                Some(found.cloned().ok_or_else(|| ArrayError::no_volume(name))?)
            }
        };
        let wanted = |volume: &PlacedVolume| {
            volume.is_snapshot() && of.as_ref().is_none_or(|of| volume.is_of(of))
        };
        Ok(all.into_iter().filter(wanted).collect())
    }

    /// The snapshot called `name`.
    ///
    /// # Errors
    /// There is none, or a shard has stopped.
    pub async fn snapshot(&self, name: &str) -> Result<PlacedVolume, ArrayError> {
        let found = self.volume(name).await.ok();
        let found = found.filter(PlacedVolume::is_snapshot);
        found.ok_or_else(|| no_snapshot(name))
    }

    /// Takes a snapshot of `volume`, called `volume@name`.
    ///
    /// # Errors
    /// No such volume, the name is taken, or what the pool says.
    pub async fn take_snapshot(
        self: &Arc<Self>,
        volume: String,
        name: &str,
    ) -> Result<PlacedVolume, ArrayError> {
        let name = format!("{volume}{SNAPSHOT_MARK}{name}");
        self.take(volume, name, true).await
    }

    /// Makes a volume that begins as what a volume or snapshot has.
    ///
    /// # Errors
    /// As [`ControlPlane::take_snapshot`].
    pub async fn clone_volume(
        self: &Arc<Self>,
        source: String,
        name: String,
    ) -> Result<PlacedVolume, ArrayError> {
        self.take(source, name, false).await
    }

    async fn take(
        self: &Arc<Self>,
        source: String,
        name: String,
        read_only: bool,
    ) -> Result<PlacedVolume, ArrayError> {
        self.change(move |array| async move {
            let there = array.volume(&source).await?;
            array.jobs.check_whole(&source)?;
            if read_only {
                array.jobs.check_snapshots(&source)?;
            }
            if read_only && there.is_snapshot() {
                let context = format!("{source} is a snapshot already: clone it");
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
            array.check_name_free(&name).await?;
            let runtime = Arc::clone(&array.runtime);
            let visit = move |_, pool: Lane<W>| async move {
                let (at_unix_s, mut sound) = (runtime.unix_s(), Ok(()));
                let is_sound = async {
                    sound = check_all_sound(&pool, iter::once(source.as_str()));
                    sound.is_ok()
                };
                let taking = Taking {
                    read_only,
                    at_unix_s,
                    attributes: &[],
                };
                let taken = pool.take_if(&source, &name, taking, is_sound).await;
                sound?;
                Ok(taken.map(|volume| (volume.info(), volume.properties()))?)
            };
            let (info, properties) = array.with_lane(&there.pool, there.lane, visit).await?;
            Ok(PlacedVolume {
                info,
                properties,
                ..there
            })
        })
        .await
    }

    /// That no volume of the array is called so.
    ///
    /// # Errors
    /// `Exists`, with where it is.
    pub(super) async fn check_name_free(&self, name: &str) -> Result<(), ArrayError> {
        self.check_name_free_for(name, None).await
    }

    /// As [`ControlPlane::check_name_free`], for a job that keeps the name for itself.
    pub(super) async fn check_name_free_for(
        &self,
        name: &str,
        job: Option<u64>,
    ) -> Result<(), ArrayError> {
        if self.runtime.planted("name looked for in its own lane only") {
            return Ok(());
        }
        self.jobs.check_free(name, job)?;
        let volumes = self.volumes().await?;
        if let Some(there) = volumes.iter().find(|known| known.info.name == name) {
            return Err(is_taken(there));
        }
        self.check_absent(name, true)?;
        self.turns.check_name(name)
    }

    /// That no pool that is not open may have a volume of this name, as far as that can be told:
    /// when it is open again there would be two. What the site file describes is no reason for
    /// one that has had the name before.
    fn check_absent(&self, name: &str, is_new: bool) -> Result<(), ArrayError> {
        let Some(closed) = self.closed_names() else {
            return Ok(());
        };
        let who = match self.withheld_with(name) {
            Some(target) => format!("target {target} shows"),
            None if is_new && self.of_site.contains(name) => "the site file describes".to_owned(),
            None => return Ok(()),
        };
        let context = format!(
            "{who} a volume {name}, which may be in a pool that is not open: {closed}; choose \
             another name"
        );
        Err(ArrayError::new(ArrayErrorKind::Exists, context))
    }

    /// That `volume` can be called `new`, and its snapshots after it, wherever there may be
    /// others of such names.
    pub(super) async fn check_names_free(
        &self,
        volume: &PlacedVolume,
        new: &str,
    ) -> Result<(), ArrayError> {
        self.jobs.check_free(new, None)?;
        let volumes = self.volumes().await?;
        let by_name = by_name(&volumes);
        for renamed in renamed(volume, new, &volumes) {
            if let Some(there) = renamed.taken_by(&by_name) {
                return Err(is_taken(there));
            }
            let name = &renamed.name;
            self.check_absent(name, *name != renamed.volume.info.name)?;
            self.turns.check_name(name)?;
        }
        Ok(())
    }

    /// Deletes the snapshot called `name`, into the trash if there is one. What was cloned from it
    /// stays as it is.
    ///
    /// # Errors
    /// There is none, it is behind a target, or what the pool says.
    pub async fn delete_snapshot(
        self: &Arc<Self>,
        name: String,
        how: Deletion,
    ) -> Result<Deleted, ArrayError> {
        self.snapshot(&name).await?;
        self.delete_volume(name, how).await
    }
}

fn is_taken(there: &PlacedVolume) -> ArrayError {
    let context = format!(
        "there is a {} {} already, in pool {}; choose another name",
        there.kind(),
        there.info.name,
        there.pool
    );
    ArrayError::new(ArrayErrorKind::Exists, context)
}

fn no_snapshot(name: &str) -> ArrayError {
    let context = format!("there is no snapshot {name}");
    ArrayError::new(ArrayErrorKind::NotFound, context)
}
