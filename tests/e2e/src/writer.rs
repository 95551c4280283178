//! A host that writes without rest, and reads back, until its server is gone.

use crate::array::{Array, TARGET};
use crate::initiator::{Answer, Initiator};
use crate::ledger::Ledger;
use base::Prng;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Commands under way at a time.
const DEPTH: usize = 8;

/// Sectors of a read when everything is read back.
const CHECK_SECTORS: u64 = 512;

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Command {
    /// The write's number; a read has none.
    number: Option<u32>,
    lba: u64,
    sectors: usize,
}

/// Writes into the ledger's region until the connection ends, with a message for every
/// acknowledgement, and gives what is known then.
///
/// # Panics
/// When a read gives what it may not, or a command ends badly before the server does.
pub fn write_until_lost(
    initiator: Initiator,
    mut ledger: Ledger,
    mut prng: Prng,
    done: &Sender<()>,
) -> Ledger {
    let mut initiator = initiator.heeding_warnings();
    let mut commands = BTreeMap::new();
    loop {
        let step = step(&mut initiator, &mut ledger, &mut prng, &mut commands);
        let Ok((tag, answer)) = step else { break };
        let command: Command = commands.remove(&tag).expect("a tag that was given out");
        let Command {
            number,
            lba,
            sectors,
        } = command;
        match (answer, number) {
            (Answer::Good(_), Some(number)) => ledger.acknowledged(number, lba, sectors),
            (Answer::Good(data), None) => ledger.check(lba, &data, "under load"),
            (answer, _) => panic!("{command:?} ended with {answer:?}"),
        }
        // Nobody may listen any more.
        let _ = done.send(());
    }
    for command in commands.into_values() {
        if let Some(number) = command.number {
            ledger.in_doubt(number, command.lba, command.sectors);
        }
    }
    ledger
}

/// A host that writes to [`TARGET`], under whose load `event` happens; the
/// server is killed then.
///
/// # Panics
/// When the load ends by itself, or the host finds an error.
pub fn load_until_killed(array: &mut Array, ledger: Ledger, event: impl FnOnce(&Array)) -> Ledger {
    let name = "iqn.2026-11.dev.ashlar:host";
    let initiator = Initiator::login(array.portal(), name, TARGET).expect("a login");
    let (sender, ends) = channel();
    let prng = Prng::from_seed(ledger.written() as u64);
    let host = thread::spawn(move || write_until_lost(initiator, ledger, prng, &sender));
    assert_eq!(ends.iter().take(50).count(), 50, "the load runs");
    event(array);
    assert_eq!(ends.iter().take(50).count(), 50, "the load runs on");
    array.kill();
    host.join().expect("the host found an error")
}

/// Starts commands up to the depth and waits for one to end.
fn step(
    initiator: &mut Initiator,
    ledger: &mut Ledger,
    prng: &mut Prng,
    commands: &mut BTreeMap<u32, Command>,
) -> io::Result<(u32, Answer)> {
    while initiator.under_way() < DEPTH {
        let (lba, sectors) = draw(ledger, prng);
        let end = lba + sectors as u64;
        let overlaps = |other: &Command| other.lba < end && lba < other.lba + other.sectors as u64;
        if commands.values().any(overlaps) {
            continue;
        }
        let mut command = Command {
            number: None,
            lba,
            sectors,
        };
        if prng.chance(1, 6) {
            let tag = initiator.start_read(lba, sectors)?;
            commands.insert(tag, command);
            continue;
        }
        let number = ledger.next_number();
        command.number = Some(number);
        match initiator.start_write(lba, Ledger::data(number, lba, sectors)) {
            Ok(tag) => commands.insert(tag, command),
            Err(error) => {
                // It may have gone out whole for all that.
                ledger.in_doubt(number, lba, sectors);
                return Err(error);
            }
        };
    }
    initiator.next_end()
}

/// Where the next command goes: mostly a block, else anything from a sector to a
/// megabyte, so that writes are logged, filled up to blocks, or go around the log.
fn draw(ledger: &Ledger, prng: &mut Prng) -> (u64, usize) {
    let region = ledger.sectors();
    let sectors = region.end - region.start;
    let (grain, len) = match prng.below(20) {
        0..12 => (8, 8),
        12..15 => (1, prng.between(1, 40)),
        15..18 => (8, 8 * prng.between(2, 32)),
        18 => (512, 512),
        _ => (512, 512 * prng.between(1, 4)),
    };
    let len = len.min(sectors);
    let lba = region.start + prng.below((sectors - len) / grain + 1) * grain;
    (lba, len as usize)
}

/// Fills the whole region, each sector once.
///
/// # Panics
/// When a write ends in any way but well.
pub fn fill(portal: SocketAddr, target: &str, ledger: &mut Ledger) {
    let mut initiator = Initiator::login(portal, "iqn.2026-11.dev.ashlar:fill", target)
        .expect("the target is served")
        .heeding_warnings();
    let region = ledger.sectors();
    for lba in region.clone().step_by(CHECK_SECTORS as usize) {
        let sectors = (region.end - lba).min(CHECK_SECTORS) as usize;
        let number = ledger.next_number();
        let answer = initiator.write(lba, Ledger::data(number, lba, sectors));
        assert_eq!(
            answer.expect("it serves"),
            Answer::Good(Vec::new()),
            "LBA {lba}"
        );
        ledger.acknowledged(number, lba, sectors);
    }
}

/// Reads the whole region back and checks it.
///
/// # Panics
/// When a sector holds what it may not, or can't be read.
#[track_caller]
pub fn verify(portal: SocketAddr, target: &str, ledger: &mut Ledger, when: &str) {
    let mut initiator = Initiator::login(portal, "iqn.2026-11.dev.ashlar:verify", target)
        .expect("the target is served")
        .heeding_warnings();
    let region = ledger.sectors();
    let mut next = region.start;
    let mut places = BTreeMap::new();
    while next < region.end || !places.is_empty() {
        while next < region.end && places.len() < DEPTH {
            let sectors = (region.end - next).min(CHECK_SECTORS);
            let tag = initiator.start_read(next, sectors as usize);
            places.insert(tag.expect("it serves"), next);
            next += sectors;
        }
        let (tag, answer) = initiator.next_end().expect("it serves");
        let lba = places.remove(&tag).expect("a tag that was given out");
        match answer {
            Answer::Good(data) => ledger.check(lba, &data, when),
            other => panic!("{when}: LBA {lba}: {other:?}"),
        }
    }
}
