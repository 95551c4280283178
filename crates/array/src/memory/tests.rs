//! Tests that every command ends on every budget, with initiators that read slowly.

use super::*;
use base::Prng;
use futures_util::FutureExt;
use std::collections::VecDeque;

const MIB: u64 = 1 << 20;

/// As in the loop of a connection: with so much unsent, nothing begins.
const PAUSE_BYTES: u64 = 8 * MIB;

/// A connection, which does with its account what its loop does.
struct Reader {
    account: Account,
    control: Arc<ConnectionControl>,
    waiting: VecDeque<u64>,
    running: VecDeque<u64>,
    output: u64,
    waits_for_room: bool,
    done: u32,
}

impl Reader {
    fn new(budget: &Budget, initiator: &str) -> Reader {
        let control = Arc::new(ConnectionControl::default());
        Reader {
            account: budget.open(initiator, Arc::clone(&control)),
            control,
            waiting: VecDeque::new(),
            running: VecDeque::new(),
            output: 0,
            waits_for_room: false,
            done: 0,
        }
    }

    fn held(&self) -> u64 {
        self.running.iter().sum::<u64>() + self.output
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.held() == 0
    }

    fn ask(&mut self, bytes: u64) {
        self.waiting.push_back(bytes);
        self.settle();
    }

    fn begin(&mut self) {
        self.waits_for_room = false;
        while self.output < PAUSE_BYTES
            && let Some(bytes) = self.waiting.front().copied()
            && (self.running.is_empty() || self.running.iter().sum::<u64>() + bytes <= 32 * MIB)
        {
            if !self.account.may_hold(self.held(), bytes) {
                self.waits_for_room = true;
                break;
            }
            self.waiting.pop_front();
            self.running.push_back(bytes);
        }
    }

    fn settle(&mut self) {
        self.begin();
        if !self.waits_for_room {
            self.account.hold(self.held());
        }
    }

    /// Does what can be done by itself: a command ends, the peer takes some of its answers,
    /// or somebody has woken it.
    fn step(&mut self, random: &mut Prng) {
        if random.chance(1, 2)
            && let Some(bytes) = self.running.pop_front()
        {
            self.output += bytes;
            self.done += 1;
            self.begin();
            self.settle();
        }
        if self.output > 0 && random.chance(2, 3) {
            let taken = random.between(64 << 10, 8 * MIB).min(self.output);
            self.output -= taken;
            self.settle();
        }
        if self.control.wake.notified().now_or_never().is_some() {
            self.settle();
        }
    }
}

/// `count` connections of `initiators` initiators, each with `rounds` commands of up to `most`
/// bytes, of which up to four are asked for at once. Panics when some never end.
fn read_all(seed: u64, budget_mib: u64, count: u64, initiators: u64, most: u64) {
    let case = format!(
        "seed {seed}: {budget_mib} MiB, {count} connections, {initiators} initiators, {most} bytes"
    );
    let mut random = Prng::from_seed(seed);
    let sessions = random.between(count, seats(budget_mib * MIB)) as usize;
    let budget = Budget::new(budget_mib * MIB, sessions);
    let mut readers: Vec<Reader> = (0..count)
        .map(|at| Reader::new(&budget, &format!("iqn.{}", at % initiators)))
        .collect();
    let mut left = vec![8; readers.len()];
    let steps = 2000 + 8 * count * 200;
    for _ in 0..steps {
        for (reader, left) in readers.iter_mut().zip(&mut left) {
            if *left > 0 && reader.waiting.len() < 4 && random.chance(1, 2) {
                *left -= 1;
                let bytes = if random.chance(1, 4) {
                    random.between(1, most)
                } else {
                    most
                };
                reader.ask(bytes);
            }
            reader.step(&mut random);
        }
        assert!(budget.used().bytes() <= budget_mib * MIB, "{case}");
        if left.iter().all(|left| *left == 0) && readers.iter().all(Reader::is_idle) {
            assert_eq!(budget.used().commands, 0, "{case}");
            return;
        }
    }
    let stuck = readers.iter().filter(|reader| !reader.is_idle()).count();
    panic!("{case}: {stuck} connections are stuck");
}

#[test]
fn every_command_ends_while_answers_drain() {
    let largest = 32 * MIB + (64 << 10);
    for (budget_mib, count, initiators, most) in [
        (128, 1, 1, 16 * MIB),
        (128, 2, 2, 9 * MIB),
        (256, 8, 8, 16 * MIB),
        (512, 20, 20, 16 * MIB),
        (1024, 60, 8, 16 * MIB),
        (128, 1, 1, largest),
    ] {
        read_all(1, budget_mib, count, initiators, most);
    }
    let mut random = Prng::from_seed(18);
    for seed in 0..60 {
        let budget_mib = 128 << random.below(6);
        let count = random.between(1, 24);
        let initiators = random.between(1, count);
        let most = random.between(512 << 10, largest);
        read_all(seed, budget_mib, count, initiators, most);
    }
}

/// The least budget: one path of an initiator always has something small in use, and so have
/// other initiators.
#[test]
fn a_long_command_has_its_turn_while_another_path_stays_busy() {
    let mut random = Prng::from_seed(18);
    let budget = Budget::new(policy::BUDGET_BYTES_MIN, 40);
    let mut long = Reader::new(&budget, "iqn.paths");
    let mut busy = ["iqn.paths", "iqn.other", "iqn.third"].map(|name| Reader::new(&budget, name));
    for _ in 0..4000 {
        for reader in &mut busy {
            while reader.waiting.len() < 4 {
                reader.ask(2 * MIB);
            }
            reader.step(&mut random);
        }
        if long.waiting.is_empty() {
            long.ask(16 * MIB);
        }
        long.step(&mut random);
    }
    let small = busy.each_ref().map(|reader| reader.done);
    assert!(
        long.done > 20,
        "{} long commands, small {small:?}",
        long.done
    );
    assert!(small.iter().all(|done| *done > 20), "small {small:?}");
}
