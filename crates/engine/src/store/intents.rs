//! Intents of stripes on their way, made durable together.
//!
//! Those that come while an entry is on its way to the intent log share the next one: a disk gets
//! one write for many stripes.
//!
//! Invariant: each waiter is answered, also when the pool stops. An entry is held until all its
//! stripes are settled.

use super::Store;
use super::change::Change;
use super::entry::{Intent, encode_intents};
use crate::error::PoolError;
use crate::ring::{Entry, Hold};
use crate::world::World;
use base::Slice;
use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// An intent that waits for its turn.
struct Waiting {
    intent: Intent,
    data: Vec<Slice>,
    bytes: usize,
    done: oneshot::Sender<Result<Option<Rc<Hold>>, PoolError>>,
}

/// The intents that wait.
#[derive(Default)]
pub(super) struct IntentQueue {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Entries are being appended.
    is_busy: Cell<bool>,
}

impl<W: World> Store<W> {
    /// Makes the intent of a change durable, and gives what holds it in the log.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub(super) async fn intend(
        self: &Rc<Self>,
        change: &Change<W>,
    ) -> Result<Option<Rc<Hold>>, PoolError> {
        let (done, intended) = oneshot::channel();
        self.intent_queue.waiting.borrow_mut().push_back(Waiting {
            intent: change.intent(),
            data: change.data().collect(),
            bytes: change.data_bytes(),
            done,
        });
        if !self.intent_queue.is_busy.replace(true) {
            let store = Rc::clone(self);
            self.world
                .spawn(async move { store.append_intents().await });
        }
        match intended.await {
            Ok(held) => held,
            Err(oneshot::Canceled) => unreachable!("every intent is answered"),
        }
    }

    /// Appends entries until no intent waits.
    async fn append_intents(&self) {
        loop {
            let together = self.take_intents();
            if together.is_empty() {
                self.intent_queue.is_busy.set(false);
                return;
            }
            if together.len() > 1 {
                self.world.reached("intents share an entry");
            }
            let appended = self.append_together(&together).await;
            for (at, waiting) in together.into_iter().enumerate() {
                let early = at > 0
                    && self
                        .world
                        .planted("shared intent let go with its first stripe");
                let held = match early {
                    true => appended.clone().map(|_| None),
                    false => appended.clone().map(Some),
                };
                // Who is gone gives the hold back by that.
                let _ = waiting.done.send(held);
            }
        }
    }

    /// The first of those that wait, as many as an entry takes.
    fn take_intents(&self) -> Vec<Waiting> {
        let most = self.entry_bytes_max(&self.intents);
        let mut waiting = self.intent_queue.waiting.borrow_mut();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(next) = waiting.front() {
            bytes += next.bytes;
            if bytes > most && !taken.is_empty() {
                break;
            }
            taken.extend(waiting.pop_front());
        }
        taken
    }

    async fn append_together(&self, together: &[Waiting]) -> Result<Rc<Hold>, PoolError> {
        let intents: Vec<&Intent> = together.iter().map(|waiting| &waiting.intent).collect();
        let data = together.iter().flat_map(|waiting| waiting.data.iter());
        self.log_intents(&intents, data.cloned()).await.map(Rc::new)
    }

    /// Makes `intents` durable as one entry of the intent log; `data` is that of their writes.
    ///
    /// # Errors
    /// When the pool has stopped, or stops now.
    pub(super) async fn log_intents(
        &self,
        intents: &[&Intent],
        data: impl Iterator<Item = Slice>,
    ) -> Result<Hold, PoolError> {
        let entry = Entry {
            head: encode_intents(intents.iter().copied()),
            data: data.collect(),
        };
        self.see_to_room(&self.intents);
        let appended = self.intents.append(entry).await;
        let appended = appended
            .map_err(|error| self.stop(format!("the intent log can't be written: {error}")))?;
        let mut last = self.last_intents.borrow_mut();
        for intent in intents {
            last.insert(intent.stripe, appended.stamp);
        }
        Ok(appended.hold)
    }
}
