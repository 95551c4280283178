//! Moves of volumes from a pool to another while hosts use them.
//!
//! The volume keeps its identity. Its copy in the other pool is *incoming* until all is
//! copied; then the volume is noted as *leaving*, nobody writes it for a moment, the copy
//! becomes *arrived*, in one record, and the volume goes on there. After that the
//! old pool lets go of it, and the new one of the note.
//!
//! Invariants, of what crashes may leave:
//! - Incoming: the other pool has the volume; this is a copy that may be gone on with.
//! - Leaving, and arrived in the other pool: that has the volume.
//! - Arrived, and in the other pool neither leaving nor gone: the move was called off there
//!   after nobody knew whether it had arrived, and that pool has the volume.
//! - Leaving or arrived without the other pool: nobody can tell, and it is *withheld* until
//!   the other pool is there or somebody says that it won't be.

use super::create::check_name;
use super::{Lane, PoolError, PoolErrorKind};
use crate::meta::{Promise, Property, Record, Stage, Transit, VolumeId};
use crate::space::VolumeCore;
use crate::volume::{Mirror, Provisioning, Volume, VolumeInfo, VolumeIo, VolumeProperties};
use crate::world::World;
use base::Uuid;
use std::rc::Rc;
use std::time::Duration;

/// All bytes that a volume can have.
const WHOLE: (u64, u64) = (0, u64::MAX);

/// A bug that can be planted.
const EARLY: &str = "source deleted before the destination's record";

/// A pool, for the other one of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPool {
    /// Identity for life of that pool.
    pub uuid: Uuid,
    /// What it is called.
    pub name: String,
}

impl OtherPool {
    fn at(&self, stage: Stage) -> Property {
        Property::Transit(Some(Transit {
            stage,
            pool: self.uuid,
            pool_name: self.name.clone(),
        }))
    }
}

/// What the other pool, which is there, has of a volume that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum There {
    /// The same, on its way as well.
    OnItsWay(Stage),
    /// The volume, which is not on its way any more.
    Settled,
    /// No volume of this identity.
    Nothing,
}

/// What becomes of a volume that a crash left on its way. `EndDeparture` of one pool comes
/// before `EndArrival` of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// It stays in its pool: [`Lane::call_off_departure`].
    CallOffDeparture,
    /// It has left: [`Lane::end_departure`], then [`Lane::end_arrival`] there, if it is on
    /// its way there still.
    EndDeparture,
    /// It has arrived: [`Lane::end_arrival`].
    EndArrival,
    /// It is a copy that is nobody's: [`Lane::call_off_arrival`].
    CallOffArrival,
    /// It is a copy that may be gone on with, or dropped by [`Lane::call_off_arrival`].
    Copy,
    /// The other pool's is to be looked at.
    Nothing,
}

impl Settling {
    /// Of a volume that is at `stage` here, by what the other pool has of it.
    pub fn of(stage: Stage, there: There) -> Settling {
        match (stage, there) {
            (Stage::Leaving, There::OnItsWay(Stage::Arrived) | There::Settled) => {
                Settling::EndDeparture
            }
            (Stage::Leaving, _) => Settling::CallOffDeparture,
            (Stage::Arrived, There::OnItsWay(_)) => Settling::Nothing,
            (Stage::Arrived, There::Settled) => Settling::CallOffArrival,
            (Stage::Arrived, There::Nothing) => Settling::EndArrival,
            (Stage::Incoming, _) => Settling::Copy,
        }
    }
}

impl<W: World> Lane<W> {
    /// What is on its way from or to another pool, and how far it is.
    pub fn transits(&self) -> Vec<(VolumeInfo, Transit)> {
        let state = self.inner.state();
        let ready = state.volumes.values().filter(|core| core.ready.get());
        let on_its_way = ready.filter_map(|core| {
            let transit = core.properties.get().transit?;
            Some((self.handle(core).info(), transit))
        });
        on_its_way.collect()
    }

    /// Whether the volume with this identity is withheld: see [`crate::IoErrorKind::Withheld`].
    pub fn is_withheld(&self, uuid: Uuid) -> bool {
        self.core_of(uuid)
            .is_some_and(|core| core.live.withheld.get())
    }

    /// The volume called `name`, when it is not on its way to or from another pool for
    /// good: what is said of it can change.
    pub(super) fn settled(&self, name: &str) -> Result<Rc<VolumeCore>, PoolError> {
        let core = self.existing(name)?;
        match core.properties.stage() {
            None => Ok(core),
            Some(_) => Err(is_moving(&core)),
        }
    }

    /// The volume called `name`, when nobody is copying it to another pool.
    pub(super) fn still(&self, name: &str) -> Result<Rc<VolumeCore>, PoolError> {
        let core = self.settled(name)?;
        match core.live.mirror() {
            None => Ok(core),
            Some(_) => Err(is_moving(&core)),
        }
    }

    /// Makes room for a volume of another pool: a copy with its identity that nobody sees.
    /// One that was left by a crash is gone on with.
    ///
    /// # Errors
    /// `Exists` when a volume here has its name or identity; `Full` when it does not fit;
    /// `Invalid` for a size that no volume here has.
    pub async fn begin_arrival(
        &self,
        info: &VolumeInfo,
        properties: &VolumeProperties,
        from: &OtherPool,
    ) -> Result<Volume<W>, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        check_name("volume", &info.name)?;
        let pages = self.check_size(&info.name, info.size_bytes)?;
        let _administration = inner.administration().await;
        if let Some(there) = self.core_of(info.uuid) {
            if there.properties.stage() != Some(Stage::Incoming) {
                let pool = &inner.identity().name;
                let context = format!("volume '{}' is in pool '{pool}' already", info.name);
                return Err(PoolError::new(PoolErrorKind::Exists, context));
            }
            let is_alike = there.size_bytes.get() == info.size_bytes
                && there.provisioning.get() == info.provisioning
                && there.detects_zeroes.get() == info.detects_zeroes;
            if is_alike {
                return Ok(self.handle(&there));
            }
            // The volume has changed while nobody copied it.
            self.let_go_of(&there).await?;
        }
        self.check_new(&info.name)?;
        let id = self.next_ids(1)?;
        let records = arrival_records(id, info, properties, from);
        inner.metadata_room().check_properties_fit(&records)?;
        let promised = match info.provisioning {
            Provisioning::Thin => Promise::default(),
            Provisioning::Thick => Promise::of(pages, pages),
        };
        self.commit_promising(&info.name, promised, records).await?;
        self.volume_of(info.uuid).ok_or_else(|| no_move(info.uuid))
    }

    /// Has the copy `to` get what is written to the volume called `name`, once it is copied
    /// there ([`Volume::copy_to`]).
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a snapshot; `Busy` when it is moving already.
    pub async fn begin_departure(
        &self,
        name: &str,
        to: Rc<dyn VolumeIo>,
        rate_bytes_per_s: Option<u64>,
    ) -> Result<(Volume<W>, Rc<Mirror>), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.still(name)?;
        if core.read_only {
            let context = format!("volume '{name}' is a snapshot, and shares pages: it stays");
            return Err(PoolError::new(PoolErrorKind::Invalid, context));
        }
        let mirror = Rc::new(Mirror::new(to, core.size_bytes.get(), rate_bytes_per_s));
        core.live.set_mirror(Some(Rc::clone(&mirror)));
        Ok((self.handle(&core), mirror))
    }

    /// The copy that is made of a volume.
    pub fn departure(&self, uuid: Uuid) -> Option<Rc<Mirror>> {
        self.core_of(uuid)?.live.mirror()
    }

    /// Has the volume be the other pool's from now on. While nobody can write it, `arrive`
    /// is to have it arrive there ([`Lane::arrive`]). Whoever waits for the volume goes on
    /// there. Says how long it stood still. Reads go on here as long as they do: it is the
    /// same, and nothing of it is given away while somebody reads.
    ///
    /// # Errors
    /// `NotFound` when it isn't moving, `Busy` when the copy isn't whole, or what `arrive`
    /// says: the volume stays here then.
    pub async fn hand_over(
        &self,
        uuid: Uuid,
        to: &OtherPool,
        arrive: impl AsyncFnOnce(VolumeInfo, VolumeProperties) -> Result<(), PoolError>,
    ) -> Result<Duration, PoolError> {
        let (inner, journal) = (&self.inner, self.inner.journal());
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.core_of(uuid).ok_or_else(|| no_move(uuid))?;
        let mirror = core.live.mirror().ok_or_else(|| no_move(uuid))?;
        let is_whole = || {
            let whole = mirror.check_whole();
            whole.map_err(|why| PoolError::new(PoolErrorKind::Busy, why))
        };
        is_whole()?;
        let leaving = vec![Record::Property(core.id, to.at(Stage::Leaving))];
        inner.metadata_room().check_properties_fit(&leaving)?;
        journal.commit(leaving).await?;
        let volume = self.handle(&core);
        volume.calm().await;
        let began = inner.world().now();
        let still = match inner.world().planted("move loses a write at the switch") {
            true => None,
            false => Some(core.live.ranges.shared(WHOLE.0, WHOLE.1).await),
        };
        let (info, properties) = (volume.info(), core.properties.get());
        if inner.world().planted(EARLY) {
            journal.commit(vec![Record::Delete { id: core.id }]).await?;
        }
        let arrived = match is_whole() {
            Ok(()) => arrive(info, properties).await,
            Err(error) => Err(error),
        };
        if let Err(error) = arrived {
            // It may have arrived all the same, as far as we know: what is durable here is
            // what counts then.
            let stays = Record::Property(core.id, Property::Transit(None));
            journal.commit(vec![stays]).await?;
            core.live.set_mirror(None);
            return Err(error);
        }
        core.live.set_moved(Rc::clone(&mirror.to));
        drop(still);
        inner.world().reached("volume moved to another pool");
        Ok(inner.world().now() - began)
    }

    /// Has a copy be the volume from now on, called and described as the volume is.
    ///
    /// # Errors
    /// `NotFound` when it is not on its way here; `Exists` when its name is taken by now;
    /// `Full` when what is said of it has no room. Unless the pool stops, it has not
    /// arrived then.
    pub async fn arrive(
        &self,
        info: &VolumeInfo,
        properties: &VolumeProperties,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.incoming(info.uuid)?;
        self.check_new(&info.name)?;
        let now = core.properties.get();
        let gone = now.attributes.into_keys();
        let gone = gone.filter(|key| !properties.attributes.contains_key(key));
        let gone = gone.map(|key| Property::Attribute {
            key,
            value: String::new(),
        });
        let mut changes: Vec<Property> = gone.chain(carried(properties)).collect();
        if !inner.world().planted("memo not moved with the volume") {
            changes.extend(core.properties.get().new_memo(&properties.whole_memo()));
        }
        if core.name != info.name.as_str() {
            changes.push(Property::Name(info.name.clone()));
        }
        let from = now.transit.map(|transit| OtherPool {
            uuid: transit.pool,
            name: transit.pool_name,
        });
        changes.extend(from.map(|from| from.at(Stage::Arrived)));
        let record = |property| Record::Property(core.id, property);
        let records: Vec<Record> = changes.into_iter().map(record).collect();
        inner.metadata_room().check_properties_fit(&records)?;
        inner.journal().commit(records).await
    }

    /// Lets go of a volume that has arrived in the other pool.
    ///
    /// # Errors
    /// `NotFound` when it was not leaving.
    pub async fn end_departure(&self, uuid: Uuid) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.core_of(uuid);
        let core = core.filter(|core| core.properties.stage() == Some(Stage::Leaving));
        let Some(core) = core else {
            return match inner.world().planted(EARLY) {
                true => Ok(()),
                false => Err(no_move(uuid)),
            };
        };
        self.let_go_of(&core).await
    }

    /// The other pool has let go of a volume that has arrived here, or never will have it.
    ///
    /// # Errors
    /// `NotFound` when it has not arrived.
    pub async fn end_arrival(&self, uuid: Uuid) -> Result<(), PoolError> {
        self.settle(uuid, Stage::Arrived).await
    }

    /// Has a volume stay here that was about to go, or to be copied.
    ///
    /// # Errors
    /// `NotFound` when it is not here.
    pub async fn call_off_departure(&self, uuid: Uuid) -> Result<(), PoolError> {
        let core = self.core_of(uuid).ok_or_else(|| no_move(uuid))?;
        if let Some(mirror) = core.live.mirror() {
            mirror.fail("the move was called off".to_owned());
        }
        core.live.set_mirror(None);
        match core.properties.stage() {
            Some(Stage::Leaving) => self.settle(uuid, Stage::Leaving).await,
            _ => Ok(()),
        }
    }

    async fn settle(&self, uuid: Uuid, stage: Stage) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.core_of(uuid);
        let core = core.filter(|core| core.properties.stage() == Some(stage));
        let core = core.ok_or_else(|| no_move(uuid))?;
        if stage == Stage::Leaving && core.live.withheld.get() {
            inner.world().reached("move called off at the opening");
        }
        let settled = Record::Property(core.id, Property::Transit(None));
        inner.journal().commit(vec![settled]).await?;
        core.live.withheld.set(false);
        Ok(())
    }

    /// Deletes a copy that is nobody's volume: the move was called off.
    ///
    /// # Errors
    /// `NotFound` when it was not on its way here.
    pub async fn call_off_arrival(&self, uuid: Uuid) -> Result<(), PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.core_of(uuid).ok_or_else(|| no_move(uuid))?;
        let is_copy = match core.properties.stage() {
            Some(Stage::Incoming) => true,
            // Called off in the other pool when nobody knew that it had arrived.
            Some(Stage::Arrived) => core.live.withheld.get(),
            _ => false,
        };
        if !is_copy {
            return Err(no_move(uuid));
        }
        self.let_go_of(&core).await
    }

    fn incoming(&self, uuid: Uuid) -> Result<Rc<VolumeCore>, PoolError> {
        let core = self.core_of(uuid);
        let core = core.filter(|core| core.properties.stage() == Some(Stage::Incoming));
        core.ok_or_else(|| no_move(uuid))
    }
}

/// The records that begin a copy of a volume of another pool.
fn arrival_records(
    id: VolumeId,
    info: &VolumeInfo,
    properties: &VolumeProperties,
    from: &OtherPool,
) -> Vec<Record> {
    let mut records = vec![Record::Create {
        id,
        uuid: info.uuid,
        name: info.name.clone(),
        size_bytes: info.size_bytes,
        provisioning: info.provisioning,
        read_only: false,
    }];
    let mut changes = carried(properties);
    changes.push(from.at(Stage::Incoming));
    records.extend(changes.into_iter().map(|c| Record::Property(id, c)));
    if info.detects_zeroes {
        records.push(Record::Behave {
            id,
            provisioning: info.provisioning,
            detects_zeroes: true,
        });
    }
    records.push(Record::Ready { id });
    records
}

/// What is said of a volume, as it goes with it.
fn carried(properties: &VolumeProperties) -> Vec<Property> {
    let origin = properties.origin.clone().map(Property::Origin);
    let attribute = |(key, value): (&String, &String)| Property::Attribute {
        key: key.clone(),
        value: value.clone(),
    };
    origin
        .into_iter()
        .chain(properties.attributes.iter().map(attribute))
        .collect()
}

fn is_moving(core: &VolumeCore) -> PoolError {
    let context = format!(
        "volume '{}' is moving to or from another pool: wait for the end of that, or call it off",
        core.name
    );
    PoolError::new(PoolErrorKind::Busy, context)
}

fn no_move(uuid: Uuid) -> PoolError {
    let context = format!("volume {uuid} is not on its way between pools");
    PoolError::new(PoolErrorKind::NotFound, context)
}
