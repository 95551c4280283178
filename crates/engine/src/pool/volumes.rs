//! Volumes from creation to deletion.

use super::create::check_name;
use super::{Pool, PoolError, PoolErrorKind};
use crate::meta::{Record, VolumeCore, VolumeId};
use crate::store::Write;
use crate::volume::{Provisioning, Volume, VolumeInfo, VolumeSpec};
use crate::world::World;
use base::{BLOCK_BYTES, PageIndex, PhysPage, PoolOffset, SECTOR_BYTES};
use std::rc::Rc;
use std::time::Duration;

/// Pages zeroed at once when a thick volume is made.
const ZEROED_AT_ONCE: u64 = 64;

impl<W: World> Pool<W> {
    /// Its volumes, by name.
    pub fn volumes(&self) -> Vec<VolumeInfo> {
        let state = self.inner.state.borrow();
        let seen = |core: &&Rc<VolumeCore>| core.ready.get() && !core.words.is_trashed();
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
        let state = self.inner.state.borrow();
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

    fn check_size(&self, name: &str, size_bytes: u64) -> Result<u64, PoolError> {
        let pages = size_bytes.div_ceil(self.inner.page_bytes());
        let max = u64::from(u32::MAX - 1);
        if size_bytes == 0 || !size_bytes.is_multiple_of(SECTOR_BYTES as u64) || pages > max {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "size of volume '{name}', {size_bytes} bytes: allowed are multiples of {SECTOR_BYTES} up to {} bytes",
                    max * self.inner.page_bytes()
                ),
            ));
        }
        Ok(pages)
    }

    /// Creates a volume; a thick one has all its pages, zeroed, when this ends.
    ///
    /// # Errors
    /// `Invalid`, `Exists`, or `Full` when a thick volume's pages or another volume
    /// don't fit. Nothing is left behind.
    pub async fn create_volume(&self, spec: VolumeSpec) -> Result<Volume<W>, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        check_name("volume", &spec.name)?;
        let pages = self.check_size(&spec.name, spec.size_bytes)?;
        let _administration = inner.administration.lock().await;
        self.check_new(&spec.name)?;
        let id = self.next_ids(1)?;
        let thick = spec.provisioning == Provisioning::Thick;
        let taken = if thick {
            self.take_zeroed(&spec.name, pages).await?
        } else {
            Vec::new()
        };
        let create = self.creation(id, &spec, false);
        let mut records = vec![create];
        records.extend(map_runs(id, (0..).map(PageIndex).zip(taken)));
        records.push(Record::Ready { id });
        inner.commit(records).await?;
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
            let state = inner.state.borrow();
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
            uuid: self.inner.world.prng(&stream).uuid(),
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
        let _administration = inner.administration.lock().await;
        let core = self.existing(name)?;
        let present = core.size_bytes.get();
        if size_bytes < present {
            return Err(PoolError::new(
                PoolErrorKind::Invalid,
                format!(
                    "volume '{name}' has {present} bytes; shrinking it to {size_bytes} would lose data and is not done"
                ),
            ));
        }
        let id = core.id;
        let mut records = Vec::new();
        if core.provisioning == Provisioning::Thick {
            // A resize that was cut short by a crash may have left pages mapped.
            let new = |page: &PageIndex| core.map.borrow().get(*page).is_none();
            let pages: Vec<PageIndex> = (0..pages).map(PageIndex).filter(new).collect();
            let taken = self.take_zeroed(name, pages.len() as u64).await?;
            records.extend(map_runs(id, pages.into_iter().zip(taken)));
        }
        if size_bytes > present {
            records.push(Record::Resize { id, size_bytes });
        }
        inner.commit(records).await
    }

    /// Deletes a volume: new I/O fails, I/O in flight ends first.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn delete_volume(&self, name: &str) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration.lock().await;
        let core = self.existing(name)?;
        core.live.delete().await;
        let early = "deleted pages free before the deletion is durable";
        if inner.world.planted(early) {
            inner.state.borrow_mut().give_up(core.map.take());
            self.release_all().await;
            inner.world.sleep(Duration::from_millis(1)).await;
            return inner.commit(vec![Record::Delete { id: core.id }]).await;
        }
        inner.commit(vec![Record::Delete { id: core.id }]).await?;
        // Only now may others write there: a crash before this point keeps the
        // volume, with its data.
        self.release_all().await;
        Ok(())
    }

    /// Gives the pages of deleted volumes back, some at a time so that others can work.
    pub(super) async fn release_all(&self) {
        loop {
            let (more, freed) = {
                let mut state = self.inner.state.borrow_mut();
                (state.give_up_some(), state.take_freed())
            };
            freed
                .into_iter()
                .for_each(|page| self.inner.store.release(page));
            if !more {
                return;
            }
            self.inner.world.sleep(Duration::from_micros(1)).await;
        }
    }

    /// Takes pages that read as zeroes; gives them back on an error.
    async fn take_zeroed(&self, name: &str, count: u64) -> Result<Vec<PhysPage>, PoolError> {
        let inner = &self.inner;
        let mut taken = Vec::new();
        let outcome = self.take_and_zero(name, count, &mut taken).await;
        if outcome.is_err() {
            taken.iter().for_each(|page| inner.store.release(*page));
        }
        outcome.map(|()| taken)
    }

    async fn take_and_zero(
        &self,
        name: &str,
        count: u64,
        taken: &mut Vec<PhysPage>,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        let page_bytes = inner.page_bytes();
        let full = |free: u64| {
            PoolError::new(
                PoolErrorKind::Full,
                format!(
                    "thick volume '{name}' needs {} bytes, and pool '{}' has {} left: delete volumes or make it thin",
                    count * page_bytes,
                    inner.identity().name,
                    free * page_bytes
                ),
            )
        };
        let alone = inner.drives.lane().commons.lanes() == 1;
        if alone && inner.free_pages() + inner.moving.get() < count {
            return Err(full(inner.free_pages()));
        }
        while (taken.len() as u64) < count {
            let left = count - taken.len() as u64;
            let run = inner.take_pages_or_wait(left.min(ZEROED_AT_ONCE)).await?;
            let (first, pages) = run.ok_or_else(|| full(taken.len() as u64))?;
            taken.extend((0..pages).map(|page| PhysPage(first.0 + page)));
            for page in first.0..first.0 + pages {
                let at = PoolOffset(page * page_bytes);
                let blocks = page_bytes / BLOCK_BYTES as u64;
                if inner.store.needs_zeroing(at, blocks).await {
                    inner.store.write(vec![Write::Zero(at, blocks)]).await?;
                }
            }
        }
        Ok(())
    }
}

/// Records that map pages to the physical pages taken for them.
fn map_runs(id: VolumeId, pages: impl Iterator<Item = (PageIndex, PhysPage)>) -> Vec<Record> {
    let mut runs: Vec<Record> = Vec::new();
    for (page, phys) in pages {
        match runs.last_mut() {
            Some(Record::Map {
                page: first,
                phys: at,
                count,
                ..
            }) if first.0 + u64::from(*count) == page.0 && at.0 + u64::from(*count) == phys.0 => {
                *count += 1;
            }
            _ => runs.push(Record::Map {
                id,
                page,
                phys,
                count: 1,
            }),
        }
    }
    runs
}
