//! Asks all shards at once, and goes on without those that do not answer.
//!
//! Invariants:
//! - The asking ends in bounded time, whatever a shard does.
//! - Questions do not pile up at a silent shard: it is asked again once it answers.

use super::{ArrayError, ControlPlane, Runtime};
use crate::shard::{ShardHandle, ShardState};
use engine::World;
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A shard has so long to answer what is asked again soon.
const AGAIN_SOON: Duration = Duration::from_secs(1);

/// The same where there is no later.
const AT_LAST: Duration = Duration::from_secs(10);

/// The shards that were silent when they were asked, by index; each with a question that is
/// answered once the shard answers anything.
#[derive(Debug, Default)]
pub(super) struct Silent(Mutex<BTreeMap<usize, Arc<AtomicBool>>>);

impl Silent {
    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<AtomicBool>>> {
        // A map is whole after each step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a shard has been silent since it was asked.
    fn is_still(&self, shard: usize) -> bool {
        let mut all = self.all();
        all.retain(|_, question| !question.load(Relaxed));
        all.contains_key(&shard)
    }

    fn note<W: World>(&self, runtime: &dyn Runtime, shard: &ShardHandle<W>) {
        let (index, asked) = (shard.index(), shard.clone());
        let answered = Arc::new(AtomicBool::new(false));
        let question = Arc::clone(&answered);
        let ask = async move {
            // One that has stopped says so when it is asked again.
            let _ = asked.call(|_| async {}).await;
            answered.store(true, Relaxed);
        };
        runtime.spawn(ask.boxed());
        self.all().entry(index).or_insert(question);
    }
}

impl<W: World> ControlPlane<W> {
    /// What each shard says when `visit` asks it, by index; nothing of one that is silent. One has
    /// longer to answer when this `is_last`: nobody asks again.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn ask_all<T, F, Fut>(
        &self,
        is_last: bool,
        visit: impl Fn(usize) -> F,
    ) -> Result<Vec<(usize, Option<T>)>, ArrayError>
    where
        T: Send + 'static,
        F: FnOnce(Rc<ShardState<W>>) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        let patience = if is_last { AT_LAST } else { AGAIN_SOON };
        let ask = |shard: &ShardHandle<W>| {
            let (shard, visit) = (shard.clone(), visit(shard.index()));
            async move {
                let index = shard.index();
                if !is_last && self.hearsay.silent.is_still(index) {
                    return Ok((index, None));
                }
                match self.runtime.in_time(patience, shard.call(visit)).await {
                    Some(said) => Ok((index, Some(said?))),
                    None => {
                        self.hearsay.silent.note(&*self.runtime, &shard);
                        Ok((index, None))
                    }
                }
            }
        };
        let answers = join_all(self.shards.iter().map(ask)).await;
        answers.into_iter().collect()
    }
}
