//! The threads of a closed network in real time: which of them has an operation to do, and when.
//!
//! ```text
//! think ─► a connection ─► work ─► due ─► under way ─► due ─► … ─► (a commit) ─► think
//! ```
//!
//! Invariants: a thread is at one place of that walk, so it has one operation under way at most; no
//! more of them have a connection than there are, and those that wait get one in the order of their
//! coming. The work of a transaction is waited for: this machine is not the server whose load it is.

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
}

impl Network {
    /// Threads of `stream` of the VM called `vm`, which all think first.
    pub fn new(threads: Threads, (vm, stream): (&str, &str), seed: u64) -> Network {
        let mut network = Network {
            threads: Vec::with_capacity(threads.count),
            goes_on: BinaryHeap::new(),
            connections: threads.connections,
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
        let transaction = self.threads[number].thread.transaction();
        self.threads[number].left = transaction.operations;
        self.goes_on.push(Reverse((at + transaction.work, number)));
    }

    /// An operation of a thread has ended; whether it was the last of its transaction.
    pub fn ended(&mut self, number: usize, now: Time) -> bool {
        let left = &mut self.threads[number].left;
        *left = left.saturating_sub(1);
        if *left > 0 {
            self.goes_on.push(Reverse((now, number)));
        }
        *left == 0
    }

    /// A thread's transaction has ended, and it thinks. When the transaction had begun.
    pub fn think(&mut self, number: usize, now: Time) -> Time {
        match self.waiting.pop_front() {
            Some(first) => self.connected(first, now),
            None => self.connections += 1,
        }
        let walker = &mut self.threads[number];
        let again = now + walker.thread.think();
        self.goes_on.push(Reverse((again, number)));
        walker.began
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
                if network.ended(number, now) {
                    assert!(network.think(number, now) <= now);
                    transactions += 1;
                }
            }
            now = now + MS / 10;
        }
        (most, of_one, transactions)
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
            connections: 2,
            ..threads
        };
        let (most, _, fewer) = walk(few);
        assert_eq!(most, 2);
        assert!(fewer < transactions && fewer > 1_000, "{fewer}");
    }
}
