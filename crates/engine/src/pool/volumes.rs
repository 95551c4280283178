//! Volumes from creation to deletion.

use super::create::check_name;
use super::{Lane, PoolError, PoolErrorKind};
use crate::meta::{Promise, Record, VolumeId};
use crate::space::VolumeCore;
use crate::volume::{Provisioning, Volume, VolumeInfo, VolumeSpec};
use crate::world::World;
use base::SECTOR_BYTES;
use base::size::{human, human_pair};
use std::rc::Rc;
use std::time::Duration;

impl<W: World> Lane<W> {
    /// Its volumes, by name.
    pub fn volumes(&self) -> Vec<VolumeInfo> {
        let state = self.inner.state();
        let seen = |core: &&Rc<VolumeCore>| {
            core.ready.get() && !core.properties.is_trashed() && !core.is_out_of_sight()
        };
        let ready = state.volumes.values().filter(seen);
        let mut volumes: Vec<VolumeInfo> = ready.map(|core| self.handle(core).info()).collect();
        volumes.sort_by(|a, b| a.name.cmp(&b.name));
        volumes
    }

    /// The volume called `name`.
    pub fn volume(&self, name: &str) -> Option<Volume<W>> {
        self.find(name).map(|core| self.handle(&core))
    }

    pub(super) fn handle(&self, core: &Rc<VolumeCore>) -> Volume<W> {
        Volume::new(Rc::clone(&self.inner), Rc::clone(core))
    }

    pub(super) fn find(&self, name: &str) -> Option<Rc<VolumeCore>> {
        let state = self.inner.state();
        let mut ready = state.volumes.values().filter(|core| core.ready.get());
        ready
            .find(|core| core.name == name && core.is_seen())
            .map(Rc::clone)
    }

    pub(super) fn existing(&self, name: &str) -> Result<Rc<VolumeCore>, PoolError> {
        self.find(name).ok_or_else(|| {
            let context = format!(
                "there is no volume '{name}' in pool '{}'",
                self.inner.identity().name
            );
            PoolError::new(PoolErrorKind::NotFound, context)
        })
    }

    pub(super) fn check_size(&self, name: &str, size_bytes: u64) -> Result<u64, PoolError> {
        let pages = size_bytes.div_ceil(self.inner.page_bytes());
        let max = u64::from(u32::MAX - 1);
        if size_bytes == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES as u64) || pages > max {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "size of volume '{name}', {size_bytes} bytes: allowed are multiples of {SECTOR_BYTES} bytes up to {}",
                    human(max * self.inner.page_bytes())
                ),
            ));
        }
        Ok(pages)
    }

    /// Creates a volume; to a thick one all its pages are promised when this ends.
    ///
    /// # Errors
    /// `Invalid`, `Exists`, or `Full` when a thick volume's pages or another volume
    /// don't fit. Nothing is left behind.
    pub async fn create_volume(&self, spec: VolumeSpec) -> Result<Volume<W>, PoolError> {
        self.create_volume_as(spec, false).await
    }

    /// As [`Lane::create_volume`], of a volume that may detect zeroes from the first
    /// write on.
    ///
    /// # Errors
    /// See there.
    pub async fn create_volume_as(
        &self,
        spec: VolumeSpec,
        detects_zeroes: bool,
    ) -> Result<Volume<W>, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        check_name("volume", &spec.name)?;
        let pages = self.check_size(&spec.name, spec.size_bytes)?;
        let _administration = inner.administration().await;
        self.check_new(&spec.name)?;
        let id = self.next_ids(1)?;
        let mut records = vec![self.creation(id, &spec, false)];
        if detects_zeroes {
            records.push(Record::Behave {
                id,
                provisioning: spec.provisioning,
                detects_zeroes,
            });
        }
        records.push(Record::Ready { id });
        let promised = match spec.provisioning {
            Provisioning::Thin => Promise::default(),
            Provisioning::Thick => Promise::of(pages, pages),
        };
        self.commit_promising(&spec.name, promised, records).await?;
        self.volume(&spec.name).ok_or_else(|| {
            let context = format!("volume '{}' went away while it was created", spec.name);
            PoolError::new(PoolErrorKind::NotFound, context)
        })
    }

    /// That there is no volume of that name.
    pub(super) fn check_new(&self, name: &str) -> Result<(), PoolError> {
        match self.find(name) {
            None => Ok(()),
            Some(_) => {
                let pool = &self.inner.identity().name;
                let context = format!("volume '{name}' is in pool '{pool}' already");
                Err(PoolError::new(PoolErrorKind::Exists, context))
            }
        }
    }

    /// The first of the ids of `count` more volumes, if the pool holds so many.
    pub(super) fn next_ids(&self, count: u32) -> Result<VolumeId, PoolError> {
        let inner = &self.inner;
        let (there, id) = {
            let state = inner.state();
            (state.volumes.len(), VolumeId(state.next_id))
        };
        let most = inner.identity().volumes_max as usize;
        if there + count as usize > most || id.0.checked_add(count).is_none() {
            let context = format!(
                "pool '{}' holds {there} volumes and was made for {most}",
                inner.identity().name
            );
            return Err(PoolError::new(PoolErrorKind::Full, context));
        }
        Ok(id)
    }

    pub(super) fn creation(&self, id: VolumeId, spec: &VolumeSpec, read_only: bool) -> Record {
        let lane = self.inner.identity().lane_uuid();
        let stream = format!("volume {} of {lane}", id.0);
        Record::Create {
            id,
            uuid: self.inner.world().prng(&stream).uuid(),
            name: spec.name.clone(),
            size_bytes: spec.size_bytes,
            provisioning: spec.provisioning,
            read_only,
        }
    }

    /// Grows a volume. The same size changes nothing.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a smaller size; `Full` when a thick volume's new
    /// pages don't fit.
    pub async fn resize_volume(&self, name: &str, size_bytes: u64) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let pages = self.check_size(name, size_bytes)?;
        let _administration = inner.administration().await;
        let core = self.still(name)?;
        let present = core.size_bytes.get();
        if size_bytes < present {
            let (present, size) = human_pair(present, size_bytes);
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "volume '{name}' has {present}; shrinking it to {size} would lose data and is not done"
                ),
            ));
        }
        if size_bytes == present {
            return Ok(());
        }
        let id = core.id;
        let more = match core.provisioning.get() {
            Provisioning::Thin => 0,
            // What it has beyond its end, of an earlier version, counts then.
            Provisioning::Thick => pages.saturating_sub(self.inner.pledges().pages_of(&core)),
        };
        let resize = vec![Record::Resize { id, size_bytes }];
        let promise = Promise::of(more, more);
        self.commit_promising(name, promise, resize).await
    }

    /// Commits records of which one promises pages to a volume.
    pub(super) async fn commit_promising(
        &self,
        name: &str,
        promise: Promise,
        records: Vec<Record>,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        if promise.pages > 0 && !inner.pledges().pledge(promise).await? {
            return Err(inner.pledges().no_room_for(name, promise.pages));
        }
        let committed = inner.journal().commit(records).await;
        inner.pledges().unpledge();
        committed
    }

    /// Deletes a volume: new I/O fails, I/O in flight ends first.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn delete_volume(&self, name: &str) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.still(name)?;
        self.let_go_of(&core).await
    }

    /// Deletes a volume; the caller holds the administration's lock.
    ///
    /// # Errors
    /// When the pool has stopped.
    pub(super) async fn let_go_of(&self, core: &VolumeCore) -> Result<(), PoolError> {
        let inner = &self.inner;
        core.live.delete().await;
        let early = "deleted pages free before the deletion is durable";
        if inner.world().planted(early) {
            inner.spoil(|state| state.give_up(core.map.take()));
            self.release_all().await;
            inner.world().sleep(Duration::from_millis(1)).await;
            return inner
                .journal()
                .commit(vec![Record::Delete { id: core.id }])
                .await;
        }
        inner
            .journal()
            .commit(vec![Record::Delete { id: core.id }])
            .await?;
        // Only now may others write there: a crash before this point keeps the
        // volume, with its data.
        self.release_all().await;
        Ok(())
    }

    /// Gives the pages of deleted volumes back, some at a time so that others can work.
    pub(super) async fn release_all(&self) {
        loop {
            let more = self.inner.journal().release_some();
            if !more {
                return;
            }
            self.inner.world().sleep(Duration::from_micros(1)).await;
        }
    }
}
