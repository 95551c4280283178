//! Snapshots, clones, and the restore of a volume from a snapshot.
//!
//! Invariants:
//! - What is taken of several volumes is what they had at one instant: no write to any
//!   of them ends while another of them is taken.
//! - All that is taken together is there after a crash, or nothing of it.

use super::attributes::{check_attributes_of, check_snapshot_name};
use super::create::check_name;
use super::{Lane, PoolError, PoolErrorKind};
use crate::meta::properties::Property;
use crate::meta::{Promise, Record, VolumeId};
use crate::range_lock::Guard;
use crate::space::VolumeCore;
use crate::volume::{Provisioning, Volume, VolumeSpec};
use crate::world::World;
use base::size::human_pair;
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, ready};
use std::rc::Rc;

/// All bytes that a volume can have.
const WHOLE: (u64, u64) = (0, u64::MAX);

impl<W: World> Lane<W> {
    /// Makes a thin volume that has what `source` has at one instant, and shares its
    /// pages until either changes them. A snapshot is read-only; a clone is not. When it
    /// was taken is noted as `at_unix_s`, in seconds since 1970.
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, `Exists`, or `Full` when the pool takes no more volumes.
    /// Nothing is left behind.
    pub async fn clone_volume(
        &self,
        source: &str,
        name: &str,
        read_only: bool,
        at_unix_s: u64,
    ) -> Result<Volume<W>, PoolError> {
        self.clone_volume_if(source, name, read_only, at_unix_s, ready(true))
            .await
    }

    /// As [`Lane::clone_volume`], if `may`, which is awaited while the source stands still.
    ///
    /// # Errors
    /// As for [`Lane::clone_volume`]; also `Busy` when `may` gave false.
    pub async fn clone_volume_if(
        &self,
        source: &str,
        name: &str,
        read_only: bool,
        at_unix_s: u64,
        may: impl Future<Output = bool>,
    ) -> Result<Volume<W>, PoolError> {
        let taking = Taking {
            read_only,
            at_unix_s,
            attributes: &[],
        };
        self.take_if(source, name, taking, may).await
    }

    /// As [`Lane::clone_volume_if`], with attributes that it has from the first moment on.
    ///
    /// # Errors
    /// As there.
    pub async fn take_if(
        &self,
        source: &str,
        name: &str,
        taking: Taking<'_>,
        may: impl Future<Output = bool>,
    ) -> Result<Volume<W>, PoolError> {
        let pairs = [(source, name)];
        let mut made = self.take_together(&pairs, taking, may).await?;
        made.pop().ok_or_else(|| went_away(name))
    }

    /// How often, since the opening, something was refused because the metadata had no
    /// room for maps that share less.
    pub fn map_refusals(&self) -> u64 {
        self.inner.metadata_room().map_refusals()
    }

    /// Takes snapshots of several volumes, `(volume, name)` each, at one instant. When all
    /// of them stand still, `others` is awaited: a group may be in several pools or lanes,
    /// and nothing is taken when it gives false.
    ///
    /// # Errors
    /// As for [`Lane::clone_volume`]; also `Invalid` for too many of them, `Busy` when
    /// `others` gave false.
    pub async fn snapshot_together(
        &self,
        snapshots: &[(&str, &str)],
        at_unix_s: u64,
        others: impl Future<Output = bool>,
    ) -> Result<Vec<Volume<W>>, PoolError> {
        let taking = Taking::snapshot(at_unix_s);
        self.take_together(snapshots, taking, others).await
    }

    /// As [`Lane::snapshot_together`], with attributes that all of them have from the first moment
    /// on.
    ///
    /// # Errors
    /// As there.
    pub async fn take_together(
        &self,
        pairs: &[(&str, &str)],
        taking: Taking<'_>,
        others: impl Future<Output = bool>,
    ) -> Result<Vec<Volume<W>>, PoolError> {
        let (inner, world) = (&self.inner, self.inner.world());
        inner.check()?;
        let _administration = inner.administration().await;
        let sources = self.sources(pairs, taking)?;
        let first = self.next_ids(pairs.len() as u32)?;
        let mut records = Vec::new();
        for (id, (core, (_, name))) in (first.0..).zip(sources.iter().zip(pairs)) {
            records.push(self.taken(VolumeId(id), core, name, taking)?);
        }
        let (room, journal) = (inner.metadata_room(), inner.journal());
        room.check_properties_fit(&records.concat())?;
        let tables = |core: &Rc<VolumeCore>| core.map.borrow().tables().count() as u64;
        let _reserved = room.reserve_tables(sources.iter().map(tables).sum())?;
        let mut still = self.stand_still(&sources).await;
        if !others.await {
            let context = "not all of it can be taken at this instant".to_owned();
            return Err(PoolError::new(PoolErrorKind::Busy, context));
        }
        if world.planted("group taken one after another") {
            drop(std::mem::take(&mut still));
            for one in records.drain(1..) {
                journal.commit(one).await?;
            }
        }
        let records = records.into_iter().flatten().collect();
        journal.commit(records).await?;
        drop(still);
        world.reached("volume cloned");
        if pairs.len() > 1 {
            world.reached("several volumes taken at one instant");
        }
        let made = pairs
            .iter()
            .map(|(_, name)| self.volume(name).ok_or_else(|| went_away(name)));
        made.collect()
    }

    /// Gives a volume the content of a snapshot, at one instant. What it had until then
    /// becomes a snapshot called `keep`, of `at_unix_s`, or is gone. Its size stays; what is behind the
    /// snapshot's end reads as zeroes.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` when `snapshot` is no snapshot or is larger, when `name` is a
    /// snapshot or thick; `Exists`, `Full` for `keep`. Nothing has changed then.
    pub async fn restore(
        &self,
        name: &str,
        snapshot: &str,
        keep: Option<&str>,
        at_unix_s: u64,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let (core, from) = (self.still(name)?, self.settled(snapshot)?);
        check_restore(&core, &from)?;
        let mut records = Vec::new();
        // Reads, too: one that is under way would read pages that are given away.
        let _alone = match inner.world().planted("restore does not wait for writes") {
            true => None,
            false => Some(core.live.ranges.exclusive(WHOLE.0, WHOLE.1).await),
        };
        if let Some(keep) = keep {
            check_snapshot_name(keep)?;
            self.check_new(keep)?;
            let taking = Taking::snapshot(at_unix_s);
            records.extend(self.taken(self.next_ids(1)?, &core, keep, taking)?);
            inner.metadata_room().check_properties_fit(&records)?;
        }
        let tables = from.map.borrow().tables().count() as u64;
        let _reserved = inner.metadata_room().reserve_tables(tables)?;
        let id = core.id;
        if inner.world().planted("restored before it is durable") {
            let theirs = inner.spoil(|state| from.map.borrow().share(&mut state.refs));
            let before = core.map.replace(theirs);
            inner.spoil(|state| state.give_up(before));
            self.release_all().await;
        }
        let more = self.more_promised(&core, &from);
        let from = from.id;
        records.push(Record::Restore { id, from });
        self.commit_promising(name, more, records).await?;
        inner.world().reached("volume restored");
        self.release_all().await;
        Ok(())
    }

    /// Pages that a thick volume has to be promised beyond what it is, to become what a
    /// snapshot is. What it gives up may not be free then.
    fn more_promised(&self, core: &VolumeCore, from: &VolumeCore) -> Promise {
        if !core.is_promised.get() {
            return Promise::default();
        }
        let mapped = |core: &VolumeCore| core.map.borrow().mapped();
        let more = mapped(core).saturating_sub(mapped(from));
        if more > 0 {
            self.inner.world().reached("thick volume restored");
        }
        // Some of that is promised already: a little too much, never too little.
        Promise {
            pages: more,
            ..core.promise_beside(mapped(from), self.inner.page_bytes())
        }
    }

    /// The volumes that are to be taken.
    fn sources(
        &self,
        pairs: &[(&str, &str)],
        taking: Taking<'_>,
    ) -> Result<Vec<Rc<VolumeCore>>, PoolError> {
        let each = RECORDS_EACH + taking.attributes.len();
        let records = pairs.len() * each;
        if pairs.is_empty() || records > self.inner.journal().records_at_once() {
            let most = self.inner.journal().records_at_once() / each;
            let context = format!(
                "{} volumes at one instant: pool '{}' takes from 1 to {most}",
                pairs.len(),
                self.inner.identity().name
            );
            return Err(PoolError::new(PoolErrorKind::Invalid, context));
        }
        let mut sources = Vec::new();
        for (at, (source, name)) in pairs.iter().enumerate() {
            match taking.read_only {
                true => check_snapshot_name(name)?,
                false => check_name("volume", name)?,
            }
            self.check_new(name)?;
            check_attributes_of(name, BTreeSet::new(), taking.attributes)?;
            if pairs[..at].iter().any(|(_, other)| other == name) {
                let context = format!("'{name}' is asked for twice");
                return Err(PoolError::new(PoolErrorKind::Invalid, context));
            }
            sources.push(self.settled(source)?);
        }
        Ok(sources)
    }

    /// Has writes to volumes that are under way end, and new ones wait.
    async fn stand_still(&self, sources: &[Rc<VolumeCore>]) -> Vec<Guard> {
        let mut still = Vec::new();
        if self
            .inner
            .world()
            .planted("snapshot while writes are under way")
        {
            return still;
        }
        // Each once: a write that waits for us would make us wait for it the second time.
        let each: BTreeMap<VolumeId, _> = sources.iter().map(|core| (core.id, core)).collect();
        for core in each.values() {
            still.push(core.live.ranges.shared(WHOLE.0, WHOLE.1).await);
        }
        still
    }

    /// What makes a volume that has what `core` has.
    fn taken(
        &self,
        id: VolumeId,
        core: &VolumeCore,
        name: &str,
        taking: Taking<'_>,
    ) -> Result<Vec<Record>, PoolError> {
        let spec = VolumeSpec {
            name: name.to_owned(),
            size_bytes: core.size_bytes.get(),
            provisioning: Provisioning::Thin,
        };
        let create = self.creation(id, &spec, taking.read_only);
        let origin = self.origin(id, core, taking.at_unix_s)?;
        let from = core.id;
        let share = Record::Share { id, from };
        let property = |(key, value): &(String, String)| {
            let (key, value) = (key.clone(), value.clone());
            Record::Property(id, Property::Attribute { key, value })
        };
        let properties = taking.attributes.iter().map(property);
        let taken = [create, origin].into_iter().chain(properties);
        Ok(taken.chain([share, Record::Ready { id }]).collect())
    }
}

/// How volumes are taken.
#[derive(Clone, Copy, Debug)]
pub struct Taking<'a> {
    /// As snapshots, which never change; or as clones.
    pub read_only: bool,
    /// When, in seconds since 1970, as far as the caller knows.
    pub at_unix_s: u64,
    /// Attributes of what is taken: keys and values, as for
    /// [`AttributesChange`](super::AttributesChange).
    pub attributes: &'a [(String, String)],
}

impl Taking<'static> {
    /// As snapshots without attributes.
    fn snapshot(at_unix_s: u64) -> Self {
        Taking {
            read_only: true,
            at_unix_s,
            attributes: &[],
        }
    }
}

/// Records of one volume that is taken, beside those of its attributes.
const RECORDS_EACH: usize = 4;

fn check_restore(core: &VolumeCore, from: &VolumeCore) -> Result<(), PoolError> {
    let why = if core.read_only {
        format!(
            "'{}' is a snapshot and does not change: clone it",
            core.name
        )
    } else if !from.read_only {
        format!("'{}' is no snapshot", from.name)
    } else if from.size_bytes.get() > core.size_bytes.get() {
        let (needed, present) = human_pair(from.size_bytes.get(), core.size_bytes.get());
        format!(
            "'{}' has {needed} and '{}' only {present}: grow it first",
            from.name, core.name
        )
    } else {
        return Ok(());
    };
    Err(PoolError::new(PoolErrorKind::Invalid, why))
}

fn went_away(name: &str) -> PoolError {
    let context = format!("volume '{name}' went away while it was made");
    PoolError::new(PoolErrorKind::NotFound, context)
}
