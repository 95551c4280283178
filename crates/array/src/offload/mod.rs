//! Copies that initiators have the array make, over shards.
//!
//! - [`Offload`]: which tokens there are, for all shards, and where their data is kept.
//! - `copier`: what one session can reach, for [`scsi::offload`].
//! - `reach`: the volumes that copies reach, for whoever takes them away.
//!
//! Invariants:
//! - What a token stands for is kept on the shard of its lane; everybody else reaches it by
//!   a message.
//! - Tokens are of one start of the server: the next one knows none of them, and deletes
//!   what was kept for them.
//! - Who needs the room that tokens keep gets it: they are revoked.

mod copier;
mod reach;

pub use copier::SessionCopier;

use crate::shard::{ShardGone, ShardHandle, ShardState};
use base::{Time, Uuid};
use engine::World;
use event_listener::Event;
use reach::Reaches;
use scsi::offload::{HeldData, Limits, Tokens};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes that nobody can guess, for the tokens of one start.
pub const SECRET_BYTES: usize = 40;

/// A lane, and the shard that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LaneHome {
    shard: usize,
    pool: String,
    lane: u16,
}

/// Tokens, and where their data is kept. Shared by all shards.
pub struct Offload<W: World> {
    shards: OnceLock<Vec<ShardHandle<W>>>,
    state: Mutex<State>,
    /// A copy has left a volume.
    left: Event,
}

struct State {
    /// `None` where there is no secret to make any with.
    tokens: Option<Tokens>,
    /// The volumes that keep data for tokens.
    holders: BTreeMap<Uuid, LaneHome>,
    reaches: Reaches,
}

impl<W: World> fmt::Debug for Offload<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What tokens are made with is nobody's business.
        f.debug_struct("Offload").finish_non_exhaustive()
    }
}

impl<W: World> Offload<W> {
    /// No tokens yet. They are made with `secret`, bytes that nobody can guess; without it there
    /// are none. There are as many as `limits` allow.
    pub fn new(secret: Option<[u8; SECRET_BYTES]>, limits: Limits) -> Self {
        Offload {
            shards: OnceLock::new(),
            state: Mutex::new(State {
                tokens: secret.map(|secret| Tokens::new(&secret, limits)),
                holders: BTreeMap::new(),
                reaches: Reaches::default(),
            }),
            left: Event::new(),
        }
    }

    /// The shards, in the order of their indices; for good.
    pub fn set_shards(&self, shards: &[ShardHandle<W>]) {
        self.shards.get_or_init(|| shards.to_vec());
    }

    fn shards(&self) -> &[ShardHandle<W>] {
        self.shards.get().map_or(&[], Vec::as_slice)
    }

    /// Has `with` look at the tokens. `false` when there is no secret to make any.
    fn with_tokens(&self, with: &mut dyn FnMut(&mut Tokens)) -> bool {
        match &mut self.state().tokens {
            Some(tokens) => {
                with(tokens);
                true
            }
            None => false,
        }
    }

    /// What the tokens that `which` ends stood for. Nothing when there never was one.
    fn end(&self, which: impl FnOnce(&mut Tokens) -> Vec<HeldData>) -> Vec<HeldData> {
        self.state().tokens.as_mut().map(which).unwrap_or_default()
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        self.state().tokens.as_ref().map_or(0, Tokens::len)
    }

    /// What this token stands for, while it is one.
    pub fn held(&self, token: &[u8]) -> Option<HeldData> {
        self.state().tokens.as_ref()?.held(token)
    }

    /// Ends the tokens whose time is over at `now`, by the clock of the world.
    pub async fn expire(&self, now: Time) {
        self.let_go(self.end(|tokens| tokens.expire(now))).await;
    }

    /// Ends the tokens that were made of this volume: it is deleted, or not shown any more.
    pub async fn revoke_volume(&self, volume: Uuid) {
        self.let_go(self.end(|tokens| tokens.revoke_source(volume)))
            .await;
    }

    /// Ends the tokens whose data is in this pool. Whether there was one.
    pub async fn revoke_pool(&self, pool: &str) -> bool {
        let holders: Vec<Uuid> = {
            let state = self.state();
            let of = state.holders.iter().filter(|(_, place)| place.pool == pool);
            of.map(|(holder, _)| *holder).collect()
        };
        let revoke = |tokens: &mut Tokens| {
            let held = holders.iter();
            held.flat_map(|holder| tokens.revoke_holder(*holder))
                .collect()
        };
        let held = self.end(revoke);
        let some = !held.is_empty();
        self.let_go(held).await;
        some
    }

    /// Deletes what earlier starts have kept for their tokens, in this pool only where one is
    /// named.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn forget_leftovers(
        &self,
        shards: &[ShardHandle<W>],
        only: Option<&str>,
    ) -> Result<(), ShardGone> {
        for shard in shards {
            let only = only.map(str::to_owned);
            let forget = |state: Rc<ShardState<W>>| async move {
                let mut pools = state.pools();
                pools.retain(|pool| only.as_ref().is_none_or(|only| pool.name() == only));
                if state
                    .world()
                    .planted("what tokens of before kept stays at the start")
                {
                    return;
                }
                for pool in pools {
                    if let Err(error) = state.holder(&pool).forget_leftovers().await {
                        tracing::warn!(
                            "what was kept for copies stays until the next start: {error}"
                        );
                    }
                }
            };
            shard.call(forget).await?;
        }
        Ok(())
    }

    /// Frees what was kept, and ends when it is free.
    async fn let_go(&self, held: Vec<HeldData>) {
        for held in held {
            let Some((place, shard)) = self.place(held.holder) else {
                continue;
            };
            let holder = held.holder;
            let release = move |state: Rc<ShardState<W>>| async move {
                release_on(&state, &place, held).await
            };
            // With the shard went what it kept.
            if shard.call(release).await.unwrap_or(true) {
                self.forget(holder);
            }
        }
    }

    fn place(&self, holder: Uuid) -> Option<(LaneHome, ShardHandle<W>)> {
        let place = self.state().holders.get(&holder)?.clone();
        let shard = self.shards().get(place.shard)?.clone();
        Some((place, shard))
    }

    fn keep(&self, holder: Uuid, place: LaneHome) {
        self.state().holders.insert(holder, place);
    }

    fn forget(&self, holder: Uuid) {
        self.state().holders.remove(&holder);
    }

    // Whoever panicked with this lock held has left whole maps behind.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees what was kept in a lane of this shard. Whether the volume that kept it is gone.
async fn release_on<W: World>(state: &ShardState<W>, place: &LaneHome, held: HeldData) -> bool {
    let Some(pool) = state.lane(&place.pool, place.lane) else {
        return true;
    };
    let uuid = held.holder;
    if state.world().planted("data of a token that is over stays") {
        return true;
    }
    state.holder(&pool).release(held).await;
    pool.volume_of(uuid).is_none()
}
