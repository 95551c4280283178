//! Changing a volume between thin and thick, while hosts use it.
//!
//! Invariant: a volume is thick from the moment on in which all of its pages are mapped
//! or promised. Pages that are cleared meanwhile stay mapped, so that it can't come to
//! need more than were set aside.

use super::{Lane, PoolError, PoolErrorKind};
use crate::meta::Record;
use crate::space::VolumeCore;
use crate::volume::{Provisioning, VolumeInfo};
use crate::world::World;
use std::rc::Rc;

/// What is to change; the rest stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeChange {
    /// Thin or thick from now on.
    pub provisioning: Option<Provisioning>,
    /// Whether pages that are written as zeroes are kept from now on.
    pub detects_zeroes: Option<bool>,
}

impl<W: World> Lane<W> {
    /// Changes how a volume takes space.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for a snapshot; `Full` when the pages of one that is to be thick don't fit. Nothing
    /// has changed then.
    pub async fn change_volume(
        &self,
        name: &str,
        change: VolumeChange,
    ) -> Result<VolumeInfo, PoolError> {
        let inner = &self.inner;
        inner.check()?;
        let _administration = inner.administration().await;
        let core = self.still(name)?;
        if core.read_only {
            let context = format!("volume '{name}' is a snapshot, and takes no space: clone it");
            return Err(PoolError::new(PoolErrorKind::Invalid, context));
        }
        let (is, detects) = (core.provisioning.get(), core.detects_zeroes.get());
        let provisioning = change.provisioning.unwrap_or(is);
        let detects_zeroes = change.detects_zeroes.unwrap_or(detects);
        if (provisioning, detects_zeroes) != (is, detects) {
            let behave = Record::Behave {
                id: core.id,
                provisioning,
                detects_zeroes,
            };
            if (is, provisioning) == (Provisioning::Thin, Provisioning::Thick) {
                core.live.keeps_pages.set(true);
                let promised = self.promise_all(&core).await;
                core.live.keeps_pages.set(false);
                promised?;
                inner.world().reached("volume becomes thick");
            }
            // Pages on their way to be mapped were promised to it, and count as such.
            let _still = match provisioning {
                Provisioning::Thin => Some(core.live.ranges.exclusive(0, u64::MAX).await),
                Provisioning::Thick => None,
            };
            // When this fails the pool has stopped.
            inner.journal().commit(vec![behave]).await?;
        }
        Ok(self.handle(&core).info())
    }

    /// Promises a volume all of its pages. Nobody writes it meanwhile: what is on its way
    /// to be mapped would count twice.
    async fn promise_all(&self, core: &Rc<VolumeCore>) -> Result<(), PoolError> {
        let inner = &self.inner;
        let _still = match inner.world().planted("thick while pages are given back") {
            true => None,
            // Who clears pages has ended, and the next one keeps them.
            false => Some(core.live.ranges.exclusive(0, u64::MAX).await),
        };
        let promise = core.promise_of_all(inner.page_bytes());
        if !inner.pledges().pledge(promise).await? {
            let name = core.name.to_string();
            return Err(inner.pledges().no_room_for(&name, promise.pages));
        }
        inner.pledges().promise_pledged(core);
        Ok(())
    }
}
