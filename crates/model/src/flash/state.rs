//! A flash drive at work: commands, the write buffer and the work owed to collection.

use super::agenda::{Agenda, Event};
use super::nand::{Counters, Job, Nand, Stage, transfer_time};
use super::{Flash, STREAMS};
use crate::{Completed, Request, RequestKind, Ticket};
use base::{Prng, Time};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug)]
struct Command {
    request: Request,
    /// Pages to come of a read, bytes to come of a write.
    left: u64,
    sequential: bool,
}

/// A drive and what it is doing.
#[derive(Clone, Debug)]
pub struct State {
    flash: Flash,
    /// Moved for each million bytes written at random.
    moved_per_million: u64,
    now: Time,
    arrived: u64,
    agenda: Agenda,
    nand: Nand,
    commands: BTreeMap<u64, Command>,
    controller_free_at: Time,
    /// When the interface is free to read and to write.
    interface_free_at: [Time; 2],
    streams: VecDeque<u64>,
    waiting: VecDeque<u64>,
    buffer_free_bytes: u64,
    /// In the buffer and not yet on the way to a die.
    buffered_bytes: u64,
    /// Millionths of bytes that collection has to move.
    owed_millionths: u128,
    programs: usize,
    /// Dies that program nothing, the longest idle first.
    idle_dies: VecDeque<usize>,
}

impl State {
    /// A drive at rest, full and with an empty buffer.
    ///
    /// # Panics
    /// When the drive can do nothing: no die, no program at once, or a buffer that
    /// does not hold a unit for each of them.
    pub fn new(flash: &Flash, randomness: &mut Prng) -> State {
        assert!(flash.dies() > 0 && flash.programs_at_once > 0 && flash.programs_per_block > 0);
        let least = flash.program_bytes * (flash.programs_at_once as u64 + 1);
        assert!(flash.buffer_bytes >= least, "a buffer below {least} bytes");
        State {
            flash: *flash,
            moved_per_million: ((flash.write_amplification() - 1.0) * 1e6).round() as u64,
            now: Time::default(),
            arrived: 0,
            agenda: Agenda::default(),
            nand: Nand::new(flash, randomness),
            commands: BTreeMap::new(),
            controller_free_at: Time::default(),
            interface_free_at: [Time::default(); 2],
            streams: VecDeque::with_capacity(STREAMS),
            waiting: VecDeque::new(),
            buffer_free_bytes: flash.buffer_bytes,
            buffered_bytes: 0,
            owed_millionths: 0,
            programs: 0,
            idle_dies: (0..flash.dies()).collect(),
        }
    }

    /// A command comes.
    ///
    /// # Panics
    /// When time runs back, or passes an event that was not looked at.
    pub fn arrive(&mut self, request: Request, now: Time) -> Ticket {
        assert!(now >= self.now, "time runs back: {now} after {}", self.now);
        let passed = self.next_event().is_some_and(|event| event < now);
        assert!(!passed, "an event before {now} was not looked at");
        self.now = now;
        let ticket = self.arrived;
        self.arrived += 1;
        let write = request.kind.writes();
        let (rate, bytes) = match request.kind {
            RequestKind::Read => (self.flash.read_bytes_per_second, request.len_bytes),
            RequestKind::Write | RequestKind::DurableWrite => {
                (self.flash.write_bytes_per_second, request.len_bytes)
            }
            RequestKind::Flush | RequestKind::Discard => (1, 0),
        };
        let begin = now.max(self.controller_free_at);
        self.controller_free_at = begin + self.flash.t_command;
        let interface = &mut self.interface_free_at[usize::from(write)];
        *interface = begin.max(*interface) + transfer_time(bytes, rate);
        let admitted = self.controller_free_at.max(*interface);
        self.agenda.put(admitted, Event::Admitted(ticket));
        let command = Command {
            request,
            left: bytes,
            sequential: write && self.continues(request),
        };
        self.commands.insert(ticket, command);
        Ticket(ticket)
    }

    /// Whether a write continues an earlier one; remembers where it ends.
    fn continues(&mut self, request: Request) -> bool {
        let found = self.streams.iter().position(|&end| end == request.at.0);
        let forgotten = found.or((self.streams.len() == STREAMS).then_some(0));
        if let Some(stream) = forgotten {
            self.streams.remove(stream);
        }
        self.streams.push_back(request.at.0 + request.len_bytes);
        found.is_some()
    }

    /// When something happens inside the drive; none while it rests.
    pub fn next_event(&self) -> Option<Time> {
        self.agenda.next()
    }

    /// Lets time pass until `now`; what ended is put into `completed`, in order.
    ///
    /// # Panics
    /// When time runs back.
    pub fn advance(&mut self, now: Time, completed: &mut Vec<Completed>) {
        assert!(now >= self.now, "time runs back: {now} after {}", self.now);
        while let Some((at, event)) = self.agenda.take(now) {
            self.now = at;
            let ended = match event {
                Event::Admitted(ticket) => {
                    self.admit(ticket);
                    None
                }
                Event::Die { die, generation } => {
                    let die = (die, generation);
                    self.nand.die_done(&self.flash, &mut self.agenda, die, at)
                }
                Event::Channel(channel) => {
                    self.nand
                        .channel_done(&self.flash, &mut self.agenda, channel, at)
                }
                Event::Ended(ticket) => {
                    let known = self.commands.remove(&ticket).is_some();
                    assert!(known, "a command ended twice");
                    let ticket = Ticket(ticket);
                    completed.push(Completed { ticket, end: at });
                    None
                }
            };
            if let Some(job) = ended {
                self.job_ended(job);
            }
        }
        self.now = now;
    }

    fn admit(&mut self, ticket: u64) {
        let Some(command) = self.commands.get_mut(&ticket) else {
            unreachable!("a command that has not ended is known");
        };
        let request = command.request;
        match request.kind {
            RequestKind::Write | RequestKind::DurableWrite => {
                self.waiting.push_back(ticket);
                self.fill();
            }
            RequestKind::Read if request.len_bytes > 0 => {
                let page = self.flash.page_bytes;
                let end = request.at.0 + request.len_bytes;
                let pages = request.at.0 / page..end.div_ceil(page);
                command.left = pages.end - pages.start;
                for number in pages {
                    let bytes = end.min((number + 1) * page) - request.at.0.max(number * page);
                    let job = Job {
                        read_for: Some(ticket),
                        collected: false,
                        die: (number % self.flash.dies() as u64) as usize,
                        bytes,
                        stage: Stage::Sense,
                    };
                    self.nand
                        .submit(&self.flash, &mut self.agenda, job, self.now);
                }
            }
            // What was acknowledged is protected already.
            RequestKind::Read | RequestKind::Flush | RequestKind::Discard => self.end(ticket),
        }
    }

    fn end(&mut self, ticket: u64) {
        let at = self.now + self.flash.t_firmware;
        self.agenda.put(at, Event::Ended(ticket));
    }

    /// Takes waiting writes into the buffer, in order, as far as there is room.
    fn fill(&mut self) {
        while let Some(&ticket) = self.waiting.front() {
            let Some(command) = self.commands.get_mut(&ticket) else {
                unreachable!("a write that waits has not ended");
            };
            let taken = command.left.min(self.buffer_free_bytes);
            command.left -= taken;
            self.buffer_free_bytes -= taken;
            self.buffered_bytes += taken;
            if !command.sequential {
                self.owed_millionths += u128::from(taken) * u128::from(self.moved_per_million);
            }
            if command.left > 0 {
                break;
            }
            self.waiting.pop_front();
            self.end(ticket);
        }
        self.destage();
    }

    /// Begins programs: first what collection owes, then what is in the buffer.
    fn destage(&mut self) {
        let unit = self.flash.program_bytes;
        let unit_millionths = u128::from(unit) * 1_000_000;
        while self.programs < self.flash.programs_at_once {
            let collected = self.owed_millionths >= unit_millionths;
            if !collected && self.buffered_bytes < unit {
                break;
            }
            let Some(die) = self.idle_dies.pop_front() else {
                break;
            };
            let (bytes, stage) = if collected {
                self.owed_millionths -= unit_millionths;
                (2 * unit, Stage::Sense)
            } else {
                self.buffered_bytes -= unit;
                (unit, Stage::Transfer)
            };
            self.programs += 1;
            let job = Job {
                read_for: None,
                collected,
                die,
                bytes,
                stage,
            };
            self.nand
                .submit(&self.flash, &mut self.agenda, job, self.now);
        }
    }

    fn job_ended(&mut self, job: Job) {
        if let Some(ticket) = job.read_for {
            let Some(command) = self.commands.get_mut(&ticket) else {
                unreachable!("a read with pages to come has not ended");
            };
            command.left -= 1;
            if command.left == 0 {
                self.end(ticket);
            }
            return;
        }
        self.programs -= 1;
        self.idle_dies.push_back(job.die);
        if !job.collected {
            self.buffer_free_bytes += self.flash.program_bytes;
            assert!(self.buffer_free_bytes <= self.flash.buffer_bytes);
        }
        self.fill();
    }

    /// What dies and channels did.
    pub fn counters(&self) -> Counters {
        self.nand.counters
    }

    /// Dies that it has.
    pub fn dies(&self) -> usize {
        self.flash.dies()
    }

    /// Commands that have come and not ended.
    pub fn outstanding(&self) -> usize {
        self.commands.len()
    }
}
