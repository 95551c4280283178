//! New drives at their places, as the lanes of their pool open them.
//!
//! Invariant: what holds something that nobody here knows of is never taken for a drive.

use crate::bays::{DriveBays, NotOpen, NotOpenKind, OpenBay, Patience, blank};
use crate::control::{ArrayError, ArrayErrorKind};
use crate::pool::{Holder, NewDrive};
use crate::shard::ShardState;
use engine::pool::{Lane, NamedDrive};
use engine::{Drive, PoolErrorKind, World};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Drives that are in use are tried so far apart.
const IN_USE_PAUSE: Duration = Duration::from_millis(50);

/// Who has the place of a new drive, as far as open pools know.
#[derive(Clone, Debug, Default)]
pub(super) struct Tenants {
    /// A drive of the pool that is out of use, or about to go, and may have this place open still.
    pub(super) holder: Option<String>,
    /// The drive that is in use there, for messages.
    pub(super) user: Option<String>,
    /// Bytes of the drive that is replaced and has this place still: it may be the new one.
    pub(super) replaced_bytes: Option<u64>,
}

/// A drive to be opened on the shards of its pool.
pub(in crate::control) struct Placed<W: World> {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The pool has a drive at this place: what is on it may go.
    pub(super) is_known: bool,
    pub(super) tenants: Tenants,
    /// Bytes of the file that is to be made there.
    pub(super) planned_bytes: Option<u64>,
    pub(super) bays: Arc<dyn DriveBays<W>>,
    /// Once the first lane of the pool has it: the others take it as it is.
    pub(super) opened: Mutex<Option<Arc<dyn OpenBay<W>>>>,
}

impl<W: World> Placed<W> {
    // Whoever panicked with this lock held has left it whole.
    fn opened(&self) -> Option<Arc<dyn OpenBay<W>>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.clone()
    }

    fn keep_open(&self, open: Arc<dyn OpenBay<W>>) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.replace(open);
    }

    async fn open_for(
        &self,
        state: &ShardState<W>,
        lane: &Lane<W>,
    ) -> Result<NamedDrive<W>, ArrayError> {
        let named = |open: &dyn OpenBay<W>| NamedDrive {
            name: self.name.clone(),
            drive: open.door(state),
        };
        if let Some(open) = self.opened() {
            return Ok(named(&*open));
        }
        let open = self.open_free(state, lane).await;
        let open = open.map_err(|error| self.refusal(&error))?;
        let named = named(&*open);
        self.check_nobody_uses(state, &named.drive).await?;
        self.keep_open(open);
        Ok(named)
    }

    fn refusal(&self, error: &NotOpen) -> ArrayError {
        let context = format!("drive {}: {error}", self.name);
        match (error.kind, &self.tenants.user) {
            (NotOpenKind::InUse, Some(user)) => {
                ArrayError::new(ArrayErrorKind::Busy, format!("{context}: it is {user}"))
            }
            (NotOpenKind::InUse, None) => ArrayError::new(ArrayErrorKind::Busy, context),
            _ => ArrayError::new(ArrayErrorKind::Invalid, context),
        }
    }

    /// That a drive holds nothing which nobody here knows of.
    async fn check_nobody_uses(
        &self,
        state: &ShardState<W>,
        drive: &W::Drive,
    ) -> Result<(), ArrayError> {
        let label = Lane::probe(state.world(), drive).await;
        let is_labelled = label
            .map_err(|error| ArrayError::from(error).of_drive(&self.name))?
            .is_some();
        if self.is_known || is_labelled {
            return Ok(());
        }
        let world = state.world();
        if world.planted("drive of others is taken for an empty one") {
            return Ok(());
        }
        let path = self.path.display();
        let context = match blank::is_blank(world, drive).await {
            Ok(true) => return Ok(()),
            Ok(false) => format!("{path} {}", blank::REMEDY),
            Err(error) => format!("{path}: {error}"),
        };
        world.reached("drive refused for what is on it");
        Err(ArrayError::new(ArrayErrorKind::Exists, context).of_drive(&self.name))
    }

    /// Opens it, once whoever is about to close it has.
    async fn open_free(
        &self,
        state: &ShardState<W>,
        lane: &Lane<W>,
    ) -> Result<Arc<dyn OpenBay<W>>, NotOpen> {
        let may_wait = || {
            if self.tenants.user.is_some() {
                return false;
            }
            // Where somebody stands in for it by now, it closes by itself.
            let let_go = self
                .tenants
                .holder
                .as_ref()
                .map(|holder| lane.let_go(holder));
            !let_go
                .is_some_and(|let_go| let_go.is_err_and(|error| error.kind == PoolErrorKind::Busy))
        };
        let mut patience = Patience::default();
        loop {
            match self.bays.open(&self.path, &mut Patience::none()).await {
                Err(error)
                    if error.kind == NotOpenKind::InUse && may_wait() && patience.look_again() =>
                {
                    state.world().reached("new drive waited for");
                    state.world().sleep(IN_USE_PAUSE).await;
                }
                opened => return opened,
            }
        }
    }
}

impl<W: World> NewDrive<W> for Arc<Placed<W>> {
    fn name(&self) -> &str {
        &self.name
    }

    fn holder(&self) -> Option<Holder<'_>> {
        Some(Holder {
            name: self.tenants.holder.as_deref()?,
            is_replaced: self.tenants.replaced_bytes.is_some(),
        })
    }

    fn is_its_own_successor(&self) -> bool {
        let is_there = self.planned_bytes.is_none();
        self.tenants.replaced_bytes.is_some() && is_there && self.opened().is_none()
    }

    async fn look_at(
        &self,
        state: &ShardState<W>,
        lane: &Lane<W>,
    ) -> Result<(Option<NamedDrive<W>>, u64), ArrayError> {
        if let Some(bytes) = self.planned_bytes {
            return Ok((None, bytes));
        }
        match (
            self.open_for(state, lane).await,
            self.tenants.replaced_bytes,
        ) {
            (Ok(named), _) => {
                let bytes = named.drive.geometry().capacity_bytes;
                Ok((Some(named), bytes))
            }
            // The pool has it open: it is its own successor.
            (Err(error), Some(bytes)) if error.kind == ArrayErrorKind::Busy => {
                match self.bays.is_open_here(&self.path).await {
                    true => {
                        state.world().reached("drive takes its own place");
                        Ok((None, bytes))
                    }
                    false => Err(error),
                }
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn open(
        &self,
        state: &ShardState<W>,
        lane: &Lane<W>,
    ) -> Result<NamedDrive<W>, ArrayError> {
        self.open_for(state, lane).await
    }
}
