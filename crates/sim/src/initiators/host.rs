//! An initiator that sends random commands and keeps books.

use super::Books;
use super::array::Array;
use super::attention::{Fate, Sent, Told};
use super::slot::Slot;
use super::unit::Unit;
use crate::history::{Deed, filled, value_of};
use crate::wire::aborts::{ANSWER_MAX, UNIT_RESET};
use crate::wire::path::{self, Outcome, Path};
use array::wake::in_time;
use base::{Prng, SECTOR_BYTES};
use engine::World;
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

pub(super) use crate::wire::path::Answer as Response;

pub(super) const GOOD: u8 = 0;
pub(super) const CHECK_CONDITION: u8 = 2;
pub(super) const CONFLICT: u8 = 0x18;
const BUSY: u8 = 0x08;
const TASK_SET_FULL: u8 = 0x28;

const UNIT_ATTENTION: u8 = 6;
const ABORTED: u8 = 0xb;
const MISCOMPARE: u8 = 0xe;

/// Additional sense codes: there is no such unit; there is no room for what is written.
const NO_UNIT: [u8; 2] = [0x25, 0];
const NO_ROOM: [u8; 2] = [0x27, 0x07];

/// Unit attentions one after the other that are believed.
pub(super) const ATTENTIONS_MAX: u32 = 50;

/// How often a command is sent again that was not run.
const ATTEMPTS_MAX: u32 = 200;

pub(super) struct Host {
    pub(super) number: u64,
    /// By target.
    slots: Vec<Rc<Slot>>,
    pub(super) world: SimWorld,
    pub(super) books: Rc<Books>,
    pub(super) array: Rc<Array>,
    prng: RefCell<Prng>,
    /// Of the values that it writes.
    written: Cell<u64>,
    /// What it last knew of each register, by unit.
    known: RefCell<Vec<Vec<u64>>>,
    list_ids: Cell<u32>,
    /// By unit: it was preempted, and its commands aborted, at this instant and in this turn.
    pub(super) preempted: Vec<Cell<Option<(u64, u64)>>>,
}

/// A command to be, and what it does.
struct Order {
    cdb: [u8; 16],
    data: Vec<u8>,
    deed: Deed,
}

/// A command to be, whatever it does.
pub(super) struct Command {
    /// Where it is sent to.
    pub(super) unit: usize,
    pub(super) cdb: [u8; 16],
    pub(super) data: Vec<u8>,
    /// The units that reservations are looked at of, and whether it writes there.
    pub(super) needs: Vec<(usize, bool)>,
    /// It was stopped by another command.
    pub(super) is_stopped: Cell<bool>,
    /// The session that it runs in, and its tag there.
    pub(super) running: RefCell<Option<(Rc<Path>, u32)>>,
    /// The handle of the session that it was sent in last.
    pub(super) session: Cell<u16>,
    /// How many of its deeds come before a second part.
    pub(super) first_part: usize,
    /// What had been done to units behind the back of hosts when it began.
    pub(super) upsets: Cell<Vec<u64>>,
    /// It was over by this instant, whenever its answer came.
    pub(super) over_by: Cell<Option<u64>>,
}

impl Command {
    /// One that concerns the unit that it is sent to.
    pub(super) fn at(unit: usize, cdb: [u8; 16], data: Vec<u8>, writes: bool) -> Command {
        Command {
            unit,
            cdb,
            data,
            needs: vec![(unit, writes)],
            is_stopped: Cell::default(),
            running: RefCell::default(),
            session: Cell::default(),
            first_part: usize::MAX,
            upsets: Cell::default(),
            over_by: Cell::default(),
        }
    }

    /// As its PDU has it.
    fn on_the_wire(&self, lun: u16) -> path::Command {
        let cdb = self.cdb;
        let long = u32::from_be_bytes([cdb[10], cdb[11], cdb[12], cdb[13]]) as usize;
        let read_bytes = match cdb[0] {
            0x88 => long * SECTOR_BYTES,
            0x84 => long,
            0x5e => usize::from(u16::from_be_bytes([cdb[7], cdb[8]])),
            _ => 0,
        };
        path::Command {
            lun,
            cdb,
            data_out: self.data.as_slice().into(),
            read_bytes,
        }
    }
}

/// What came of a command.
pub(super) enum Answer {
    Attention,
    /// By a reservation.
    Refused,
    /// There is no such unit.
    Absent,
    /// There is no target to send it to: it was not sent.
    Nowhere,
    /// It was aborted, or its session was lost; it is over since then.
    Over(u64),
    Said(Response),
}

/// What a host hears of a command.
pub(super) enum Heard {
    Said(Response),
    Over(u64),
    Nowhere,
}

impl Host {
    /// One that has not logged in yet.
    pub(super) fn new(number: u64, array: &Rc<Array>) -> Rc<Host> {
        let books = Rc::clone(&array.books);
        let registers = |unit: &super::Unit| vec![0; unit.wide];
        let slots = 0..books.targets;
        Rc::new(Host {
            number,
            slots: slots.map(|at| Slot::new(number, array, at)).collect(),
            world: array.world.clone(),
            array: Rc::clone(array),
            prng: RefCell::new(array.world.prng(&format!("host {number}"))),
            // Never the same again, in other boots either.
            written: Cell::new(books.clock.get() << 8),
            known: RefCell::new(books.units.iter().map(registers).collect()),
            list_ids: Cell::new(0),
            preempted: books.units.iter().map(|_| Cell::default()).collect(),
            books,
        })
    }

    pub(super) fn fail(&self, what: impl Into<String>) {
        self.books.fail(&self.world, what);
    }

    pub(super) fn fail_of_attentions(&self) {
        self.fail(format!(
            "host {}: unit attentions without an end",
            self.number
        ));
    }

    pub(super) fn below(&self, end: u64) -> u64 {
        self.prng.borrow_mut().below(end)
    }

    pub(super) fn any_unit(&self) -> usize {
        self.below(self.books.units.len() as u64) as usize
    }

    pub(super) fn next_list_id(&self) -> u32 {
        self.list_ids.set(self.list_ids.get() % 200 + 1);
        self.list_ids.get()
    }

    pub(super) fn new_value(&self) -> u64 {
        self.written.set(self.written.get() + 1);
        (self.written.get() << 4) | (self.number + 1)
    }

    /// Its sessions with a target.
    pub(super) fn slot(&self, target: usize) -> &Rc<Slot> {
        &self.slots[target]
    }

    /// Its sessions with the target of a unit.
    pub(super) fn slot_of(&self, unit: usize) -> &Rc<Slot> {
        self.slot(self.books.units[unit].target)
    }

    /// Its unit attentions at a unit.
    pub(super) fn told(&self, unit: usize) -> RefMut<'_, Told> {
        self.slot_of(unit).told(unit)
    }

    /// A few commands, one after the other or some at once.
    pub(super) async fn work(&self) {
        for _ in 0..=self.below(3) {
            let pause = Duration::from_nanos(self.below(40_000));
            self.world.sleep(pause).await;
            match self.below(24) {
                0 => self.manage(UNIT_RESET).await,
                1 => self.manage(self.any_function()).await,
                22 | 23 if self.books.loses_sessions => self.cut_a_way().await,
                2..=4 => self.call().await,
                5 => {
                    let two = futures_util::future::join(self.operate(), self.operate());
                    two.await;
                }
                _ => self.operate().await,
            }
            if self.books.failure.borrow().is_some() {
                return;
            }
        }
    }

    /// Somebody's session is lost, under what runs there; then a look.
    async fn cut_a_way(&self) {
        let hosts = self.array.all_hosts();
        let loser = &hosts[self.below(hosts.len() as u64) as usize];
        let slot = loser.slot(self.below(self.books.targets as u64) as usize);
        if let Some(path) = slot.path() {
            self.world
                .note(|| format!("the wire of host {} is cut", loser.number));
            path.wire().cut();
        }
        let unit = self.any_unit();
        self.read_field(unit).await;
        self.read_wide(unit).await;
    }

    /// Reads all registers of several sectors.
    pub(super) async fn read_wide(&self, unit: usize) {
        for register in 0..self.books.units[unit].wide {
            self.perform(unit, register, true).await;
        }
    }

    async fn operate(&self) {
        let unit = self.any_unit();
        let run = self.run_of_field();
        match self.below(24) {
            0 | 1 => self.read_run(unit, run).await,
            2..=4 => self.write_run(unit, run).await,
            5 => self.clear_run(unit, run).await,
            6 | 7 => self.copy().await,
            8 | 9 => self.make_token().await,
            10 | 11 => self.use_token().await,
            _ => {
                let register = self.below(self.books.units[unit].wide as u64);
                self.perform(unit, register as usize, false).await;
            }
        }
    }

    /// One operation on a register; only a read, if so asked. Tried again until there is
    /// nothing else to say first.
    async fn perform(&self, unit: usize, register: usize, reads: bool) {
        let (lba, sectors) = {
            let registers = self.books.units[unit].registers.borrow();
            let register = &registers[register];
            (register.lba, register.sectors)
        };
        let order = match reads {
            true => self.read(lba, sectors),
            false => self.order((unit, register), lba, sectors),
        };
        let writes = !matches!(order.cdb[0], 0x88);
        let command = Command::at(unit, order.cdb, order.data.clone(), writes);
        let deeds = vec![((unit, register), order.deed.clone())];
        let Some((deeds, response)) = self.perform_all(&command, deeds).await else {
            return;
        };
        let Some(deed) = self.outcome(&order, &response) else {
            self.books.abandon(&deeds, self.books.tick());
            return self.check_failure(&command, &response);
        };
        if let Deed::Read(value) | Deed::Write(value) | Deed::Exchanged { new: value, .. } = deed {
            self.known.borrow_mut()[unit][register] = value;
        }
        self.books
            .end(&deeds, self.end_of(&command), |_| deed.clone());
    }

    /// The instant by which a command that was answered was over.
    pub(super) fn end_of(&self, command: &Command) -> u64 {
        let now = self.books.tick();
        command.over_by.get().map_or(now, |over| over.min(now))
    }

    /// Runs a command. Who may not is refused, and nobody else, while no reservation changes.
    pub(super) async fn ask(&self, command: &Command) -> Answer {
        let units = || {
            command
                .needs
                .iter()
                .map(|(unit, _)| &self.books.units[*unit])
        };
        let turns = || -> Vec<u64> { units().map(|unit| unit.turns.get()).collect() };
        let (before, begun) = (turns(), self.books.tick());
        command.over_by.set(None);
        let response = match self.execute(command).await {
            Heard::Said(response) => response,
            Heard::Over(at) => return Answer::Over(at),
            Heard::Nowhere => return Answer::Nowhere,
        };
        if is_attention(&response) {
            return Answer::Attention;
        }
        let refused = response.status == CONFLICT;
        let certain = before == turns() && before.iter().all(|turn| turn.is_multiple_of(2));
        let admitted = command.needs.iter().all(|(unit, writes)| {
            let fence = self.books.units[*unit].fence.borrow();
            fence.admits(self.number, *writes)
        });
        let is_told = refused || response.status == GOOD;
        if certain && is_told && admitted == refused {
            let fences: Vec<_> = units().map(|unit| unit.fence.borrow().clone()).collect();
            self.fail(format!(
                "host {}: {:02x?} {}, with {fences:?}",
                self.number,
                command.cdb,
                if refused { "is refused" } else { "is run" },
            ));
        }
        command.over_by.set(self.preempted_since(command, begun));
        match refused {
            true => Answer::Refused,
            false if found(&response, NO_UNIT) => {
                self.check_failure(command, &response);
                Answer::Absent
            }
            false => Answer::Said(response),
        }
    }

    /// When the unit's commands of this host were aborted, if it may not run this one any more since
    /// then. One that had begun before was over by then.
    fn preempted_since(&self, command: &Command, begun: u64) -> Option<u64> {
        let unit = &self.books.units[command.unit];
        let (at, turn) = self.preempted[command.unit].get()?;
        let is_as_then = (turn..=turn + 1).contains(&unit.turns.get());
        let mut needs = command.needs.iter();
        let (_, writes) = needs.find(|(needed, _)| *needed == command.unit)?;
        let is_kept_out = !unit.fence.borrow().admits(self.number, *writes);
        (begun < at && is_as_then && is_kept_out).then_some(at)
    }

    /// Until there is nothing else to say first.
    pub(super) async fn insist_on(&self, command: &Command) -> Answer {
        for _ in 0..ATTENTIONS_MAX {
            match self.ask(command).await {
                Answer::Attention => {}
                answer => return answer,
            }
        }
        self.fail_of_attentions();
        Answer::Attention
    }

    /// A command may fail for want of room, because it was stopped, or because of what was
    /// done to its unit behind its back.
    pub(super) fn check_failure(&self, command: &Command, response: &Response) {
        let (before, now) = (command.upsets.take(), self.books.upsets());
        let is_away = self.books.units.iter().any(Unit::is_away);
        let upset = is_away || before != now || now.iter().any(|upsets| !upsets.is_multiple_of(2));
        let stopped = command.is_stopped.get();
        let full = found(response, NO_ROOM) || self.is_full(command, response);
        let overtaken = response
            .sense
            .get(2)
            .is_some_and(|key| key & 0xf == ABORTED);
        let full = full || overtaken && self.books.tight.is_some();
        // Whatever was done: what is good is whole.
        if response.status == GOOD || !upset && !stopped && !full {
            self.fail(format!(
                "host {}: {:02x?} said {:#x}, {:02x?}",
                self.number, command.cdb, response.status, response.sense
            ));
        }
    }

    /// Copies say in their own words that there is no room: 55/0D, and what was said to
    /// EXTENDED COPY in its sense data.
    fn is_full(&self, command: &Command, response: &Response) -> bool {
        let code = response.sense.get(12..14);
        command.cdb[0] == 0x83 && matches!(code, Some([0x55, 0x0d] | [0x27, 0x07] | [0x0d, _]))
    }

    /// What a command did, by its answer.
    fn outcome(&self, order: &Order, response: &Response) -> Option<Deed> {
        match (order.deed.clone(), response.status) {
            (Deed::Perhaps { .. }, GOOD) if order.cdb[0] == 0x88 => {
                value_of(&response.data).map(Deed::Read)
            }
            (Deed::Perhaps { expected, new }, GOOD) => Some(Deed::Exchanged { expected, new }),
            (Deed::Perhaps { expected, .. }, CHECK_CONDITION)
                if response.sense[2] & 0xf == MISCOMPARE =>
            {
                Some(Deed::Differed { expected })
            }
            (deed @ (Deed::Write(_) | Deed::Or(_)), GOOD) => Some(deed),
            _ => None,
        }
    }

    /// Runs a command.
    pub(super) async fn execute(&self, command: &Command) -> Heard {
        let name = &self.books.units[command.unit].name;
        self.books.operations.set(self.books.operations.get() + 1);
        command.upsets.set(self.books.upsets());
        let waiting = self.array.asked.begin("command", name.clone());
        for _ in 0..ATTEMPTS_MAX {
            match self.send(command).await {
                Some(Heard::Said(response)) => {
                    waiting.end(response.status == GOOD);
                    return Heard::Said(response);
                }
                Some(heard) => return heard,
                None => self.world.sleep(Duration::from_micros(100)).await,
            }
        }
        self.fail(format!("host {}: a command is never run", self.number));
        Heard::Nowhere
    }

    /// Sends a command once. Nothing, where it was not run.
    async fn send(&self, command: &Command) -> Option<Heard> {
        let slot = self.slot_of(command.unit);
        let Some(path) = slot.up().await else {
            return Some(Heard::Nowhere);
        };
        let sent = self.told(command.unit).begin(self.books.tick());
        let unit = &self.books.units[command.unit];
        let begun = path.begin(command.on_the_wire(unit.lun())).await;
        let Some((tag, ended)) = begun else {
            self.hear(command, sent, Fate::NotRun);
            return None;
        };
        self.note(command, &format!("begins as {}/{tag}", path.agreed.tsih));
        command.session.set(path.agreed.tsih);
        command.running.replace(Some((Rc::clone(&path), tag)));
        self.abort_at_times((path, tag, unit.lun()));
        let ended = in_time(&self.world, ANSWER_MAX, ended).await;
        command.running.take();
        let response = match ended {
            Some(Ok(Outcome::Said(response))) => response,
            ended => {
                self.note(command, "is over");
                self.hear(command, sent, Fate::Unheard);
                if ended.is_none() {
                    self.fail(format!("host {}: no answer in {ANSWER_MAX:?}", self.number));
                }
                // The sender goes with the boot only.
                return Some(Heard::Over(match ended {
                    Some(Ok(Outcome::Over(at))) => at,
                    _ => u64::MAX,
                }));
            }
        };
        self.note(command, &format!("says {:#x}", response.status));
        let is_run = ![BUSY, TASK_SET_FULL].contains(&response.status);
        let fate = match is_attention(&response) {
            true => Fate::Told,
            false if !is_run || found(&response, NO_UNIT) => Fate::NotRun,
            false => Fate::Run,
        };
        self.hear(command, sent, fate);
        is_run.then_some(Heard::Said(response))
    }

    fn note(&self, command: &Command, what: &str) {
        self.world.note(|| {
            let (host, cdb) = (self.number, &command.cdb);
            let (name, clock) = (&self.books.units[command.unit].name, self.books.clock.get());
            format!("host {host}, {name}, {clock}: {cdb:02x?} {what}")
        });
    }

    fn hear(&self, command: &Command, sent: Sent, fate: Fate) {
        let heard = self.told(command.unit).end(sent, fate);
        if let Err(what) = heard {
            let name = &self.books.units[command.unit].name;
            let (host, cdb) = (self.number, &command.cdb);
            self.fail(format!("host {host}, {name}: {cdb:02x?} {what}"));
        }
    }

    fn read(&self, lba: u64, sectors: u32) -> Order {
        Order {
            cdb: sixteen(0x88, lba, sectors),
            data: Vec::new(),
            deed: Deed::Perhaps {
                expected: 0,
                new: 0,
            },
        }
    }

    fn order(&self, (unit, register): super::RegisterPlace, lba: u64, sectors: u32) -> Order {
        let value = self.new_value();
        let written = |opcode, value| Order {
            cdb: sixteen(opcode, lba, sectors),
            data: filled(value, sectors),
            deed: Deed::Write(value),
        };
        // What may be torn is for single sectors.
        let kinds = if sectors == 1 { 10 } else { 6 };
        match self.below(kinds) {
            0 | 1 => self.read(lba, sectors),
            2 | 3 => {
                let expected = match self.below(6) {
                    0 => value,
                    _ => self.known.borrow()[unit][register],
                };
                let mut cdb = sixteen(0x89, lba, 0);
                cdb[13] = sectors as u8;
                Order {
                    cdb,
                    data: [filled(expected, sectors), filled(value, sectors)].concat(),
                    deed: Deed::Perhaps {
                        expected,
                        new: value,
                    },
                }
            }
            4 => Order {
                deed: Deed::Or(1 << (value % 64)),
                ..written(0x8b, 1 << (value % 64))
            },
            5 => {
                let mut order = written(0x9c, value);
                order.cdb[10..14].copy_from_slice(&[0, 0, 0, sectors as u8]);
                order
            }
            6 | 7 => written(0x8a, value),
            8 => written(0x8e, value),
            _ => Order {
                cdb: {
                    // WRITE SAME of zeroes without data.
                    let mut cdb = sixteen(0x93, lba, sectors);
                    cdb[1] = 1;
                    cdb
                },
                data: Vec::new(),
                deed: Deed::Write(0),
            },
        }
    }
}

pub(super) fn is_attention(response: &Response) -> bool {
    response.status == CHECK_CONDITION && response.sense[2] & 0xf == UNIT_ATTENTION
}

/// Whether an answer has this additional sense code.
fn found(response: &Response, code: [u8; 2]) -> bool {
    response.status == CHECK_CONDITION && response.sense.get(12..14) == Some(&code[..])
}

pub(super) fn sixteen(opcode: u8, lba: u64, sectors: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&sectors.to_be_bytes());
    cdb
}
