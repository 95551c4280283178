//! Finds the units and tokens that the copies of one session can reach.
//!
//! These are the units of its own target, those of other targets that would admit it, and tokens on
//! any shard.

use super::reach::Reach;
use super::{LaneHome, Offload};
use crate::directory::Directory;
use crate::shard::remote_volume::RemoteVolume;
use crate::shard::{ShardHandle, ShardState};
use base::{Time, Uuid, VolumeOffset};
use engine::World;
use engine::{Disk, IoError, IoErrorKind, VolumeInfo};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use iscsi::login::Admission;
use scsi::NexusId;
use scsi::offload::{Access, CancelToken, Copier, Designator, HeldData, Refusal, Tokens, unit_at};
use std::any::Any;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// For the session of one initiator, on the home shard of its target.
pub struct SessionCopier<W: World> {
    /// The shard holds the session, which holds this.
    state: Weak<ShardState<W>>,
    world: W,
    directory: Arc<Directory>,
    offload: Arc<Offload<W>>,
    /// What the session came with.
    admission: Admission,
    target: String,
}

/// A volume as another shard tells of it.
struct FoundVolume {
    pool: String,
    lane: u16,
    info: VolumeInfo,
}

impl<W: World> SessionCopier<W> {
    pub fn new(
        state: &Rc<ShardState<W>>,
        (directory, offload): (&Arc<Directory>, &Arc<Offload<W>>),
        admission: Admission,
        target: &str,
    ) -> Self {
        SessionCopier {
            state: Rc::downgrade(state),
            world: state.world().clone(),
            directory: Arc::clone(directory),
            offload: Arc::clone(offload),
            admission,
            target: target.to_owned(),
        }
    }

    /// Whether this very session would be admitted to `target`, and so sees its units.
    fn would_be_admitted(&self, target: &str) -> bool {
        self.directory.admits(&self.admission, target)
    }

    /// Other shards than this one.
    fn others(&self, own: usize) -> impl Iterator<Item = &ShardHandle<W>> {
        let shards = self.offload.shards().iter();
        shards.filter(move |shard| shard.index() != own)
    }

    /// The volume with this identity, wherever it is.
    async fn disk(&self, uuid: Uuid) -> Option<Disk<W>> {
        let state = self.state.upgrade()?;
        if let Some((_, volume)) = state.volume_of(uuid) {
            return Some(volume.into());
        }
        for shard in self.others(state.index()) {
            let find = move |state: Rc<ShardState<W>>| async move {
                let (pool, volume) = state.volume_of(uuid)?;
                Some(FoundVolume {
                    pool: pool.info().name,
                    lane: pool.lane(),
                    info: volume.info(),
                })
            };
            if let Ok(Some(found)) = shard.call(find).await {
                let place = (found.pool, found.lane);
                let remote = RemoteVolume::new(shard.clone(), place, found.info);
                return Some(Disk::There(Rc::new(remote)));
            }
        }
        None
    }

    async fn resolve_elsewhere(
        &self,
        wanted: Designator,
        access: Access,
        nexus: NexusId,
    ) -> Result<Disk<W>, Refusal> {
        // By shard, so that each is asked once.
        let mut targets: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (name, entry) in self.directory.targets() {
            if name != self.target && self.would_be_admitted(&name) {
                targets.entry(entry.shard).or_default().push(name);
            }
        }
        for (shard, names) in targets {
            let Some(shard) = self.offload.shards().get(shard) else {
                continue;
            };
            let (wanted, nexus) = (wanted.clone(), nexus.clone());
            let look = move |state: Rc<ShardState<W>>| async move {
                unit_on(&state, &names, &wanted, (access, &nexus))
            };
            match shard.call(look).await {
                Ok(Ok(Some(uuid))) => {
                    self.world.reached("unit found at another target");
                    let disk = self.disk(uuid).await;
                    return disk.ok_or(Refusal::Unreachable);
                }
                Ok(Err(refusal)) => return Err(refusal),
                // A shard that has stopped has nothing to offer.
                Ok(Ok(None)) | Err(_) => {}
            }
        }
        Err(Refusal::Unreachable)
    }

    async fn hold_where_it_is(
        &self,
        source: Disk<W>,
        ranges: Vec<(u64, u64)>,
        cancel: CancelToken,
    ) -> Result<HeldData, IoError> {
        let uuid = source.info().uuid;
        let gone = || IoError {
            kind: IoErrorKind::Deleted,
            at: VolumeOffset(0),
            context: format!("volume {uuid} is deleted"),
        };
        let state = self.state.upgrade().ok_or_else(gone)?;
        let here = hold_on(&state, uuid, &ranges, &cancel).await;
        let mut held = here.map(|held| (state.index(), held));
        for shard in self.others(state.index()) {
            if held.is_some() {
                break;
            }
            let (ranges, cancel) = (ranges.clone(), cancel.clone());
            let hold = move |state: Rc<ShardState<W>>| async move {
                hold_on(&state, uuid, &ranges, &cancel).await
            };
            let there = shard.call(hold).await.ok().flatten();
            held = there.map(|held| (shard.index(), held));
        }
        let (shard, held) = held.ok_or_else(gone)?;
        let (pool, lane, held) = held?;
        if shard != state.index() {
            self.world.reached("data for a token kept on another shard");
            if self.world.planted("place of a token's data forgotten") {
                return Ok(held);
            }
        }
        self.offload
            .keep(held.holder, LaneHome { shard, pool, lane });
        Ok(held)
    }
}

/// The volume behind a unit of one of these targets of this shard.
fn unit_on<W: World>(
    state: &ShardState<W>,
    targets: &[String],
    wanted: &Designator,
    (access, nexus): (Access, &NexusId),
) -> Result<Option<Uuid>, Refusal> {
    for target in targets.iter().filter_map(|name| state.target(name)) {
        if let Some(unit) = unit_at(&target, wanted, access, nexus)? {
            return Ok(Some(unit.uuid()));
        }
    }
    Ok(None)
}

type HeldIn = (String, u16, HeldData);

/// Keeps ranges of a volume of this shard; `None` when it is not here.
async fn hold_on<W: World>(
    state: &ShardState<W>,
    uuid: Uuid,
    ranges: &[(u64, u64)],
    cancel: &CancelToken,
) -> Option<Result<HeldIn, IoError>> {
    let (pool, volume) = state.volume_of(uuid)?;
    let held = state.holder(&pool).hold(&volume, ranges, cancel).await;
    Some(held.map(|held| (pool.info().name, pool.lane(), held)))
}

impl<W: World> Copier<W> for SessionCopier<W> {
    fn world(&self) -> &W {
        &self.world
    }

    fn now(&self) -> Time {
        self.world.now()
    }

    fn initiator(&self) -> String {
        // iSCSI names compare without case.
        crate::directory::canonical(&self.admission.initiator)
    }

    fn resolve(
        &self,
        wanted: Designator,
        access: Access,
        nexus: NexusId,
    ) -> LocalBoxFuture<'_, Result<Disk<W>, Refusal>> {
        self.resolve_elsewhere(wanted, access, nexus).boxed_local()
    }

    fn hold(
        &self,
        source: Disk<W>,
        ranges: Vec<(u64, u64)>,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<HeldData, IoError>> {
        self.hold_where_it_is(source, ranges, cancel).boxed_local()
    }

    fn holder(&self, uuid: Uuid) -> LocalBoxFuture<'_, Option<Disk<W>>> {
        let find = async move {
            let (place, shard) = self.offload.place(uuid)?;
            let state = self.state.upgrade()?;
            if place.shard == state.index() {
                let pool = state.lane(&place.pool, place.lane)?;
                return Some(pool.volume_of(uuid)?.into());
            }
            if self.world.planted("token looked for on its own shard only") {
                return None;
            }
            let at = (place.pool.clone(), place.lane);
            let look = move |state: Rc<ShardState<W>>| async move {
                let pool = state.lane(&place.pool, place.lane)?;
                Some(pool.volume_of(uuid)?.info())
            };
            let info = shard.call(look).await.ok()??;
            let remote = RemoteVolume::new(shard, at, info);
            Some(Disk::There(Rc::new(remote) as _))
        };
        find.boxed_local()
    }

    fn reach(&self, volume: Uuid, cancel: &CancelToken) -> Box<dyn Any> {
        Box::new(Reach::new(&self.offload, volume, cancel))
    }

    fn release(&self, held: Vec<HeldData>) {
        let offload = Arc::clone(&self.offload);
        self.world.spawn(async move { offload.let_go(held).await });
    }

    fn make_room(&self, volume: Uuid, _: &CancelToken) -> LocalBoxFuture<'_, bool> {
        let make = async move {
            match self.state.upgrade() {
                Some(state) => state.make_room(volume).await,
                None => false,
            }
        };
        make.boxed_local()
    }

    fn tokens(&self, with: &mut dyn FnMut(&mut Tokens)) -> bool {
        self.offload.with_tokens(with)
    }
}
