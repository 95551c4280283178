//! Closed networks: threads that think, work on a transaction, and wait for its operations.
//!
//! ```text
//! think ─► a connection ─► processor work ─► operation ─► … ─► operation ─► commit ─► think
//! ```
//!
//! A thread has one operation under way at most. What it does in between is not storage, so a
//! faster target gets more transactions and has fewer operations under way. With `N` threads, the
//! response time `R` of a transaction and the mean think time `Z`, the rate of transactions is
//! `X = N / (R + Z)` (the interactive response time law: Denning and Buzen, "The operational analysis
//! of queueing network models", ACM Computing Surveys 10(3), 1978).
//!
//! Invariants: a thread's draws depend on the seed, its VM, its stream and its number, on nothing
//! else, so that they stay the same whatever the others do. Think and work times are exponential;
//! a transaction has one of the two whole numbers of operations around their mean.

use base::Prng;
use std::time::Duration;

/// The threads of a stream, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threads {
    /// How many there are.
    pub count: usize,
    /// At most so many are in a transaction at a time, and the others wait for a connection; each
    /// has one of its own where nothing is said.
    pub connections: Option<usize>,
    /// Mean time between two transactions of a thread.
    pub think: Duration,
    /// Mean processor time of a transaction.
    pub work: Duration,
    /// Mean operations of a transaction, one after the other; a commit is not among them.
    pub operations: f64,
}

impl Threads {
    /// Threads that each have a connection of their own.
    pub fn connected(count: usize, think: Duration, work: Duration, operations: f64) -> Threads {
        Threads {
            count,
            connections: None,
            think,
            work,
            operations,
        }
    }

    /// Transactions per second while each operation takes `latency`, and each transaction has a
    /// processor at once: by the interactive response time law, and by how long each has its
    /// connection. `commits` says whether an operation of another stream ends each.
    pub fn per_s(&self, latency: Duration, commits: bool) -> f64 {
        let operations = self.operations + f64::from(u8::from(commits));
        let connected_s = self.work.as_secs_f64() + operations * latency.as_secs_f64();
        let by_threads = self.count as f64 / (self.think.as_secs_f64() + connected_s);
        match self.connections {
            Some(connections) => by_threads.min(connections as f64 / connected_s),
            None => by_threads,
        }
    }

    /// Threads that can have an operation under way.
    pub fn outstanding_max(&self) -> usize {
        self.connections
            .map_or(self.count, |connections| self.count.min(connections))
    }

    /// Threads that ask for `factor` times as many transactions. As threads are whole, the think
    /// time makes up for what their number cannot; threads that never think go on so. None are left
    /// of a factor that is none.
    pub fn scaled(self, factor: f64) -> Threads {
        if !(factor.is_finite() && factor > 0.0) {
            return Threads { count: 0, ..self };
        }
        let count = ((self.count as f64 * factor).round() as usize).max(1);
        let cycle_s = (self.think + self.work).as_secs_f64();
        let scaled_s = cycle_s * count as f64 / (self.count as f64 * factor);
        let think_s = (scaled_s - self.work.as_secs_f64()).max(0.0);
        Threads {
            count,
            think: match self.think.is_zero() || !think_s.is_finite() {
                true => self.think,
                false => Duration::from_secs_f64(think_s.min(THINK_MAX_S)),
            },
            ..self
        }
    }

    /// Refuses what nobody can have at work.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.count == 0 || self.connections == Some(0) {
            return Err("it has no thread, or no connection".into());
        }
        if self.count > COUNT_MAX {
            let count = match self.count {
                usize::MAX => "more than can be counted".into(),
                count => count.to_string(),
            };
            return Err(format!(
                "it would have more than {COUNT_MAX} threads: {count}"
            ));
        }
        if !(1.0..=OPERATIONS_MAX).contains(&self.operations) {
            return Err(format!("{} operations to a transaction", self.operations));
        }
        Ok(())
    }
}

/// Whoever scales a load to next to nothing thinks for so long at most, seconds.
const THINK_MAX_S: f64 = 30.0 * 86_400.0;

/// Threads of a stream at most: each takes memory here, and no server is known to have as many.
const COUNT_MAX: usize = 1_000_000;

/// Operations of a transaction at most, which is beyond anything known.
const OPERATIONS_MAX: f64 = 1e6;

/// What a transaction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Processor time, before its first operation.
    pub work: Duration,
    /// Operations, one after the other.
    pub operations: u32,
}

/// One of the threads of a stream.
#[derive(Clone, Debug)]
pub struct Thread {
    threads: Threads,
    draws: Prng,
}

impl Thread {
    /// Thread `number` of a stream of the VM called `vm`.
    pub fn new(threads: Threads, (vm, stream): (&str, &str), number: usize, seed: u64) -> Thread {
        let of_stream = Prng::from_seed(seed).stream("threads").stream(vm);
        Thread {
            threads,
            draws: of_stream.stream(stream).stream(&number.to_string()),
        }
    }

    /// It is one of `threads` from now on.
    pub fn belong_to(&mut self, threads: Threads) {
        self.threads = threads;
    }

    /// How long it thinks before its next transaction.
    pub fn think(&mut self) -> Duration {
        exponential(&mut self.draws, self.threads.think)
    }

    /// What its next transaction needs.
    pub fn transaction(&mut self) -> Transaction {
        let whole = self.threads.operations.floor();
        let more = self.draws.unit() < self.threads.operations - whole;
        Transaction {
            work: exponential(&mut self.draws, self.threads.work),
            operations: whole as u32 + u32::from(more),
        }
    }
}

fn exponential(draws: &mut Prng, mean: Duration) -> Duration {
    match mean.is_zero() {
        true => Duration::ZERO,
        false => mean.mul_f64(-(1.0 - draws.unit()).ln()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_thread_draws_the_means_that_it_was_given() {
        let threads = Threads::connected(8, MS * 30, MS * 5, 6.9);
        let mut thread = Thread::new(threads, ("SQL01", "data"), 3, 1);
        let (mut think, mut work, mut operations) = (0.0, 0.0, 0);
        const TRANSACTIONS: usize = 40_000;
        for _ in 0..TRANSACTIONS {
            think += thread.think().as_secs_f64();
            let transaction = thread.transaction();
            work += transaction.work.as_secs_f64();
            operations += transaction.operations;
            assert!([6, 7].contains(&transaction.operations));
        }
        let mean = |sum: f64| sum / TRANSACTIONS as f64;
        assert!((mean(think) - 0.030).abs() < 0.0006, "{}", mean(think));
        assert!((mean(work) - 0.005).abs() < 0.0001, "{}", mean(work));
        assert!((mean(f64::from(operations)) - 6.9).abs() < 0.01);
    }

    #[test]
    fn threads_draw_apart_and_each_the_same_again() {
        let threads = Threads::connected(2, MS, MS, 1.0);
        let think = |number, seed| Thread::new(threads, ("VM", "all"), number, seed).think();
        assert_eq!(think(0, 1), think(0, 1));
        assert_ne!(think(0, 1), think(1, 1));
        assert_ne!(think(0, 1), think(0, 2));
    }

    #[test]
    fn more_threads_than_anybody_has_are_refused() {
        let threads = Threads::connected(90, MS * 80, MS * 20, 4.0);
        assert_eq!(threads.scaled(10_000.0).check(), Ok(()));
        for factor in [12_000.0, 1e18, f64::MAX] {
            let refused = threads.scaled(factor).check().unwrap_err();
            assert!(refused.contains("more than 1000000 threads"), "{refused}");
        }
    }

    #[test]
    fn a_scaled_network_asks_for_so_much_more() {
        let threads = Threads::connected(2, MS * 80, MS * 20, 4.0);
        for factor in [0.1, 0.67, 1.0, 1.2, 3.0, 40.0] {
            let of_thought = |threads: Threads| threads.per_s(Duration::ZERO, false);
            let ratio = of_thought(threads.scaled(factor)) / of_thought(threads);
            assert!((ratio / factor - 1.0).abs() < 0.001, "{ratio} for {factor}");
        }
        let never = Threads::connected(832, Duration::ZERO, MS, 4.0).scaled(0.05);
        assert_eq!((never.count, never.think), (42, Duration::ZERO));
        let pool = Threads {
            connections: Some(1),
            ..threads
        };
        assert_eq!(pool.scaled(3.0).outstanding_max(), 1);
        assert_eq!(threads.scaled(3.0).outstanding_max(), 6);
        // A limit that there are as many threads as stays one.
        let full = Threads {
            connections: Some(2),
            ..threads
        };
        assert_eq!(full.scaled(3.0).outstanding_max(), 2);
    }

    #[test]
    fn transactions_follow_the_interactive_law_up_to_the_connections() {
        let threads = Threads::connected(10, MS * 80, MS * 10, 4.0);
        let per_s = |threads: Threads, commits| threads.per_s(MS * 2, commits).round();
        assert_eq!(
            (per_s(threads, false), per_s(threads, true)),
            (102.0, 100.0)
        );
        let pool = Threads {
            connections: Some(1),
            ..threads
        };
        assert_eq!((per_s(pool, false), per_s(pool, true)), (56.0, 50.0));
    }
}
