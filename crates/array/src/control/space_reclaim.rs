//! Frees space of the trash when its time is over, or when a write finds no room.
//!
//! A write that finds no room also waits for pages that are not whole yet to become whole, and so
//! to free the pages behind them.
//!
//! Invariants:
//! - What is in the trash goes when its time is over, or when its pool has no room left:
//!   then the oldest goes first, one at a time, and an event tells.
//! - A host's write that finds no room is not refused before the tokens of that pool are
//!   revoked, its trash is empty and every page whole, unless that takes too long.
//! - A pool that has stopped, or does not answer, holds up the trash of no other.

use super::{ArrayError, ControlPlane, PlacedVolume, Runtime};
use crate::pool::is_short;
use crate::shard::space_reclaim::{Request, SpaceReclaim};
use base::Uuid;
use engine::World;
use engine::pool::PoolInfo;
use futures_util::FutureExt;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How often to look whether something in the trash is to go.
const PAUSE: Duration = Duration::from_secs(1);

/// A pool that has not answered by then holds up no other.
const SOON: Duration = Duration::from_secs(15);

/// So much is room for any command: more than one command's data.
const ROOM_BYTES: u64 = 32 << 20;

/// What a look at the trash came to.
#[derive(Debug, Default)]
struct Outcome {
    /// Pools that need room, and had nothing to give.
    without: BTreeSet<String>,
}

/// A look at the trash, under way: names of pools.
struct Round {
    /// Those that need what is in the trash.
    full: BTreeSet<String>,
    /// They do not answer, or say no: nothing more is asked of them in this round.
    silent: BTreeSet<String>,
    /// Something was deleted of them.
    freed: BTreeSet<String>,
}

impl<W: World> ControlPlane<W> {
    /// Deletes what has been in the trash for its time, or is in the way, from now on.
    pub async fn keep_trash(self: &Arc<Self>) -> Result<(), ArrayError> {
        let reclaim = Arc::new(SpaceReclaim::default());
        for shard in &self.shards {
            let reclaim = Arc::clone(&reclaim);
            shard
                .call(move |state| async move { state.set_space_reclaim(reclaim) })
                .await?;
        }
        let array = Arc::downgrade(self);
        let runtime = Arc::clone(&self.runtime);
        let keep = async move {
            let mut said = String::new();
            loop {
                let requests = reclaim.take();
                let Some(array) = array.upgrade() else { return };
                // What a pool has not freed by then it frees later.
                let _ = runtime
                    .in_time(SOON, array.offload.expire(runtime.now()))
                    .await;
                if let Err(error) = array.reclaim(requests).await
                    && error.context != said
                {
                    tracing::warn!("emptying the trash: {error}");
                    said = error.context;
                }
                drop(array);
                // Both ways of it end well: somebody asks, or nobody does.
                let _ = runtime.in_time(PAUSE, reclaim.asked()).await;
            }
        };
        self.runtime.spawn(keep.boxed());
        Ok(())
    }

    /// Deletes what is to go, and tells who found no room whether to try again.
    async fn reclaim(self: &Arc<Self>, requests: Vec<Request>) -> Result<(), ArrayError> {
        let asked: BTreeSet<Uuid> = requests.iter().map(Request::volume).collect();
        let mut in_need = BTreeSet::new();
        if !asked.is_empty() {
            let volumes = self.volumes().await?.into_iter();
            let of = volumes.filter(|volume| asked.contains(&volume.info.uuid));
            let of: Vec<_> = of.map(|volume| (volume.info.uuid, volume.pool)).collect();
            in_need.extend(of.iter().map(|(_, pool)| pool.clone()));
            let outcome = self.let_go(&in_need).await?;
            for request in requests {
                let pool = of.iter().find(|(uuid, _)| *uuid == request.volume());
                request.answer(pool.is_some_and(|(_, pool)| !outcome.without.contains(pool)));
            }
            return Ok(());
        }
        self.let_go(&in_need).await.map(drop)
    }

    /// Deletes what is to go. Of pools `in_need` somebody was refused a page: what is free
    /// there is not enough, if it isn't much.
    async fn let_go(self: &Arc<Self>, in_need: &BTreeSet<String>) -> Result<Outcome, ArrayError> {
        let all = self.trash().await?;
        if all.is_empty() && in_need.is_empty() {
            return Ok(Outcome::default());
        }
        let infos: Vec<PoolInfo> = self
            .pools()
            .await?
            .into_iter()
            .map(|(_, info)| info)
            .collect();
        let mut round = Round {
            full: names_of(&infos, |info| {
                is_nearly_full(info, in_need.contains(&info.name))
            }),
            silent: names_of(&infos, |info| {
                info.failure.is_some() || self.turns.others_wait_for(&info.name)
            }),
            freed: BTreeSet::new(),
        };
        self.revoke_tokens(in_need, &mut round).await;
        self.empty_what_is_due(all, &mut round).await;
        self.free_what_is_behind(&infos, in_need, &mut round).await;
        // What came back by itself since somebody found nothing is worth a try, too; how often
        // a command tries has an end.
        let have_some = names_of(&infos, |info| {
            free_bytes(info) >= u64::from(info.page_bytes)
        });
        let had_nothing = round.full.difference(&round.freed);
        let without =
            had_nothing.filter(|name| !(in_need.contains(*name) && have_some.contains(*name)));
        Ok(Outcome {
            without: without.cloned().collect(),
        })
    }

    /// Revokes tokens of full pools in need: copies by them can be made again, in another way.
    async fn revoke_tokens(&self, in_need: &BTreeSet<String>, round: &mut Round) {
        for pool in in_need.intersection(&round.full) {
            let revoked = self.offload.revoke_pool(pool);
            if self.runtime.in_time(SOON, revoked).await.unwrap_or(false) {
                round.freed.insert(pool.clone());
            }
        }
    }

    /// Deletes what has been in the trash for its time, and of full pools one volume.
    async fn empty_what_is_due(self: &Arc<Self>, trash: Vec<PlacedVolume>, round: &mut Round) {
        let now = self.unix_s();
        let kept_s = match self.runtime.planted("trash emptied before its time") {
            true => self.trash_kept().as_secs() / 2,
            false => self.trash_kept().as_secs(),
        };
        for volume in trash {
            let since = volume.properties.trashed_unix_s.unwrap_or(0);
            let pool = volume.pool.clone();
            let why = if round.silent.contains(&pool) {
                continue;
            } else if since.saturating_add(kept_s) <= now {
                "its time is over"
            } else if round.full.contains(&pool) && !round.freed.contains(&pool) {
                // One of each pool at a time: it may be enough.
                "the pool has no room left"
            } else {
                continue;
            };
            let gone = self.delete_for_good(volume, Some(why));
            match soon(&*self.runtime, &pool, gone).await {
                true => round.freed.insert(pool),
                false => round.silent.insert(pool),
            };
        }
    }

    /// Has pages of pools in need that nothing else has freed become whole.
    async fn free_what_is_behind(
        &self,
        infos: &[PoolInfo],
        in_need: &BTreeSet<String>,
        round: &mut Round,
    ) {
        for info in infos {
            let is_short = in_need.contains(&info.name) && !round.freed.contains(&info.name);
            let has_some = info.backed_bytes + info.backing_bytes > 0;
            if is_short && has_some && !round.silent.contains(&info.name) {
                let fill = async { self.pool_of(&info.name)?.free_backings().await };
                if soon(&*self.runtime, &info.name, fill).await {
                    round.freed.insert(info.name.clone());
                }
            }
        }
    }
}

fn names_of(infos: &[PoolInfo], is_so: impl Fn(&PoolInfo) -> bool) -> BTreeSet<String> {
    let those = infos.iter().filter(|info| is_so(info));
    those.map(|info| info.name.clone()).collect()
}

/// Whether a pool has done it, soon. What it has begun it goes on with by itself.
async fn soon(
    runtime: &dyn Runtime,
    pool: &str,
    done: impl Future<Output = Result<(), ArrayError>>,
) -> bool {
    match runtime.in_time(SOON, done).await {
        Some(Ok(())) => return true,
        Some(Err(error)) => tracing::warn!("pool {pool}, emptying the trash: {error}"),
        None => tracing::warn!("pool {pool}, emptying the trash: no answer after {SOON:?}"),
    }
    false
}

fn free_bytes(info: &PoolInfo) -> u64 {
    let taken = info.mapped_bytes + info.promised_bytes;
    info.capacity_bytes.saturating_sub(taken)
}

fn is_nearly_full(info: &PoolInfo, in_need: bool) -> bool {
    let free = free_bytes(info);
    is_short(free, info.capacity_bytes) || in_need && free < ROOM_BYTES
}
