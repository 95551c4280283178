//! Losses of drives that the rings find.

use crate::drive::DriveError;
use crate::drives::{DriveFault, Drives};
use crate::ring::Losses;
use crate::world::World;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;

/// The rings know the drives by this.
pub struct RingLosses<W: World>(pub Rc<Drives<W>>);

impl<W: World> Losses<W> for RingLosses<W> {
    fn absorb(&self, faults: Vec<DriveFault<W>>) -> LocalBoxFuture<'_, Result<(), DriveError>> {
        self.0.absorb(faults).boxed_local()
    }

    fn are_durable(&self) -> bool {
        self.0.are_losses_durable()
    }
}
