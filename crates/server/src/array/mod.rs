//! The array as the API and the bring-up see it: pools, volumes, exports and
//! sessions over all shards.
//!
//! Invariants:
//! - A volume's name is unique over the array, and so is a target's.
//! - A volume is behind at most one target.
//! - Changes happen one at a time, and each runs to its end even when the one
//!   who asked goes away.
//! - An export made by the API is on stable media before it can be logged in to,
//!   so it is there again after a restart.

mod drives;
mod error;
mod exports;
mod groups;
mod places;
mod sessions;
mod volumes;

pub use drives::PoolEvent;
pub use error::{ArrayError, ArrayErrorKind};
pub(crate) use exports::kept;
pub use exports::{Export, Origin};
pub use groups::NewGroup;
pub use places::{AddedDrive, DrivePlaces, NewDrive, added};
pub use volumes::PlacedVolume;

use crate::directory::Directory;
use crate::shard::{ShardHandle, ShardState};
use engine::pool::{MemberInfo, Pool, PoolInfo};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use world::real::RealWorld;

/// The array. Shared by everything beside the data path.
pub struct Array {
    name: String,
    shards: Vec<ShardHandle>,
    /// The shard, by index, that each pool is homed on.
    homes: BTreeMap<String, usize>,
    directory: Arc<Directory>,
    exports: Mutex<BTreeMap<String, Export>>,
    exports_file: PathBuf,
    drives: DrivePlaces,
    /// What the site file says of pools.
    described: Vec<site::Pool>,
    change: tokio::sync::Mutex<()>,
    began: Instant,
}

impl Array {
    /// An array called `name` whose pools are open on `shards`, each on the one
    /// that `homes` says, without exports. Exports that the API makes are kept in
    /// `exports_file`; `drives` says where the drives are, and `described` what the site
    /// file says of pools.
    ///
    /// # Panics
    /// When `homes` names a shard that isn't there.
    pub fn new(
        name: String,
        shards: Vec<ShardHandle>,
        homes: BTreeMap<String, usize>,
        directory: Arc<Directory>,
        exports_file: PathBuf,
        drives: DrivePlaces,
        described: Vec<site::Pool>,
    ) -> Arc<Self> {
        assert!(
            homes.values().all(|shard| *shard < shards.len()),
            "a pool on a shard not there"
        );
        Arc::new(Array {
            name,
            shards,
            homes,
            directory,
            exports: Mutex::default(),
            exports_file,
            drives,
            described,
            change: tokio::sync::Mutex::default(),
            began: Instant::now(),
        })
    }

    /// What the site calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds since it was brought up.
    pub fn uptime_s(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    /// Targets and portals.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The pools, by name, each with the shard it is homed on.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn pools(&self) -> Result<Vec<(usize, PoolInfo)>, ArrayError> {
        let mut pools = Vec::new();
        for shard in &self.shards {
            let infos = shard
                .call(|state| async move { state.pools().iter().map(|p| p.info()).collect() })
                .await;
            let infos: Vec<PoolInfo> = infos?;
            pools.extend(infos.into_iter().map(|info| (shard.index(), info)));
        }
        pools.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        Ok(pools)
    }

    /// The pool called `name`.
    ///
    /// # Errors
    /// There is none, or its shard has stopped.
    pub async fn pool(&self, name: &str) -> Result<(usize, PoolInfo), ArrayError> {
        let shard = self.home(name)?;
        let wanted = name.to_owned();
        let visit = |state: Rc<ShardState>| async move { state.pool(&wanted).map(|p| p.info()) };
        let info = shard
            .call(visit)
            .await?
            .ok_or_else(|| ArrayError::no_pool(name))?;
        Ok((shard.index(), info))
    }

    /// Where the site file is not what a pool is by now; for people, one line each.
    pub fn differences(&self, info: &PoolInfo) -> Vec<String> {
        let mut described = self.described.iter();
        let Some(site) = described.find(|pool| pool.name == info.name) else {
            return Vec::new();
        };
        let names = |members: &[MemberInfo]| -> Vec<String> {
            members.iter().map(|member| member.name.clone()).collect()
        };
        let groups = info.groups.iter().filter_map(|group| {
            let known = site::Level::ALL.into_iter();
            let mut same = known.filter(|level| level.as_str() == group.level.to_string());
            Some(site::diff::ExistingGroup {
                index: group.index,
                level: same.next()?,
                drives: names(&group.members),
                leaves: group.leaving,
            })
        });
        let groups: Vec<_> = groups.collect();
        site::diff::pool(site, &groups, &names(&info.spares))
    }

    /// The shard that the pool called `name` is homed on.
    fn home(&self, pool: &str) -> Result<&ShardHandle, ArrayError> {
        let index = self
            .homes
            .get(pool)
            .ok_or_else(|| ArrayError::no_pool(pool))?;
        Ok(&self.shards[*index])
    }

    /// Does something to a pool, on its shard.
    async fn with_pool<T, F, Fut>(&self, pool: &str, visit: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState>, Pool<RealWorld>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + 'static,
    {
        let shard = self.home(pool)?;
        let name = pool.to_owned();
        let visit = move |state: Rc<ShardState>| async move {
            match state.pool(&name) {
                Some(pool) => visit(state, pool).await,
                None => Err(ArrayError::no_pool(&name)),
            }
        };
        shard.call(visit).await?
    }

    /// Makes one change to its end, after those before it.
    async fn change<T, F, Fut>(self: &Arc<Self>, change: F) -> Result<T, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Self>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ArrayError>> + Send + 'static,
    {
        let array = Arc::clone(self);
        let whole = tokio::spawn(async move {
            let _turn = array.change.lock().await;
            change(Arc::clone(&array)).await
        });
        match whole.await {
            Ok(outcome) => outcome,
            Err(error) => Err(ArrayError::new(
                ArrayErrorKind::Internal,
                format!("a change ended early: {error}"),
            )),
        }
    }

    // Whoever panicked with this lock held has left a whole map behind.
    fn export_map(&self) -> MutexGuard<'_, BTreeMap<String, Export>> {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
