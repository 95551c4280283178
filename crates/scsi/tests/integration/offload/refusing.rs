//! A copier that reaches nothing but the units of its own target, and keeps nothing.

use base::{Time, Uuid, VolumeOffset};
use engine::{Disk, IoError, IoErrorKind, World};
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, ready};
use scsi::NexusId;
use scsi::offload::{Access, CancelToken, Copier, Designator, HeldData, Limits, Refusal, Tokens};
use std::any::Any;
use std::cell::RefCell;
use world_sim::SimWorld;

pub struct Refusing {
    world: SimWorld,
    tokens: RefCell<Tokens>,
}

impl Refusing {
    pub fn new(world: &SimWorld) -> Self {
        Refusing {
            world: world.clone(),
            tokens: RefCell::new(Tokens::new(&[3; 40], Limits::default())),
        }
    }
}

impl Copier<SimWorld> for Refusing {
    fn world(&self) -> &SimWorld {
        &self.world
    }

    fn now(&self) -> Time {
        self.world.now()
    }

    fn initiator(&self) -> String {
        "iqn.host".to_owned()
    }

    fn resolve(
        &self,
        _: Designator,
        _: Access,
        _: NexusId,
    ) -> LocalBoxFuture<'_, Result<Disk<SimWorld>, Refusal>> {
        ready(Err(Refusal::Unreachable)).boxed_local()
    }

    fn hold(
        &self,
        _: Disk<SimWorld>,
        _: Vec<(u64, u64)>,
        _: CancelToken,
    ) -> LocalBoxFuture<'_, Result<HeldData, IoError>> {
        let gone = IoError {
            kind: IoErrorKind::Deleted,
            at: VolumeOffset(0),
            context: String::new(),
        };
        ready(Err(gone)).boxed_local()
    }

    fn holder(&self, _: Uuid) -> LocalBoxFuture<'_, Option<Disk<SimWorld>>> {
        ready(None).boxed_local()
    }

    fn reach(&self, _: Uuid, _: &CancelToken) -> Box<dyn Any> {
        Box::new(())
    }

    fn release(&self, _: Vec<HeldData>) {}

    fn make_room(&self, _: Uuid, _: &CancelToken) -> LocalBoxFuture<'_, bool> {
        ready(false).boxed_local()
    }

    fn tokens(&self, with: &mut dyn FnMut(&mut Tokens)) -> bool {
        with(&mut self.tokens.borrow_mut());
        true
    }
}
