//! The copier of one nexus: the array's own, with books of what tokens stand for.

use super::array::Array;
use array::offload::SessionCopier;
use base::{SECTOR_BYTES, Time, Uuid, VolumeOffset};
use engine::volume::CancelToken;
use engine::{Disk, IoError, IoErrorKind, Volume, World};
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use scsi::NexusId;
use scsi::offload::{Access, Copier, Designator, HeldData, Refusal, Tokens};
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use world_sim::SimWorld;

pub(super) struct HostCopier {
    pub(super) array: Rc<Array>,
    pub(super) copier: SessionCopier<SimWorld>,
    /// What was last kept for this nexus, sector by sector, as it was when it had been kept:
    /// what its token stands for, from then on.
    pub(super) kept: Rc<RefCell<Vec<u64>>>,
}

impl HostCopier {
    async fn hold_and_look(
        &self,
        source: Disk<SimWorld>,
        ranges: Vec<(u64, u64)>,
        cancel: CancelToken,
    ) -> Result<HeldData, IoError> {
        let held = self.copier.hold(source, ranges, cancel).await?;
        let gone = || IoError {
            kind: IoErrorKind::Deleted,
            at: VolumeOffset(0),
            context: format!("volume {} is deleted", held.holder),
        };
        let (_, holder) = self.array.hidden(held.holder).ok_or_else(gone)?;
        self.look_at(&holder, &held).await?;
        Ok(held)
    }

    async fn look_at(&self, holder: &Volume<SimWorld>, held: &HeldData) -> Result<(), IoError> {
        let mut kept = Vec::new();
        for (at, len) in held.places.iter().filter(|(_, len)| *len > 0) {
            let bytes = holder.read(VolumeOffset(*at), *len as usize).await?;
            let bytes = bytes.to_vec();
            for sector in bytes.chunks(SECTOR_BYTES) {
                match crate::history::value_of(sector) {
                    Some(value) => kept.push(value),
                    None => self.array.fail("a token holds a torn sector"),
                }
            }
        }
        self.kept.replace(kept);
        Ok(())
    }
}

impl Copier<SimWorld> for HostCopier {
    fn world(&self) -> &SimWorld {
        self.copier.world()
    }

    fn now(&self) -> Time {
        self.copier.now()
    }

    fn initiator(&self) -> String {
        self.copier.initiator()
    }

    fn resolve(
        &self,
        wanted: Designator,
        access: Access,
        nexus: NexusId,
    ) -> LocalBoxFuture<'_, Result<Disk<SimWorld>, Refusal>> {
        self.copier.resolve(wanted, access, nexus)
    }

    fn hold(
        &self,
        source: Disk<SimWorld>,
        ranges: Vec<(u64, u64)>,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'_, Result<HeldData, IoError>> {
        self.hold_and_look(source, ranges, cancel).boxed_local()
    }

    fn holder(&self, uuid: Uuid) -> LocalBoxFuture<'_, Option<Disk<SimWorld>>> {
        self.copier.holder(uuid)
    }

    fn reach(&self, volume: Uuid, cancel: &CancelToken) -> Box<dyn Any> {
        self.copier.reach(volume, cancel)
    }

    fn release(&self, held: Vec<HeldData>) {
        self.copier.release(held);
    }

    /// Who needs the room that tokens keep gets it, or a part of what only takes room. That
    /// goes on when nobody waits for it any more.
    fn make_room(&self, volume: Uuid, cancel: &CancelToken) -> LocalBoxFuture<'_, bool> {
        let out = self.array.leaves_the_engine(cancel);
        let make = async move {
            let (done, made) = oneshot::channel();
            let array = Rc::clone(&self.array);
            self.array.world.spawn(async move {
                let some = array.make_room(volume).await;
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
        self.copier.tokens(with)
    }
}
