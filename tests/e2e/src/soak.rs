//! Many sessions that write, read back, log out, reset and begin anew, with digests and
//! without, for as long as one likes.
//!
//! Each session has a part of a LUN of its own and knows what has to be there. Some have a
//! LUN for themselves: those reset it in the middle of what they do.

use crate::initiator::{Answer, Initiator};
use crate::ledger::Ledger;
use base::Prng;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// LUNs that one session has for itself.
const OWN_LUNS: usize = 4;
/// LUNs that the others share.
const SHARED_LUNS: usize = 4;
/// Sectors of a session's part.
const PART: u64 = 2048;
/// Sectors of an operation, at most.
const SECTORS_MAX: u64 = 160;
/// Commands under way at once, at most.
const UNDER_WAY: usize = 4;

/// What came of it.
#[derive(Debug, Default)]
pub struct Done {
    /// Commands that were run.
    pub commands: AtomicU64,
    /// Logins.
    pub logins: AtomicU64,
    /// Resets of logical units.
    pub resets: AtomicU64,
}

fn target(lun: usize) -> String {
    format!("iqn.2026-11.dev.ashlar:soak{}", lun % 2)
}

/// RAID 10 in two lanes on two shards; two targets with half of the LUNs each.
pub fn site(sessions: usize) -> String {
    let per_lun = sessions.div_ceil(SHARED_LUNS) as u64;
    let mut text = "[site]\nname = \"soak\"\nshards = 2\n[api]\nlisten = \"127.0.0.1:0\"\n\
                    [[portal]]\naddress = \"127.0.0.1:0\"\n[limits]\nsessions = 256\nlogins = 128\nlogins_per_address = 128\n"
        .to_owned();
    let mut say = |line: String| writeln!(text, "{line}").expect("it is a string");
    for drive in 0..4 {
        say(format!(
            "[[drive]]\nname = \"d{drive}\"\nfile = \"d{drive}.img\"\nsize = \"320 MiB\""
        ));
    }
    say("[[pool]]\nname = \"p\"\nlevel = \"10\"\nlanes = 2\npage = \"64 KiB\"".to_owned());
    say("drives = [\"d0\", \"d1\", \"d2\", \"d3\"]".to_owned());
    for lun in 0..OWN_LUNS + SHARED_LUNS {
        let parts = if lun < OWN_LUNS { 1 } else { per_lun };
        let mib = (parts * PART * 512).div_ceil(1 << 20);
        say(format!(
            "[[volume]]\nname = \"v{lun}\"\npool = \"p\"\nsize = \"{mib} MiB\""
        ));
    }
    for half in 0..2 {
        let luns = (0..OWN_LUNS + SHARED_LUNS).filter(|lun| lun % 2 == half);
        let volumes: Vec<String> = luns.map(|lun| format!("\"v{lun}\"")).collect();
        say(format!("[[export]]\ntarget = \"{}\"", target(half)));
        say(format!(
            "volumes = [{}]\ninitiators = \"any\"",
            volumes.join(", ")
        ));
    }
    text
}

/// Runs that many sessions until `goes_on` says no, which each asks after a login's worth of
/// work.
///
/// # Panics
/// When anything is read that may not be, or a session breaks.
pub fn run(
    portal: SocketAddr,
    sessions: usize,
    seed: u64,
    goes_on: impl Fn() -> bool + Sync,
) -> Done {
    let done = Done::default();
    std::thread::scope(|scope| {
        for number in 0..sessions {
            let (done, goes_on) = (&done, &goes_on);
            let prng = Prng::from_seed(seed).stream(&format!("session {number}"));
            scope.spawn(move || Session::new(portal, number, prng, done).work(goes_on));
        }
    });
    done
}

/// Memory that a process has in use (RSS), in bytes.
///
/// # Panics
/// When there is none.
pub fn memory_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("the server runs");
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib = kib.and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("the kernel says so") << 10
}

struct Session<'a> {
    portal: SocketAddr,
    number: usize,
    lun: usize,
    ledger: Ledger,
    prng: Prng,
    done: &'a Done,
}

impl<'a> Session<'a> {
    fn new(portal: SocketAddr, number: usize, prng: Prng, done: &'a Done) -> Self {
        let (lun, part) = match number {
            0..OWN_LUNS => (number, 0),
            _ => (
                OWN_LUNS + number % SHARED_LUNS,
                (number / SHARED_LUNS) as u64 - 1,
            ),
        };
        Session {
            portal,
            number,
            lun,
            ledger: Ledger::new(part * PART..(part + 1) * PART),
            prng,
            done,
        }
    }

    fn work(mut self, goes_on: &dyn Fn() -> bool) {
        loop {
            let mut initiator = self.login();
            for _ in 0..self.prng.between(5, 60) {
                self.round(&mut initiator);
                if self.lun < OWN_LUNS && self.prng.chance(1, 12) {
                    self.reset(&mut initiator);
                }
            }
            let last = !goes_on();
            if last {
                self.read_all(&mut initiator);
            }
            // Some go without a word.
            if !self.prng.chance(1, 4) {
                initiator.logout().expect("a logout");
            }
            if last {
                return;
            }
        }
    }

    fn login(&mut self) -> Initiator {
        let name = format!("iqn.2026-11.test:soak{}", self.number);
        let at = (target(self.lun), (self.lun / 2) as u16);
        let digests = self.prng.chance(1, 2);
        self.done.logins.fetch_add(1, Relaxed);
        Initiator::login_to(self.portal, &name, (&at.0, at.1), digests).expect("a login")
    }

    /// Some commands at once, on places that are apart.
    fn round(&mut self, initiator: &mut Initiator) {
        let sectors = self.ledger.sectors();
        let share = (sectors.end - sectors.start) / UNDER_WAY as u64;
        let mut under_way = Vec::new();
        for place in 0..self.prng.between(1, UNDER_WAY as u64) {
            let count = self.prng.between(1, SECTORS_MAX.min(share));
            let lba = sectors.start + place * share + self.prng.below(share - count + 1);
            let number = self.prng.chance(1, 2).then(|| self.ledger.next_number());
            let started = match number {
                Some(number) => {
                    initiator.start_write(lba, Ledger::data(number, lba, count as usize))
                }
                None => initiator.start_read(lba, count as usize),
            };
            under_way.push((started.expect("a command"), lba, count as usize, number));
        }
        while initiator.under_way() > 0 {
            let (tag, answer) = initiator.next_end().expect("an answer");
            self.done.commands.fetch_add(1, Relaxed);
            let mut all = under_way.iter();
            let (_, lba, count, number) = all.find(|one| one.0 == tag).expect("it was asked");
            match (answer, number) {
                (Answer::Good(_), Some(number)) => self.ledger.acknowledged(*number, *lba, *count),
                (Answer::Good(data), None) => self.ledger.check(*lba, &data, "in the soak"),
                (answer, _) => panic!("session {}: {answer:?}", self.number),
            }
        }
    }

    /// Resets its LUN while a write is under way, which may have happened then.
    fn reset(&mut self, initiator: &mut Initiator) {
        let (lba, number) = (self.ledger.sectors().start, self.ledger.next_number());
        let data = Ledger::data(number, lba, 64);
        initiator.start_write(lba, data).expect("a command");
        self.ledger.in_doubt(number, lba, 64);
        initiator.reset().expect("a reset");
        self.done.resets.fetch_add(1, Relaxed);
        let read = initiator.read(lba, 64).expect("an answer");
        let Answer::Good(data) = read else {
            panic!("session {}: {read:?} after a reset", self.number);
        };
        self.ledger.check(lba, &data, "after a reset");
    }

    fn read_all(&mut self, initiator: &mut Initiator) {
        for lba in self.ledger.sectors().step_by(128) {
            match initiator.read(lba, 128).expect("an answer") {
                Answer::Good(data) => self.ledger.check(lba, &data, "at the end"),
                answer => panic!("session {}: {answer:?}", self.number),
            }
        }
    }
}
