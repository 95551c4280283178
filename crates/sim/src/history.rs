//! The history of a run of blocks, and the search for an order that explains it.
//!
//! A run of blocks that is always read and written as a whole is a register. Its operations
//! have a beginning and an end; the order that is looked for puts each at one instant
//! between both (Herlihy and Wing: linearizability). What got no answer, because the power
//! went or because it was aborted, may have happened or not.
//!
//! A copy puts into one register what another had at some instant between its beginning and
//! its end. Nobody is told what that was: it is one of the values that the other one's
//! history has room for ([`History::may_have_shown`]).

use base::SECTOR_BYTES;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

/// Sectors that hold a value, again and again.
pub(crate) fn filled(value: u64, sectors: u32) -> Vec<u8> {
    value
        .to_le_bytes()
        .repeat(sectors as usize * SECTOR_BYTES / 8)
}

/// The value that all of a sector holds; nothing, where it is torn.
pub(crate) fn value_of(bytes: &[u8]) -> Option<u64> {
    let first = u64::from_le_bytes(*bytes.first_chunk()?);
    let mut all = bytes.as_chunks::<8>().0.iter();
    all.all(|value| u64::from_le_bytes(*value) == first)
        .then_some(first)
}

/// Which register of which unit.
pub(crate) type RegisterPlace = (usize, usize);

/// Operations of one register that are looked at together, at most.
const OPERATIONS_MAX: usize = 64;

/// Of these, as many are for commands that are under way.
const ROOM: usize = 16;

/// What an operation does, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Read(u64),
    Write(u64),
    Or(u64),
    /// It found the expected, and wrote.
    Exchanged {
        expected: u64,
        new: u64,
    },
    /// It found something else.
    Differed {
        expected: u64,
    },
    /// It got no answer.
    Perhaps {
        expected: u64,
        new: u64,
    },
    /// It wrote what this register had.
    Copied(RegisterPlace),
    /// It wrote one of these.
    OneOf(Rc<[u64]>),
}

impl Deed {
    /// What is there after it, if it may happen where `now` is there.
    fn after(&self, now: u64) -> Option<u64> {
        match *self {
            Deed::Read(value) => (value == now).then_some(now),
            Deed::Write(value) => Some(value),
            Deed::Or(mask) => Some(now | mask),
            Deed::Exchanged { expected, new } => (expected == now).then_some(new),
            Deed::Differed { expected } => (expected != now).then_some(now),
            Deed::Perhaps { expected, new } => Some(if expected == now { new } else { now }),
            Deed::Copied(_) | Deed::OneOf(_) => None,
        }
    }

    /// What it may have written.
    fn written(&self) -> &[u64] {
        match self {
            Deed::Write(value)
            | Deed::Exchanged { new: value, .. }
            | Deed::Perhaps { new: value, .. } => std::slice::from_ref(value),
            Deed::OneOf(values) => values,
            _ => &[],
        }
    }
}

/// An operation. Times are counted in beginnings and ends; what one part of a
/// command does begins at the same one.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) deed: Deed,
    pub(crate) begun: u64,
    /// Later than all, while nothing is known of it.
    pub(crate) ended: u64,
    /// It may not have happened.
    pub(crate) is_doubtful: bool,
}

/// A register's past, as far as it matters.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// What may be there, before the operations.
    values: BTreeSet<u64>,
    operations: Vec<Operation>,
}

impl History {
    /// Nothing was ever written: zeroes.
    pub(crate) fn new() -> Self {
        History {
            values: BTreeSet::from([0]),
            operations: Vec::new(),
        }
    }

    /// An operation begins; its number.
    pub(crate) fn begin(&mut self, deed: Deed, now: u64) -> usize {
        self.operations.push(Operation {
            deed,
            begun: now,
            ended: u64::MAX,
            is_doubtful: true,
        });
        self.operations.len() - 1
    }

    /// It has ended, in this way.
    pub(crate) fn end(&mut self, number: usize, deed: Deed, now: u64) {
        let operation = &mut self.operations[number];
        (operation.deed, operation.ended) = (deed, now);
        operation.is_doubtful = false;
    }

    /// It will not be heard of again: if it has happened, then before now.
    pub(crate) fn abandon(&mut self, number: usize, now: u64) {
        self.operations[number].ended = now;
    }

    /// It was refused: nothing has happened.
    pub(crate) fn refuse(&mut self, number: usize) {
        // Its number stays taken: others have theirs.
        let operation = &mut self.operations[number];
        operation.deed = Deed::Perhaps {
            expected: 0,
            new: 0,
        };
        operation.ended = operation.begun;
    }

    /// It may have happened twice, if it has.
    pub(crate) fn repeat(&mut self, number: usize) {
        let mut again = self.operations[number].clone();
        let is_full = self.operations.len() + ROOM > OPERATIONS_MAX;
        if is_full || matches!(again.deed, Deed::Read(_) | Deed::Perhaps { .. }) {
            return;
        }
        again.is_doubtful = true;
        self.operations.push(again);
    }

    /// Whether there is room for the operations of another round.
    pub(crate) fn is_long(&self) -> bool {
        self.operations.len() * 2 > OPERATIONS_MAX
    }

    /// Nothing is under way: an order is looked for, and forgotten but for what may be
    /// there now.
    ///
    /// # Errors
    /// There is no such order.
    pub(crate) fn settle(&mut self, now: u64) -> Result<(), String> {
        for operation in &mut self.operations {
            operation.ended = operation.ended.min(now);
        }
        if self.operations.is_empty() {
            return Ok(());
        }
        let operations = std::mem::take(&mut self.operations);
        let found = explain(&self.values, &operations, None);
        if found.is_empty() {
            return Err(format!(
                "no order of {operations:?} explains them, from one of {:x?}",
                self.values
            ));
        }
        self.values = found;
        Ok(())
    }

    /// Copies into this register of which nobody has said yet what they may have written:
    /// their numbers, from where, their beginnings and ends.
    pub(crate) fn copies(&self) -> Vec<(usize, RegisterPlace, Range<u64>)> {
        let all = self.operations.iter().enumerate();
        let copies = all.filter_map(|(number, one)| match one.deed {
            Deed::Copied(from) => Some((number, from, one.begun..one.ended)),
            _ => None,
        });
        copies.collect()
    }

    /// A copy may have written one of these.
    pub(crate) fn resolve(&mut self, number: usize, values: Rc<[u64]>) {
        self.operations[number].deed = Deed::OneOf(values);
    }

    /// All that may ever have been there.
    pub(crate) fn all_values(&self) -> BTreeSet<u64> {
        let written = self.operations.iter().flat_map(|one| one.deed.written());
        self.values.iter().chain(written).copied().collect()
    }

    /// What a part of a command that began and ended so may have seen. What itself wrote
    /// here, it did not see.
    pub(crate) fn may_have_shown(&self, when: Range<u64>) -> BTreeSet<u64> {
        let mut operations = self.operations.clone();
        let mut own = operations.iter();
        let own = own.position(|one| one.begun == when.start);
        let probe = operations.len();
        if probe >= OPERATIONS_MAX {
            return self.all_values();
        }
        let mut values = self.all_values();
        operations.push(Operation {
            deed: Deed::Read(0),
            begun: when.start,
            ended: when.end,
            is_doubtful: false,
        });
        values.retain(|value| {
            operations[probe].deed = Deed::Read(*value);
            let order = own.map(|own| (probe, own));
            !explain(&self.values, &operations, order).is_empty()
        });
        values
    }
}

/// What may be there after all operations; nothing, where no order explains them. Of `order`
/// the first comes before the second.
fn explain(
    values: &BTreeSet<u64>,
    operations: &[Operation],
    order: Option<(usize, usize)>,
) -> BTreeSet<u64> {
    let mut search = Search {
        operations,
        order,
        seen: BTreeSet::new(),
        found: BTreeSet::new(),
    };
    for value in values {
        search.look(0, 0, *value);
    }
    search.found
}

struct Search<'a> {
    operations: &'a [Operation],
    /// The first of these comes before the second.
    order: Option<(usize, usize)>,
    /// What was done, and what was there then.
    seen: BTreeSet<(u64, u64)>,
    found: BTreeSet<u64>,
}

impl Search<'_> {
    /// Goes on where the operations of `done` have happened, the last to begin at `latest`,
    /// and `value` is there.
    fn look(&mut self, done: u64, latest: u64, value: u64) {
        if !self.seen.insert((done, value)) {
            return;
        }
        let all = self.operations.iter().enumerate();
        let left = |(number, _): &(usize, &Operation)| done & (1 << number) == 0;
        let left: Vec<(usize, &Operation)> = all.filter(left).collect();
        // What certainly happened comes before all that began after its end.
        let certain = left.iter().filter(|(_, one)| !one.is_doubtful);
        let Some(soonest) = certain.map(|(_, one)| one.ended).min() else {
            self.found.insert(value);
            return self.look_on(&left, (done, latest, value), u64::MAX);
        };
        self.look_on(&left, (done, latest, value), soonest);
    }

    fn look_on(
        &mut self,
        left: &[(usize, &Operation)],
        (done, latest, value): (u64, u64, u64),
        soonest: u64,
    ) {
        for (number, one) in left {
            // Not behind something that began when it had ended.
            if one.begun > soonest || one.ended < latest {
                continue;
            }
            let is_early =
                |(first, second): (usize, usize)| second == *number && done & (1 << first) == 0;
            if self.order.is_some_and(is_early) {
                continue;
            }
            let (done, latest) = (done | 1 << number, latest.max(one.begun));
            if let Deed::OneOf(values) = &one.deed {
                for after in values.iter() {
                    self.look(done, latest, *after);
                }
            }
            if let Some(after) = one.deed.after(value) {
                self.look(done, latest, after);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deeds with their beginnings and ends; those without an end are doubtful.
    fn history(values: &[u64], deeds: &[(Deed, u64, Option<u64>)]) -> History {
        let mut history = History {
            values: values.iter().copied().collect(),
            operations: Vec::new(),
        };
        for (deed, begun, ended) in deeds {
            let number = history.begin(deed.clone(), *begun);
            if let Some(ended) = ended {
                history.end(number, deed.clone(), *ended);
            }
        }
        history
    }

    fn settled(values: &[u64], deeds: &[(Deed, u64, Option<u64>)]) -> Option<Vec<u64>> {
        let mut history = history(values, deeds);
        history.settle(100).ok()?;
        Some(history.values.into_iter().collect())
    }

    #[test]
    fn what_is_one_after_the_other_has_one_order() {
        let deeds = [
            (Deed::Write(1), 0, Some(1)),
            (Deed::Read(1), 2, Some(3)),
            (Deed::Or(6), 4, Some(5)),
            (Deed::Read(7), 6, Some(7)),
        ];
        assert_eq!(settled(&[0], &deeds), Some(vec![7]));
        let stale = [(Deed::Write(1), 0, Some(1)), (Deed::Read(0), 2, Some(3))];
        assert_eq!(settled(&[0], &stale), None);
        assert_eq!(
            settled(&[0, 5], &[(Deed::Read(5), 0, Some(1))]),
            Some(vec![5])
        );
    }

    #[test]
    fn of_two_exchanges_of_the_same_one_succeeds() {
        let exchanged = |new| Deed::Exchanged { expected: 0, new };
        let differed = || Deed::Differed { expected: 0 };
        let both = [(exchanged(1), 0, Some(5)), (exchanged(2), 1, Some(6))];
        assert_eq!(settled(&[0], &both), None);
        let one = [(exchanged(1), 0, Some(5)), (differed(), 1, Some(6))];
        assert_eq!(settled(&[0], &one), Some(vec![1]));
        assert_eq!(settled(&[0], &[(differed(), 0, Some(1))]), None);
    }

    #[test]
    fn what_got_no_answer_may_have_happened_or_not_but_not_later() {
        let doubtful = || (Deed::Write(9), 0, None);
        assert_eq!(settled(&[0], &[doubtful()]), Some(vec![0, 9]));
        let seen = [doubtful(), (Deed::Read(9), 2, Some(3))];
        assert_eq!(settled(&[0], &seen), Some(vec![9]));
        let back = [
            doubtful(),
            (Deed::Read(9), 2, Some(3)),
            (Deed::Read(0), 4, Some(5)),
        ];
        assert_eq!(settled(&[0], &back), None);
        // Aborted: it has ended before the read began, which did not see it.
        let mut aborted = history(&[0], &[doubtful()]);
        aborted.abandon(0, 1);
        let read = aborted.begin(Deed::Read(0), 2);
        aborted.end(read, Deed::Read(0), 3);
        let late = aborted.begin(Deed::Read(9), 4);
        aborted.end(late, Deed::Read(9), 5);
        assert!(
            aborted.settle(9).is_err(),
            "it lands when it has been aborted"
        );
    }

    #[test]
    fn what_may_have_happened_twice_may_come_after_what_came_after_it() {
        let deeds = [
            (Deed::Write(1), 0, Some(9)),
            (Deed::Read(1), 1, Some(2)),
            (Deed::Write(2), 3, Some(4)),
        ];
        assert_eq!(settled(&[0], &deeds), Some(vec![2]));
        let mut past = history(&[0], &deeds);
        past.repeat(0);
        past.settle(100).unwrap();
        assert_eq!(past.values, BTreeSet::from([1, 2]));
    }

    #[test]
    fn what_was_refused_has_not_happened() {
        let mut refused = history(&[3], &[(Deed::Write(9), 0, None)]);
        refused.refuse(0);
        refused.settle(9).unwrap();
        assert_eq!(refused.values, BTreeSet::from([3]));
    }

    #[test]
    fn reads_at_once_with_a_write_see_either_but_not_the_old_after_the_new() {
        let write = || (Deed::Write(1), 0, Some(9));
        let reads = |first, second| {
            [
                write(),
                (Deed::Read(first), 1, Some(2)),
                (Deed::Read(second), 3, Some(4)),
            ]
        };
        assert_eq!(settled(&[0], &reads(0, 1)), Some(vec![1]));
        assert_eq!(settled(&[0], &reads(1, 1)), Some(vec![1]));
        assert_eq!(settled(&[0], &reads(1, 0)), None);
    }
    #[test]
    fn a_copy_shows_what_was_there_between_its_beginning_and_its_end() {
        let shown = |history: &History, when| {
            let values = history.may_have_shown(when).into_iter();
            values.collect::<Vec<u64>>()
        };
        let deeds = [
            (Deed::Write(1), 0, Some(1)),
            (Deed::Write(2), 3, Some(6)),
            (Deed::Write(3), 8, Some(9)),
        ];
        let past = history(&[0], &deeds);
        assert_eq!(shown(&past, 2..7), [1, 2]);
        assert_eq!(shown(&past, 4..5), [1, 2]);
        assert_eq!(shown(&past, 7..9), [2, 3]);
        assert_eq!(shown(&past, 10..11), [3]);
        let seen = [&deeds[..2], &[(Deed::Read(2), 4, Some(5))]].concat();
        assert_eq!(shown(&history(&[0], &seen), 6..7), [2], "once it was read");
    }

    #[test]
    fn what_a_copy_writes_itself_it_has_not_read() {
        let mut past = history(&[5], &[(Deed::Copied((0, 0)), 1, Some(9))]);
        assert_eq!(past.copies(), [(0, (0, 0), 1..9)]);
        past.resolve(0, Rc::from([7, 8]));
        let values: Vec<u64> = past.may_have_shown(1..9).into_iter().collect();
        assert_eq!(values, [5]);
        let mut later = past.clone();
        let read = later.begin(Deed::Read(8), 10);
        later.end(read, Deed::Read(8), 11);
        later.settle(12).unwrap();
        assert_eq!(later.values, BTreeSet::from([8]));
        let read = past.begin(Deed::Read(5), 10);
        past.end(read, Deed::Read(5), 11);
        assert!(past.settle(12).is_err(), "it was written over");
    }
}
