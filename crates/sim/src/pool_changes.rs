//! Changes of the whole pool, as [`array::pool::Pool`] makes them: over messages to the shards of
//! its lanes, which take their time.

use crate::lanes::{Lanes, NamedMedia};
use crate::shards::Shards;
use array::control::OneThread;
use array::error::{ArrayError, ArrayErrorKind};
use array::pool::opening::PoolDrive;
use array::pool::{Holder, NewDrive, NewDrives, Pool};
use array::shard::ShardState;
use base::Prng;
use engine::pool::GroupRole;
use engine::{Drive, Lane, Level, MemberInfo, NamedDrive};
use send_wrapper::SendWrapper;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use world_sim::{Media, MediaSpec, SimDrive, SimWorld};

/// The pool over these lanes, each on a shard of its own.
pub(crate) fn pool_over(world: &SimWorld, lanes: &[Lane<SimWorld>]) -> Pool<SimWorld> {
    let shards = Shards::new(world, lanes.len());
    for (state, lane) in shards.states.iter().zip(lanes) {
        state.add_pool(lane.clone());
    }
    let name = lanes.first().map(|lane| lane.name().to_owned());
    let waiter = Arc::new(OneThread::new(world.clone(), 0));
    Pool::new(name.unwrap_or_default(), shards.handles, waiter)
}

/// When the last lane finds a new drive too small. All others find it large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// When it is asked.
    Asked,
    /// When it opens the drive, after all were asked.
    Opened,
}

/// Names of drives that changes under way are about to take in. A served array changes a pool once at a
/// time, so nobody else may offer it these drives meanwhile.
#[derive(Clone)]
pub(crate) struct OnOffer(SendWrapper<Rc<RefCell<Vec<String>>>>);

impl OnOffer {
    pub fn nothing() -> Self {
        OnOffer(SendWrapper::new(Rc::default()))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.borrow().iter().any(|other| other == name)
    }
}

/// New drives, which are on offer while this is there, and the lane that refuses the first of them.
pub struct NewMedia {
    doors: Vec<Door>,
    on_offer: OnOffer,
}

impl Drop for NewMedia {
    fn drop(&mut self) {
        let mut names = self.on_offer.0.borrow_mut();
        for door in &self.doors {
            if let Some(at) = names.iter().position(|name| *name == door.name) {
                names.swap_remove(at);
            }
        }
    }
}

/// A new drive, as every lane opens it.
#[derive(Clone)]
pub struct Door {
    name: String,
    media: SendWrapper<Rc<Media>>,
    unfit: Option<(Unfit, u16)>,
}

/// A drive that no group can have.
fn tiny() -> Rc<Media> {
    let spec = MediaSpec::new("tiny", 1 << 20);
    Rc::new(Media::new(spec, Prng::from_seed(8)))
}

impl Door {
    fn open_now(&self, world: &SimWorld, fits: bool) -> NamedDrive<SimWorld> {
        let drive = match fits {
            true => SimDrive::adversarial(world, &self.media),
            false => SimDrive::adversarial(world, &tiny()),
        };
        NamedDrive {
            name: self.name.clone(),
            drive,
        }
    }
}

impl From<&NamedMedia> for Door {
    fn from((name, media): &NamedMedia) -> Self {
        Door {
            name: name.clone(),
            media: SendWrapper::new(Rc::clone(media)),
            unfit: None,
        }
    }
}

impl PoolDrive<SimWorld> for Door {
    fn name(&self) -> &str {
        &self.name
    }

    fn door(&self, state: &ShardState<SimWorld>) -> NamedDrive<SimWorld> {
        self.open_now(state.world(), true)
    }
}

impl NewDrive<SimWorld> for Door {
    fn name(&self) -> &str {
        &self.name
    }

    fn holder(&self) -> Option<Holder<'_>> {
        None
    }

    fn is_its_own_successor(&self) -> bool {
        false
    }

    async fn look_at(
        &self,
        state: &ShardState<SimWorld>,
        lane: &Lane<SimWorld>,
    ) -> Result<(Option<NamedDrive<SimWorld>>, u64), ArrayError> {
        let fits = self.unfit != Some((Unfit::Asked, lane.lane()));
        let named = self.open_now(state.world(), fits);
        let bytes = named.drive.geometry().capacity_bytes;
        Ok((Some(named), bytes))
    }

    async fn open(
        &self,
        state: &ShardState<SimWorld>,
        lane: &Lane<SimWorld>,
    ) -> Result<NamedDrive<SimWorld>, ArrayError> {
        let fits = self.unfit.is_none_or(|(_, unfit)| unfit != lane.lane());
        Ok(self.open_now(state.world(), fits))
    }
}

impl NewDrives<SimWorld> for NewMedia {
    type Drive = Door;

    fn drives(&self) -> &[Door] {
        &self.doors
    }

    async fn make(&self) -> Result<(), ArrayError> {
        Ok(())
    }

    async fn unmake(&self) {}
}

impl Lanes {
    /// As they are offered to the pool; where `unfit` says so, its last lane refuses them.
    fn offered(&self, drives: &[NamedMedia], unfit: Option<Unfit>) -> NewMedia {
        self.given.borrow_mut().extend(drives.iter().cloned());
        let door = |(place, drive): (usize, &NamedMedia)| Door {
            unfit: unfit
                .filter(|_| place == 0)
                .map(|when| (when, self.all().len() as u16 - 1)),
            ..Door::from(drive)
        };
        let doors: Vec<Door> = drives.iter().enumerate().map(door).collect();
        let names = doors.iter().map(|door| door.name.clone());
        self.on_offer.0.borrow_mut().extend(names);
        NewMedia {
            doors,
            on_offer: self.on_offer.clone(),
        }
    }

    fn member(&self, name: &str) -> Result<MemberInfo, ArrayError> {
        let info = self.info();
        let mut all = info.members.into_iter().chain(info.spares);
        all.find(|member| member.name == name).ok_or_else(|| {
            ArrayError::new(
                ArrayErrorKind::NotFound,
                format!("there is no drive {name}"),
            )
        })
    }

    /// Takes a drive out of use everywhere.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn fail_drive(&self, name: &str) -> Result<(), ArrayError> {
        self.pool.fail_drive(&self.member(name)?).await
    }

    /// Adds a spare to every lane.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn add_spare(
        &self,
        drive: NamedMedia,
        unfit: Option<Unfit>,
    ) -> Result<(), ArrayError> {
        let new = self.offered(&[drive], unfit);
        self.pool.add_spares(None, &new).await
    }

    /// Has `drive` stand in for the drive called `name`.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn replace_drive(
        &self,
        name: &str,
        drive: NamedMedia,
        unfit: Option<Unfit>,
    ) -> Result<(), ArrayError> {
        let new = self.offered(&[drive], unfit);
        let old = self.member(name)?;
        let replaced = self.pool.replace_drive(&old, &new);
        replaced.await.map(|_| ())
    }

    /// Adds a group of drives to every lane.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn add_group(
        &self,
        (level, role): (Level, GroupRole),
        drives: &[NamedMedia],
        unfit: Option<Unfit>,
    ) -> Result<(), ArrayError> {
        let new = self.offered(drives, unfit);
        let of = (Some(level), site::SpreadKeys::default(), role);
        self.pool.add_group(of, &new, true).await
    }

    /// Gives a group another level, in every lane that can.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn convert_group(&self, index: u16, level: Level) -> Result<(), ArrayError> {
        self.pool.convert_group(index, level).await
    }

    /// Has a group leave, however full the pool is then.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn remove_group(&self, index: u16) -> Result<(), ArrayError> {
        self.pool.remove_group(index, true).await
    }

    /// Begins a scrub.
    ///
    /// # Errors
    /// As the pool's.
    pub async fn start_scrub(&self) -> Result<(), ArrayError> {
        self.pool.scrub(true).await
    }
}
