//! The drives of the simulated world, adversarial or modelled.

use super::SimWorld;
use super::adversarial::Adversarial;
use super::media::Media;
use super::modelled::{Modelled, ModelledMedia};
use base::{Buf, DriveOffset, Slice};
use engine::{Drive, DriveError, Geometry};
use futures_util::future::Either;
use std::future::Future;
use std::rc::Rc;

/// An open drive of one world.
pub struct SimDrive {
    profile: Profile,
    /// It is locked for as long as this is there.
    _lock: Option<Rc<()>>,
}

/// Operations of adversarial drives are in boxes, so that those of modelled ones, of which
/// there are very many at a time, are no larger than they need be.
enum Profile {
    Adversarial(Adversarial),
    Modelled(Modelled),
}

impl SimDrive {
    /// Opens media that lose, tear and reorder what is not flushed.
    pub fn adversarial(world: &SimWorld, media: &Rc<Media>) -> Self {
        Self::of(Profile::Adversarial(Adversarial::new(
            world.clone(),
            Rc::clone(media),
        )))
    }

    /// Opens a drive that takes the time its model says.
    pub fn modelled(world: &SimWorld, media: &Rc<ModelledMedia>) -> Self {
        Self::of(Profile::Modelled(Modelled::new(
            world.clone(),
            Rc::clone(media),
        )))
    }

    fn of(profile: Profile) -> Self {
        SimDrive {
            profile,
            _lock: None,
        }
    }

    /// The same, which keeps `lock` until it is closed: who has the other end can tell.
    #[must_use]
    pub fn locked_by(self, lock: Rc<()>) -> Self {
        SimDrive {
            _lock: Some(lock),
            ..self
        }
    }
}

impl Drive for SimDrive {
    fn geometry(&self) -> Geometry {
        match &self.profile {
            Profile::Adversarial(drive) => drive.geometry(),
            Profile::Modelled(drive) => drive.geometry(),
        }
    }

    fn read(
        &self,
        at: DriveOffset,
        buf: Buf,
    ) -> impl Future<Output = (Buf, Result<(), DriveError>)> {
        match &self.profile {
            Profile::Adversarial(drive) => Either::Left(Box::pin(drive.read(at, buf))),
            Profile::Modelled(drive) => Either::Right(drive.read(at, buf)),
        }
    }

    fn write(&self, at: DriveOffset, data: Slice) -> impl Future<Output = Result<(), DriveError>> {
        match &self.profile {
            Profile::Adversarial(drive) => Either::Left(Box::pin(drive.write(at, data))),
            Profile::Modelled(drive) => Either::Right(drive.write(at, data)),
        }
    }

    fn write_durable(
        &self,
        at: DriveOffset,
        data: Slice,
    ) -> impl Future<Output = Result<(), DriveError>> {
        match &self.profile {
            Profile::Adversarial(drive) => Either::Left(Box::pin(drive.write_durable(at, data))),
            Profile::Modelled(drive) => Either::Right(drive.write_durable(at, data)),
        }
    }

    fn flush(&self) -> impl Future<Output = Result<(), DriveError>> {
        match &self.profile {
            Profile::Adversarial(drive) => Either::Left(Box::pin(drive.flush())),
            Profile::Modelled(drive) => Either::Right(drive.flush()),
        }
    }

    fn discard(
        &self,
        at: DriveOffset,
        len_bytes: u64,
    ) -> impl Future<Output = Result<(), DriveError>> {
        match &self.profile {
            Profile::Adversarial(drive) => Either::Left(Box::pin(drive.discard(at, len_bytes))),
            Profile::Modelled(drive) => Either::Right(drive.discard(at, len_bytes)),
        }
    }

    async fn check(&self) -> Result<(), DriveError> {
        match &self.profile {
            Profile::Adversarial(drive) => drive.check(),
            Profile::Modelled(_) => Ok(()),
        }
    }
}
