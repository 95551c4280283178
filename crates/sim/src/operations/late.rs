//! A pool that opens late, while administrators ask for what needs no open pool.

use super::draw::Drawing;
use super::model::Model;
use super::{Books, Boot, RequestKind};
use array::control::ArrayError;
use base::Prng;
use engine::World;
use std::time::Duration;
use world_sim::SimWorld;

/// Among so many seeds with two pools one has such pools, and among its boots one.
const ONE_OF: u64 = 3;
const BOOT_ONE_OF: u64 = 2;

/// It opens so late at the most, milliseconds.
const LATE_MS_MAX: u64 = 20_000;

/// Requests meanwhile.
const REQUESTS_MAX: u64 = 2;

/// A request comes so long before or after the opening begins, microseconds: some come while it
/// goes on.
const BESIDE_US_MAX: u64 = 4_000;

/// What can't be settled is tried again after this, so often.
const AGAIN: Duration = Duration::from_secs(2);
const TRIES: u32 = 100;

/// Whether pools of a run may open late.
pub(super) fn are_drawn(prng: &Prng) -> bool {
    prng.stream("late pools").chance(1, ONE_OF)
}

impl Books {
    /// The pool that opens late in this boot.
    pub(super) fn late_pool(&self, world: &SimWorld, first: bool) -> Option<usize> {
        let prng = &mut world.prng("late pool");
        let may_be = self.pools_come_late && self.specs.len() > 1 && !first;
        let pool = prng.below(self.specs.len() as u64) as usize;
        (may_be && prng.chance(1, BOOT_ONE_OF)).then_some(pool)
    }
}

impl Boot {
    /// Opens the pool after a while, and has the array come to terms with it, as a server does.
    ///
    /// # Errors
    /// Why it can't be.
    pub(super) async fn open_late(&self, pool: usize) -> Result<(), String> {
        let (books, array) = (&self.books, &self.array);
        let name = &books.specs[pool].name;
        let mut prng = self.world.prng("late pool's time");
        let late_us = prng.below(LATE_MS_MAX) * 1_000;
        let ends = self.ask_meanwhile(&mut prng, late_us);
        self.world.sleep(Duration::from_micros(late_us)).await;
        let settings = array.settings();
        let homes = books
            .open_pool(&self.shards, &settings, pool, false)
            .await?;
        self.world.note(|| format!("pool {name} is open, late"));
        array.pool_is_open(name, homes, Vec::new());
        array.pool_is_settled(name, false);
        self.settle_in(name).await?;
        array.pool_is_settled(name, true);
        for end in ends {
            // Whoever drops it has said why.
            let _ = end.await;
        }
        self.repair_record().await;
        self.began_unix_s.set(array.runtime().unix_s());
        Ok(())
    }

    async fn settle_in(&self, name: &str) -> Result<(), String> {
        let mut wrong: Vec<ArrayError> = Vec::new();
        for _ in 0..TRIES {
            wrong = self.array.settle_late(name).await;
            wrong.extend(self.array.show_late().await);
            if wrong.is_empty() {
                return Ok(());
            }
            self.world
                .note(|| format!("pool {name} is tried again: {wrong:?}"));
            self.world.sleep(AGAIN).await;
        }
        Err(format!(
            "pool {name} is open, and does not settle in: {wrong:?}"
        ))
    }

    /// Administrators ask for something around the time at which the pool opens, or before.
    fn ask_meanwhile(
        &self,
        prng: &mut Prng,
        late_us: u64,
    ) -> Vec<futures_channel::oneshot::Receiver<()>> {
        let books = &self.books;
        let model: Model = books.model.borrow().clone();
        let pools: Vec<String> = books.specs.iter().map(|spec| spec.name.clone()).collect();
        let mut drawing = Drawing::new(prng, &model, &pools);
        let requests = (0..drawing.prng.between(0, REQUESTS_MAX)).map(|_| {
            let request = drawing.of(RequestKind::NoPool, &books.jobs.ended());
            let beside = drawing.prng.below(2 * BESIDE_US_MAX);
            let pause_us = match drawing.prng.chance(2, 3) {
                true => (late_us + beside).saturating_sub(BESIDE_US_MAX),
                false => drawing.prng.below(late_us + 1),
            };
            let number = books.ask(&request);
            self.begin(number, request, Duration::from_micros(pause_us))
        });
        requests.collect()
    }
}
