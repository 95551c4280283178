//! Makes copies for one nexus as the server does, but without threads.

use super::array::Array;
use base::{SECTOR_BYTES, Time, Uuid, VolumeOffset};
use engine::volume::Course;
use engine::{Disk, IoError, IoErrorKind, Volume, World};
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use scsi::NexusId;
use scsi::offload::{Access, Copier, Designator, Held, Refusal, Tokens, unit_at};
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use world::sim::SimWorld;

pub(super) struct HostCopier {
    pub(super) array: Rc<Array>,
    pub(super) initiator: String,
    /// What was last kept for this nexus, sector by sector, as it was when it had been kept:
    /// what its token stands for, from then on.
    pub(super) kept: Rc<RefCell<Vec<u64>>>,
}

impl HostCopier {
    async fn hold_in(
        &self,
        uuid: Uuid,
        ranges: Vec<(u64, u64)>,
        course: Course,
    ) -> Result<Held, IoError> {
        let gone = || IoError {
            kind: IoErrorKind::Deleted,
            at: VolumeOffset(0),
            context: format!("volume {uuid} is deleted"),
        };
        let (pool, volume) = self.array.volume_of(uuid).ok_or_else(gone)?;
        let held = self.array.holder(pool).hold(&volume, &ranges, &course);
        let held = held.await?;
        let (_, holder) = self.array.hidden(held.holder).ok_or_else(gone)?;
        self.look_at(&holder, &held).await?;
        Ok(held)
    }

    async fn look_at(&self, holder: &Volume<SimWorld>, held: &Held) -> Result<(), IoError> {
        let mut kept = Vec::new();
        for (at, len) in held.places.iter().filter(|(_, len)| *len > 0) {
            let bytes = holder.read(VolumeOffset(*at), *len as usize).await?;
            let bytes = bytes.to_vec();
            for sector in bytes.chunks(SECTOR_BYTES) {
                match super::field::value_of(sector) {
                    Some(value) => kept.push(value),
                    None => self.array.fail("a token holds a torn sector"),
                }
            }
        }
        self.kept.replace(kept);
        Ok(())
    }

    fn unit_of(
        &self,
        wanted: &Designator,
        access: Access,
        nexus: &NexusId,
    ) -> Result<Disk<SimWorld>, Refusal> {
        for target in &self.array.targets {
            if let Some(unit) = unit_at(target, wanted, access, nexus)? {
                return Ok(unit.volume());
            }
        }
        Err(Refusal::Unreachable)
    }
}

impl Copier<SimWorld> for HostCopier {
    fn world(&self) -> &SimWorld {
        &self.array.world
    }

    fn now(&self) -> Time {
        self.array.now()
    }

    fn initiator(&self) -> String {
        self.initiator.clone()
    }

    fn resolve(
        &self,
        wanted: Designator,
        access: Access,
        nexus: NexusId,
    ) -> LocalBoxFuture<'_, Result<Disk<SimWorld>, Refusal>> {
        let found = self.unit_of(&wanted, access, &nexus);
        std::future::ready(found).boxed_local()
    }

    fn hold(
        &self,
        source: Disk<SimWorld>,
        ranges: Vec<(u64, u64)>,
        course: Course,
    ) -> LocalBoxFuture<'_, Result<Held, IoError>> {
        let uuid = source.info().uuid;
        self.hold_in(uuid, ranges, course).boxed_local()
    }

    fn holder(&self, uuid: Uuid) -> LocalBoxFuture<'_, Option<Disk<SimWorld>>> {
        let found = self.array.hidden(uuid);
        std::future::ready(found.map(|(_, volume)| volume.into())).boxed_local()
    }

    fn reach(&self, _: Uuid, _: &Course) -> Box<dyn Any> {
        // Nobody takes units away here.
        Box::new(())
    }

    fn release(&self, held: Vec<Held>) {
        let array = Rc::clone(&self.array);
        array.begin_to_let_go();
        self.array.world.spawn(async move {
            array.let_go(held).await;
            array.end_to_let_go();
        });
    }

    /// Who needs the room that tokens keep gets it, or a part of what only takes room. That
    /// goes on when nobody waits for it any more.
    fn make_room(&self, volume: Uuid, course: &Course) -> LocalBoxFuture<'_, bool> {
        let out = self.array.leaves_the_engine(course);
        let make = async move {
            let (done, made) = oneshot::channel();
            let array = Rc::clone(&self.array);
            array.begin_to_let_go();
            self.array.world.spawn(async move {
                let some = array.make_room(volume).await;
                array.end_to_let_go();
                // It may have been stopped.
                let _ = done.send(some);
            });
            let some = made.await.unwrap_or(false);
            drop(out);
            some
        };
        make.boxed_local()
    }

    fn tokens(&self, with: &mut dyn FnMut(&mut Tokens)) -> bool {
        with(&mut self.array.tokens.borrow_mut());
        true
    }
}
