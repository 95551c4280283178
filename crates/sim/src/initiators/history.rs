//! What was done to a run of blocks, and whether some order of it explains all answers.
//!
//! A run of blocks that is always read and written as a whole is a register. Its operations
//! have a beginning and an end; the order that is looked for puts each at one instant
//! between both (Herlihy and Wing: linearizability). What got no answer, because the power
//! went or because it was aborted, may have happened or not.

use std::collections::BTreeSet;

/// Operations of one register that are looked at together, at most.
const OPERATIONS_MAX: usize = 64;

/// What an operation does, and what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
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
}

impl Deed {
    /// What is there after it, if it may happen where `now` is there.
    fn after(self, now: u64) -> Option<u64> {
        match self {
            Deed::Read(value) => (value == now).then_some(now),
            Deed::Write(value) => Some(value),
            Deed::Or(mask) => Some(now | mask),
            Deed::Exchanged { expected, new } => (expected == now).then_some(new),
            Deed::Differed { expected } => (expected != now).then_some(now),
            Deed::Perhaps { expected, new } => Some(if expected == now { new } else { now }),
        }
    }
}

/// An operation. Times are counted in beginnings and ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) deed: Deed,
    pub(super) begun: u64,
    /// Later than all, while nothing is known of it.
    pub(super) ended: u64,
    /// It may not have happened.
    pub(super) is_doubtful: bool,
}

/// A register's past, as far as it matters.
#[derive(Debug)]
pub(super) struct History {
    /// What may be there, before the operations.
    values: BTreeSet<u64>,
    operations: Vec<Operation>,
}

impl History {
    /// Nothing was ever written: zeroes.
    pub(super) fn new() -> Self {
        History {
            values: BTreeSet::from([0]),
            operations: Vec::new(),
        }
    }

    /// An operation begins; its number.
    pub(super) fn begin(&mut self, deed: Deed, now: u64) -> usize {
        self.operations.push(Operation {
            deed,
            begun: now,
            ended: u64::MAX,
            is_doubtful: true,
        });
        self.operations.len() - 1
    }

    /// It has ended, in this way.
    pub(super) fn end(&mut self, number: usize, deed: Deed, now: u64) {
        let operation = &mut self.operations[number];
        (operation.deed, operation.ended) = (deed, now);
        operation.is_doubtful = false;
    }

    /// It will not be heard of again: if it has happened, then before now.
    pub(super) fn abandon(&mut self, number: usize, now: u64) {
        self.operations[number].ended = now;
    }

    /// It was refused: nothing has happened.
    pub(super) fn refuse(&mut self, number: usize) {
        // Its number stays taken: others have theirs.
        let operation = &mut self.operations[number];
        operation.deed = Deed::Perhaps {
            expected: 0,
            new: 0,
        };
        operation.ended = operation.begun;
    }

    /// Whether there is room for the operations of another round.
    pub(super) fn is_long(&self) -> bool {
        self.operations.len() * 2 > OPERATIONS_MAX
    }

    /// Nothing is under way: an order is looked for, and forgotten but for what may be
    /// there now.
    ///
    /// # Errors
    /// There is no such order.
    pub(super) fn settle(&mut self, now: u64) -> Result<(), String> {
        for operation in &mut self.operations {
            operation.ended = operation.ended.min(now);
        }
        let operations = std::mem::take(&mut self.operations);
        let mut search = Search {
            operations: &operations,
            seen: BTreeSet::new(),
            found: BTreeSet::new(),
        };
        for value in &self.values {
            search.look(0, 0, *value);
        }
        if search.found.is_empty() {
            return Err(format!(
                "no order of {operations:?} explains them, from one of {:x?}",
                self.values
            ));
        }
        self.values = search.found;
        Ok(())
    }
}

struct Search<'a> {
    operations: &'a [Operation],
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
            if let Some(after) = one.deed.after(value) {
                self.look(done | 1 << number, latest.max(one.begun), after);
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
            let number = history.begin(*deed, *begun);
            if let Some(ended) = ended {
                history.end(number, *deed, *ended);
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
        let differed = Deed::Differed { expected: 0 };
        let both = [(exchanged(1), 0, Some(5)), (exchanged(2), 1, Some(6))];
        assert_eq!(settled(&[0], &both), None);
        let one = [(exchanged(1), 0, Some(5)), (differed, 1, Some(6))];
        assert_eq!(settled(&[0], &one), Some(vec![1]));
        assert_eq!(settled(&[0], &[(differed, 0, Some(1))]), None);
    }

    #[test]
    fn what_got_no_answer_may_have_happened_or_not_but_not_later() {
        let doubtful = (Deed::Write(9), 0, None);
        assert_eq!(settled(&[0], &[doubtful]), Some(vec![0, 9]));
        let seen = [doubtful, (Deed::Read(9), 2, Some(3))];
        assert_eq!(settled(&[0], &seen), Some(vec![9]));
        let back = [
            doubtful,
            (Deed::Read(9), 2, Some(3)),
            (Deed::Read(0), 4, Some(5)),
        ];
        assert_eq!(settled(&[0], &back), None);
        // Aborted: it has ended before the read began, which did not see it.
        let mut aborted = history(&[0], &[doubtful]);
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
    fn what_was_refused_has_not_happened() {
        let mut refused = history(&[3], &[(Deed::Write(9), 0, None)]);
        refused.refuse(0);
        refused.settle(9).unwrap();
        assert_eq!(refused.values, BTreeSet::from([3]));
    }

    #[test]
    fn reads_at_once_with_a_write_see_either_but_not_the_old_after_the_new() {
        let write = (Deed::Write(1), 0, Some(9));
        let reads = |first, second| {
            [
                write,
                (Deed::Read(first), 1, Some(2)),
                (Deed::Read(second), 3, Some(4)),
            ]
        };
        assert_eq!(settled(&[0], &reads(0, 1)), Some(vec![1]));
        assert_eq!(settled(&[0], &reads(1, 1)), Some(vec![1]));
        assert_eq!(settled(&[0], &reads(1, 0)), None);
    }
}
