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

use super::{Array, ArrayError};
use crate::shard::space_reclaim::{Request, SpaceReclaim};
use crate::wall_clock::now_unix_s;
use base::Uuid;
use engine::Lane;
use engine::pool::PoolInfo;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use world_real::RealWorld;

/// How often to look whether something in the trash is to go.
const PAUSE: Duration = Duration::from_secs(1);

/// A pool that has not answered by then holds up no other.
const SOON: Duration = Duration::from_secs(15);

/// A pool with less than this part of it free needs what is in the trash.
const ROOM_PARTS: u64 = 50;

/// So much is room for any command: more than one command's data.
const ROOM_BYTES: u64 = 32 << 20;

/// What a look at the trash came to.
#[derive(Debug, Default)]
struct Outcome {
    /// Pools that something was deleted of.
    freed: BTreeSet<String>,
    /// Pools that need room, and had nothing to give.
    without: BTreeSet<String>,
}

impl Array {
    /// Deletes what has been in the trash for its time, or is in the way, from now on.
    pub(crate) async fn keep_trash(self: &Arc<Self>) -> Result<(), ArrayError> {
        let room = Arc::new(SpaceReclaim::default());
        for shard in &self.shards {
            let room = Arc::clone(&room);
            shard
                .call(move |state| async move { state.set_room(room) })
                .await?;
        }
        let array = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut said = String::new();
            loop {
                let requests = room.take();
                let Some(array) = array.upgrade() else { return };
                // What a pool has not freed by then it frees later.
                let _ = timeout(SOON, array.offload.expire(world_real::now())).await;
                if let Err(error) = array.give_way(requests).await
                    && error.context != said
                {
                    tracing::warn!("emptying the trash: {error}");
                    said = error.context;
                }
                drop(array);
                // Both ways of it end well: somebody asks, or nobody does.
                let _ = timeout(PAUSE, room.asked()).await;
            }
        });
        Ok(())
    }

    /// Deletes what is to go, and tells who found no room whether to try again.
    async fn give_way(self: &Arc<Self>, requests: Vec<Request>) -> Result<(), ArrayError> {
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
        let mut outcome = Outcome::default();
        let all = self.trash().await?;
        if all.is_empty() && in_need.is_empty() {
            return Ok(outcome);
        }
        let pools = self.pools().await?;
        let mut infos = pools.iter().map(|(_, info)| info);
        let full: BTreeSet<_> = infos
            .by_ref()
            .filter(|info| is_nearly_full(info, in_need.contains(&info.name)))
            .map(|info| info.name.clone())
            .collect();
        // Copies by token can be made again, in another way.
        for pool in in_need.intersection(&full) {
            let revoked = self.offload.revoke_pool(pool);
            if timeout(SOON, revoked).await.unwrap_or(false) {
                outcome.freed.insert(pool.clone());
            }
        }
        let stopped = |name: &String| {
            let mut infos = pools.iter().map(|(_, info)| info);
            infos.any(|info| info.name == *name && info.failure.is_some())
        };
        // Of a pool that does not answer, or says no, nothing more is asked in this round.
        let mut silent: BTreeSet<String> =
            pools.iter().map(|(_, info)| info.name.clone()).collect();
        silent.retain(|name| stopped(name) || self.turns.others_wait_for(name));
        let (now, kept_s) = (now_unix_s(), self.trash_kept().as_secs());
        for volume in all {
            let since = volume.about.trashed_unix_s.unwrap_or(0);
            let pool = volume.pool.clone();
            let why = if silent.contains(&pool) {
                continue;
            } else if since.saturating_add(kept_s) <= now {
                "its time is over"
            } else if full.contains(&pool) && !outcome.freed.contains(&pool) {
                // One of each pool at a time: it may be enough.
                "the pool has no room left"
            } else {
                continue;
            };
            match soon(&pool, self.delete_for_good(volume, Some(why))).await {
                true => outcome.freed.insert(pool),
                false => silent.insert(pool),
            };
        }
        for info in pools.iter().map(|(_, info)| info) {
            let is_short = in_need.contains(&info.name) && !outcome.freed.contains(&info.name);
            if is_short
                && !silent.contains(&info.name)
                && info.backed_bytes + info.backing_bytes > 0
            {
                let fill =
                    |_, pool: Lane<RealWorld>| async move { Ok(pool.free_backings().await?) };
                if soon(&info.name, self.with_pool(&info.name, fill)).await {
                    outcome.freed.insert(info.name.clone());
                }
            }
        }
        // What came back by itself since somebody found nothing is worth a try, too; how often
        // a command tries has an end.
        let has_some = |name: &String| {
            let mut infos = pools.iter().map(|(_, info)| info);
            infos.any(|info| info.name == *name && free_bytes(info) >= u64::from(info.page_bytes))
        };
        let had_nothing = full.difference(&outcome.freed);
        let without = had_nothing.filter(|name| !(in_need.contains(*name) && has_some(name)));
        outcome.without = without.cloned().collect();
        Ok(outcome)
    }
}

/// Whether a pool has done it, soon. What it has begun it goes on with by itself.
async fn soon(pool: &str, done: impl Future<Output = Result<(), ArrayError>>) -> bool {
    match timeout(SOON, done).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => tracing::warn!("pool {pool}, emptying the trash: {error}"),
        Err(_) => tracing::warn!("pool {pool}, emptying the trash: no answer after {SOON:?}"),
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

/// Whether a pool with so much free of so much gives what is in the trash.
pub(super) fn is_short(free_bytes: u64, capacity_bytes: u64) -> bool {
    free_bytes < capacity_bytes / ROOM_PARTS
}
