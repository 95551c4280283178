//! The log stamp up to which the sums of writes around the log are set in RAM.
//!
//! Such a write leaves an entry in the data log. The entry gets its stamp, becomes durable, and then
//! the sums are set. Blocks of sums carry the stamp up to which that is done. So a replay leaves alone
//! what went into them already: an entry that is gone from its log may have changed it since. Intents
//! do not count: a replay redoes all that are in their log, whatever the stamp is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The stamp up to which every write around the log has set its sums.
#[derive(Debug)]
pub struct Watermark {
    /// The last stamp that was given out.
    stamps: Rc<Cell<u64>>,
    /// Stamps that entries under way are above of, and how many of these there are.
    begun: RefCell<BTreeMap<u64, u32>>,
}

/// An entry that gets its stamp after this was made, and has its sums set when it goes.
#[derive(Debug)]
pub struct Begun {
    watermark: Rc<Watermark>,
    above: u64,
}

impl Watermark {
    /// Of rings that take their stamps from `stamps`.
    pub fn new(stamps: Rc<Cell<u64>>) -> Rc<Self> {
        Rc::new(Watermark {
            stamps,
            begun: RefCell::default(),
        })
    }

    /// An entry is about to be appended.
    pub fn begin(self: &Rc<Self>) -> Begun {
        self.begin_above(self.stamps.get())
    }

    /// Entries above that stamp are about to be done again.
    pub fn begin_above(self: &Rc<Self>, above: u64) -> Begun {
        *self.begun.borrow_mut().entry(above).or_default() += 1;
        Begun {
            watermark: Rc::clone(self),
            above,
        }
    }

    /// The stamp up to which all sums are set.
    pub fn up_to(&self) -> u64 {
        let begun = self.begun.borrow();
        begun
            .first_key_value()
            .map_or(self.stamps.get(), |(above, _)| *above)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut begun = self.watermark.begun.borrow_mut();
        if let Some(count) = begun.get_mut(&self.above) {
            *count -= 1;
            if *count == 0 {
                begun.remove(&self.above);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_below_what_is_under_way() {
        let stamps = Rc::new(Cell::new(7));
        let watermark = Watermark::new(Rc::clone(&stamps));
        assert_eq!(watermark.up_to(), 7);
        let first = watermark.begin();
        let second = watermark.begin();
        stamps.set(9);
        let third = watermark.begin();
        drop(first);
        assert_eq!(watermark.up_to(), 7);
        drop(second);
        assert_eq!(watermark.up_to(), 9);
        stamps.set(12);
        assert_eq!(watermark.up_to(), 9);
        drop(third);
        assert_eq!(watermark.up_to(), 12);
    }
}
