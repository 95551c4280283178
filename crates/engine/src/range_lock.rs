//! Locks on ranges of addresses, shared or exclusive, granted in order of arrival.
//!
//! One request may be for two ranges, which are granted together.
//!
//! Invariants: no two granted ranges overlap unless both are shared, and a range
//! never overtakes an earlier one that it conflicts with, so nobody starves.

use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[derive(Debug, Default)]
struct Table {
    entries: RefCell<Vec<Entry>>,
    /// How many of them wait.
    waiting: Cell<usize>,
    next_id: Cell<u64>,
}

/// A range that somebody holds or wants.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    exclusive: bool,
}

/// One range, or two that are granted together.
type Ranges = (Range, Option<Range>);

#[derive(Debug)]
struct Entry {
    id: u64,
    ranges: Ranges,
    /// Present while it waits.
    grant: Option<oneshot::Sender<Guard>>,
}

impl Range {
    fn conflicts(&self, other: &Range) -> bool {
        self.start < other.end && other.start < self.end && (self.exclusive || other.exclusive)
    }
}

impl Entry {
    fn conflicts(&self, (first, second): &Ranges) -> bool {
        let own = |range: &Range| {
            range.conflicts(first)
                || second
                    .as_ref()
                    .is_some_and(|second| range.conflicts(second))
        };
        own(&self.ranges.0) || self.ranges.1.as_ref().is_some_and(own)
    }
}

/// A set of locked ranges. Few are held at once (a queue depth's worth), so a scan
/// beats a tree.
#[derive(Debug, Default)]
pub struct RangeLock {
    table: Rc<Table>,
}

/// A granted range; dropping it lets the next in.
#[derive(Debug)]
pub struct Guard {
    table: Rc<Table>,
    id: u64,
}

impl RangeLock {
    /// Holds `start..end` together with other shared holders.
    pub async fn shared(&self, start: u64, end: u64) -> Guard {
        let range = Range {
            start,
            end,
            exclusive: false,
        };
        self.acquire((range, None)).await
    }

    /// Holds `start..end` alone, once no other holder is left.
    pub async fn exclusive(&self, start: u64, end: u64) -> Guard {
        let range = Range {
            start,
            end,
            exclusive: true,
        };
        self.acquire((range, None)).await
    }

    /// Holds `read` together with other shared holders, and `written` alone, both from the
    /// same moment on: one after the other, somebody who wants both would be waited for by
    /// us and wait for us. They may overlap.
    pub async fn both(&self, read: (u64, u64), written: (u64, u64)) -> Guard {
        let range = |(start, end), exclusive| Range {
            start,
            end,
            exclusive,
        };
        self.acquire((range(read, false), Some(range(written, true))))
            .await
    }

    async fn acquire(&self, ranges: Ranges) -> Guard {
        for range in [Some(ranges.0), ranges.1].into_iter().flatten() {
            let Range { start, end, .. } = range;
            assert!(start < end, "an empty range {start}..{end}");
        }
        let id = self.table.next_id.get();
        self.table.next_id.set(id + 1);
        let waits = {
            let mut entries = self.table.entries.borrow_mut();
            let blocked = entries.iter().any(|held| held.conflicts(&ranges));
            let (grant, granted) = match blocked {
                true => {
                    let (grant, granted) = oneshot::channel();
                    self.table.waiting.set(self.table.waiting.get() + 1);
                    (Some(grant), Some(granted))
                }
                false => (None, None),
            };
            entries.push(Entry { id, ranges, grant });
            granted
        };
        match waits {
            None => Guard {
                table: Rc::clone(&self.table),
                id,
            },
            Some(granted) => match granted.await {
                Ok(guard) => guard,
                Err(oneshot::Canceled) => unreachable!("an entry leaves only when it is granted"),
            },
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut granted = Vec::new();
        {
            let mut entries = self.table.entries.borrow_mut();
            let own = entries.iter().position(|held| held.id == self.id);
            if self.table.waiting.get() == 0 {
                // Among those that are granted there is no order to keep.
                own.map(|at| entries.swap_remove(at));
                return;
            }
            own.map(|at| entries.remove(at));
            for at in 0..entries.len() {
                let (earlier, rest) = entries.split_at_mut(at);
                let entry = &mut rest[0];
                let ranges = entry.ranges;
                if entry.grant.is_some() && !earlier.iter().any(|held| held.conflicts(&ranges)) {
                    granted.extend(entry.grant.take().map(|grant| (grant, entry.id)));
                }
            }
        }
        let waiting = self.table.waiting.get() - granted.len();
        self.table.waiting.set(waiting);
        for (grant, id) in granted {
            // A waiter that is gone drops its guard here, which lets the next in.
            drop(grant.send(Guard {
                table: Rc::clone(&self.table),
                id,
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn readers_share_and_a_writer_waits_its_turn() {
        let lock = RangeLock::default();
        let a = lock.shared(0, 10).now_or_never().unwrap();
        let b = lock.shared(5, 15).now_or_never().unwrap();
        let mut writer = Box::pin(lock.exclusive(8, 9));
        assert!(writer.as_mut().now_or_never().is_none());
        let mut late = Box::pin(lock.shared(0, 20));
        assert!(
            late.as_mut().now_or_never().is_none(),
            "nobody overtakes a waiting writer"
        );
        assert!(
            lock.exclusive(15, 16).now_or_never().is_none(),
            "not even by way of the reader"
        );
        drop(a);
        assert!(writer.as_mut().now_or_never().is_none());
        drop(b);
        let held = writer.now_or_never().unwrap();
        assert!(late.as_mut().now_or_never().is_none());
        drop(held);
        assert!(late.now_or_never().is_some());
    }

    #[test]
    fn a_waiter_that_goes_away_blocks_nobody() {
        let lock = RangeLock::default();
        let held = lock.exclusive(0, 10).now_or_never().unwrap();
        let mut gone = Box::pin(lock.exclusive(0, 10));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(gone);
        let mut next = Box::pin(lock.exclusive(0, 10));
        assert!(next.as_mut().now_or_never().is_none());
        drop(held);
        assert!(next.now_or_never().is_some());
    }
}
