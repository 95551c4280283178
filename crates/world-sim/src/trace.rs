//! The trace of a run, as a running hash and, on demand, as lines for people.

use base::Time;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

type Listener = Rc<dyn Fn(Time, &str)>;

/// The trace of one world.
pub(super) struct Trace {
    hash: Cell<u64>,
    listener: RefCell<Option<Listener>>,
}

impl Trace {
    pub(super) fn new() -> Self {
        Trace {
            hash: Cell::new(0x9e37_79b9_7f4a_7c15),
            listener: RefCell::new(None),
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.get()
    }

    /// Mixes `value` in, so that the order of marks counts.
    pub(super) fn mark(&self, value: u64) {
        let mixed = (self.hash.get().rotate_left(23) ^ value).wrapping_mul(0x9fb2_1c65_1e98_df25);
        self.hash.set(mixed ^ (mixed >> 32));
    }

    pub(super) fn listen(&self, listener: impl Fn(Time, &str) + 'static) {
        *self.listener.borrow_mut() = Some(Rc::new(listener));
    }

    pub(super) fn note(&self, now: Time, line: impl FnOnce() -> String) {
        // Taken out of the cell: the line may come from code that notes as well.
        let listener = self.listener.borrow().clone();
        if let Some(listener) = listener {
            listener(now, &line());
        }
    }
}
