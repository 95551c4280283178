//! The threads of a closed network in real time: which of them has an operation to do, and when.
//!
//! ```text
//! think ─► a connection ─► work ─► due ─► under way ─► due ─► … ─► (a commit) ─► think
//! ```
//!
//! Invariants: a thread is at one place of that walk, so it has one operation under way at most; no
//! more of them have a connection than there are, and those that wait get one in the order of their
//! coming. The work of a transaction is waited for: this machine is not the server whose load it is.
//! A transaction that an operation failed in goes on to its end, and was none.

use base::Time;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use workload::threads::{Thread, Threads};

/// The threads of a stream.
pub struct Network {
    threads: Vec<Walker>,
    /// When threads go on that think, work, or have an operation due.
    goes_on: BinaryHeap<Reverse<(Time, usize)>>,
    connections: usize,
    /// Threads that wait for a connection.
    waiting: VecDeque<usize>,
}

struct Walker {
    thread: Thread,
    /// When its transaction began: the end of its think time.
    began: Time,
    /// Operations that it has to do yet; none while it thinks.
    left: u32,
    /// Whether an operation of its transaction has failed.
    failed: bool,
}

impl Network {
    /// Threads of `stream` of the VM called `vm`, which all think first.
    pub fn new(threads: Threads, (vm, stream): (&str, &str), seed: u64) -> Network {
        let mut network = Network {
            threads: Vec::with_capacity(threads.count),
            goes_on: BinaryHeap::new(),
            connections: threads.outstanding_max(),
            waiting: VecDeque::new(),
        };
        for number in 0..threads.count {
            let mut thread = Thread::new(threads, (vm, stream), number, seed);
            let began = Time(0) + thread.think();
            network.goes_on.push(Reverse((began, number)));
            network.threads.push(Walker {
                thread,
                began,
                left: 0,
                failed: false,
            });
        }
        network
    }

    /// When a thread goes on, if any does by itself.
    pub fn next(&self) -> Option<Time> {
        self.goes_on.peek().map(|Reverse((at, _))| *at)
    }

    /// A thread that has an operation to do by `now`, and since when. It is under way from then on.
    pub fn take_due(&mut self, now: Time) -> Option<(usize, Time)> {
        loop {
            let Reverse((at, number)) = *self.goes_on.peek().filter(|first| first.0.0 <= now)?;
            self.goes_on.pop();
            if self.threads[number].left > 0 {
                return Some((number, at));
            }
            self.threads[number].began = at;
            match self.connections > 0 {
                true => {
                    self.connections -= 1;
                    self.connected(number, at);
                }
                false => self.waiting.push_back(number),
            }
        }
    }

    /// A thread has a connection from `at` on, and works.
    fn connected(&mut self, number: usize, at: Time) {
        let walker = &mut self.threads[number];
        let transaction = walker.thread.transaction();
        (walker.left, walker.failed) = (transaction.operations, false);
        self.goes_on.push(Reverse((at + transaction.work, number)));
    }

    /// An operation of a thread has ended, well or not; whether it was the last of its transaction.
    pub fn ended(&mut self, number: usize, now: Time, went_well: bool) -> bool {
        let walker = &mut self.threads[number];
        walker.failed |= !went_well;
        walker.left = walker.left.saturating_sub(1);
        let is_last = walker.left == 0;
        if !is_last {
            self.goes_on.push(Reverse((now, number)));
        }
        is_last
    }

    /// A thread's transaction has ended, its last operation well or not, and it thinks. When the
    /// transaction had begun, if all of it went well.
    pub fn think(&mut self, number: usize, now: Time, went_well: bool) -> Option<Time> {
        match self.waiting.pop_front() {
            Some(first) => self.connected(first, now),
            None => self.connections += 1,
        }
        let walker = &mut self.threads[number];
        let again = now + walker.thread.think();
        self.goes_on.push(Reverse((again, number)));
        (went_well && !walker.failed).then_some(walker.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    /// Operations take 3 ms each: the most under way at a time, the most of a thread, and the
    /// transactions of ten seconds.
    fn walk(threads: Threads) -> (usize, usize, usize) {
        let mut network = Network::new(threads, ("VM", "all"), 5);
        let mut under_way: VecDeque<(Time, usize)> = VecDeque::new();
        let (mut most, mut of_one, mut transactions) = (0, 0, 0);
        let mut now = Time(0);
        while now < Time(0) + MS * 10_000 {
            while let Some((number, due)) = network.take_due(now) {
                assert!(due <= now);
                under_way.push_back((now + MS * 3, number));
                let same = under_way.iter().filter(|(_, other)| *other == number);
                of_one = of_one.max(same.count());
            }
            most = most.max(under_way.len());
            while under_way.front().is_some_and(|(end, _)| *end <= now) {
                let Some((_, number)) = under_way.pop_front() else {
                    break;
                };
                if network.ended(number, now, true) {
                    assert!(network.think(number, now, true).unwrap() <= now);
                    transactions += 1;
                }
            }
            now = now + MS / 10;
        }
        (most, of_one, transactions)
    }

    #[test]
    fn a_transaction_of_which_an_operation_failed_is_none() {
        let threads = Threads::connected(1, Duration::ZERO, Duration::ZERO, 2.0);
        let mut network = Network::new(threads, ("VM", "all"), 5);
        // Of the two operations, and of what ends the transaction behind them.
        let mut transact = |well: [bool; 3]| {
            for (is_last, went_well) in [(false, well[0]), (true, well[1])] {
                let due = network.take_due(Time(7));
                assert!(due.is_some());
                assert_eq!(network.ended(0, Time(7), went_well), is_last);
            }
            network.think(0, Time(7), well[2])
        };
        assert_eq!(transact([true; 3]), Some(Time(0)));
        assert_eq!(transact([false, true, true]), None);
        assert_eq!(transact([true, false, true]), None);
        assert_eq!(transact([true, true, false]), None);
        assert_eq!(transact([true; 3]), Some(Time(7)));
    }

    #[test]
    fn threads_wait_for_their_operations_and_for_connections() {
        let threads = Threads::connected(6, MS * 20, MS * 5, 4.0);
        let (most, of_one, transactions) = walk(threads);
        assert!(most <= 6 && most > 2, "{most}");
        assert_eq!(of_one, 1);
        // Six of 20 + 5 + 4 × 3 ms, and what waits for the clock of this test.
        let expected = 10_000.0 * 6.0 / 37.3;
        let ratio = transactions as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.06, "{ratio}");
        let few = Threads {
            connections: Some(2),
            ..threads
        };
        let (most, _, fewer) = walk(few);
        assert_eq!(most, 2);
        assert!(fewer < transactions && fewer > 1_000, "{fewer}");
    }
}
