//! An initiator that sends random commands and keeps books.

use super::Books;
use super::array::Array;
use super::copier::HostCopier;
use super::fence::{Call, Shown, TYPES};
use super::tasks::{By, Task};
use super::unit::Unit;
use crate::history::{Deed, filled, value_of};
use array::offload::SessionCopier;
use base::Prng;
use engine::World;
use engine::volume::CancelToken;
use futures_util::FutureExt;
use iscsi::login::{Admission, LoginPortal};
use scsi::{InitiatorPort, Nexus, Response};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world_sim::SimWorld;

pub(super) const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
const CONFLICT: u8 = 0x18;

const UNIT_ATTENTION: u8 = 6;
const ABORTED: u8 = 0xb;
const MISCOMPARE: u8 = 0xe;

/// Unit attentions one after the other that are believed.
pub(super) const ATTENTIONS_MAX: u32 = 50;

/// Where they log in.
const PORTAL: ([u8; 4], u16) = ([10, 0, 0, 1], 3260);

/// What was last kept for a nexus, sector by sector.
type Kept = Rc<RefCell<Vec<u64>>>;

pub(super) struct Host {
    pub(super) number: u64,
    /// By target: the last one that it had there.
    nexuses: Vec<RefCell<Rc<Nexus<SimWorld>>>>,
    /// By target.
    kept: Vec<Kept>,
    pub(super) world: SimWorld,
    pub(super) books: Rc<Books>,
    pub(super) array: Rc<Array>,
    prng: RefCell<Prng>,
    /// Of the values that it writes.
    written: Cell<u64>,
    /// What it last knew of each register, by unit.
    known: RefCell<Vec<Vec<u64>>>,
    list_ids: Cell<u32>,
    pub(super) tasks: RefCell<Vec<Rc<Task>>>,
    /// A token is being made.
    pub(super) is_making: Cell<bool>,
    /// By unit: unit attentions that it was told.
    heard: Vec<Cell<u64>>,
    /// By unit: the next command has to be told of a reset.
    due: Vec<Cell<bool>>,
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
    /// How it is stopped.
    pub(super) cancel: Option<CancelToken>,
    /// How many of its deeds come before a second part.
    pub(super) first_part: usize,
    /// What had been done to units behind the back of hosts when it began.
    pub(super) upsets: Cell<Vec<u64>>,
}

impl Command {
    /// One that concerns the unit that it is sent to.
    pub(super) fn at(unit: usize, cdb: [u8; 16], data: Vec<u8>, writes: bool) -> Command {
        Command {
            unit,
            cdb,
            data,
            needs: vec![(unit, writes)],
            cancel: None,
            first_part: usize::MAX,
            upsets: Cell::default(),
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
    /// It was aborted, and is over since then.
    Aborted(u64),
    Said(Response),
}

/// A nexus of a host at a target, as after a login there; nothing while there is no such target.
fn connect(
    array: &Rc<Array>,
    host: u64,
    (target, kept): (usize, &Kept),
) -> Option<Rc<Nexus<SimWorld>>> {
    let (shard, found) = array.target(target)?;
    let name = format!("iqn.2026-11.sim:h{host}");
    let nexus = found.connect(InitiatorPort::new(&name, [0; 6]), 1);
    let admission = Admission {
        initiator: name,
        account: None,
        portal: LoginPortal {
            portal_group: 1,
            address: PORTAL.into(),
        },
    };
    let home = &array.shards.states[shard];
    let shared = (array.control.directory(), &array.offload);
    let copier = SessionCopier::new(home, shared, admission, found.name());
    nexus.set_copier(Rc::new(HostCopier {
        array: Rc::clone(array),
        copier,
        kept: Rc::clone(kept),
    }));
    let own = Rc::downgrade(array);
    nexus.set_aborter(Box::new(move |lun| {
        let hosts = own.upgrade().map_or(Vec::new(), |array| array.all_hosts());
        match hosts.iter().find(|one| one.number == host) {
            Some(host) => host.abort_at(target, lun),
            None => std::future::ready(0).boxed_local(),
        }
    }));
    Some(nexus)
}

impl Host {
    /// One that has logged in to all targets; nothing when one is not there.
    pub(super) fn new(number: u64, array: &Rc<Array>) -> Option<Rc<Host>> {
        let books = Rc::clone(&array.books);
        let kept: Vec<Kept> = (0..books.targets).map(|_| Kept::default()).collect();
        let nexuses = kept.iter().enumerate();
        let nexuses = nexuses.map(|at| Some(RefCell::new(connect(array, number, at)?)));
        let registers = |unit: &super::Unit| vec![0; unit.wide];
        Some(Rc::new(Host {
            number,
            nexuses: nexuses.collect::<Option<_>>()?,
            kept,
            world: array.world.clone(),
            array: Rc::clone(array),
            prng: RefCell::new(array.world.prng(&format!("host {number}"))),
            // Never the same again, in other boots either.
            written: Cell::new(books.clock.get() << 8),
            known: RefCell::new(books.units.iter().map(registers).collect()),
            list_ids: Cell::new(0),
            tasks: RefCell::default(),
            is_making: Cell::new(false),
            heard: books.units.iter().map(|_| Cell::new(0)).collect(),
            due: books.units.iter().map(|_| Cell::new(true)).collect(),
            books,
        }))
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

    /// The way to a unit. Whose target was deleted keeps that one, which shows nothing any more,
    /// until there is another one to log in to.
    pub(super) fn nexus(&self, unit: usize) -> Rc<Nexus<SimWorld>> {
        let target = self.books.units[unit].target;
        let mut nexus = self.nexuses[target].borrow_mut();
        let now = self.array.target(target);
        if now.is_some_and(|(_, now)| !Rc::ptr_eq(&now, nexus.target()))
            && let Some(new) = connect(&self.array, self.number, (target, &self.kept[target]))
        {
            self.world
                .note(|| format!("host {} logs in to target {target}", self.number));
            *nexus = new;
        }
        Rc::clone(&nexus)
    }

    pub(super) fn kept(&self, unit: usize) -> &RefCell<Vec<u64>> {
        &self.kept[self.books.units[unit].target]
    }

    /// All hosts are to be told of a reset of this unit, or that it is another.
    pub(super) fn is_due(&self, unit: usize) {
        self.due[unit].set(true);
    }

    /// A few commands, one after the other or some at once.
    pub(super) async fn work(&self) {
        for _ in 0..=self.below(3) {
            let pause = Duration::from_nanos(self.below(40_000));
            self.world.sleep(pause).await;
            match self.below(24) {
                0 => self.array.reset(self.any_unit()),
                1 => self.manage().await,
                22 | 23 if self.books.tight.is_some() => self.cut_a_way().await,
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

    /// Somebody's session is lost; then a look, at once: what had not happened by then must
    /// not happen any more.
    async fn cut_a_way(&self) {
        let hosts = self.array.all_hosts();
        let loser = &hosts[self.below(hosts.len() as u64) as usize];
        self.world
            .note(|| format!("host {} loses its session", loser.number));
        loser.lose_session();
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
        self.books.end(&deeds, |_| deed.clone());
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
        let before = turns();
        let response = match self.execute(command).await {
            Ok(response) => response,
            Err(at) => return Answer::Aborted(at),
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
        match refused {
            true => Answer::Refused,
            false if response.found_no_unit() => {
                self.check_failure(command, &response);
                Answer::Absent
            }
            false => Answer::Said(response),
        }
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
        let cancel = command.cancel.as_ref();
        let stopped = cancel.is_some_and(|cancel| !cancel.goes_on());
        let full = response.found_no_room() || self.is_full(command, response);
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
                value_of(&bytes_of(response)).map(Deed::Read)
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
    ///
    /// # Errors
    /// It was aborted, and is over since this instant.
    async fn execute(&self, command: &Command) -> Result<Response, u64> {
        let unit = &self.books.units[command.unit];
        let nexus = self.nexus(command.unit);
        self.books.operations.set(self.books.operations.get() + 1);
        let data = self.world.buffers().copy_of(&command.data).freeze();
        let [high, low] = unit.lun().to_be_bytes();
        let lun = [high, low, 0, 0, 0, 0, 0, 0];
        // From here on to the look at attentions nobody else runs.
        let is_there = nexus.target().unit(unit.lun()).is_some();
        let due = is_there && self.due[command.unit].replace(false);
        let cancel = command.cancel.clone().unwrap_or_default();
        let clock = self.books.clock.get();
        let note = |what: &str| {
            self.world.note(|| {
                let (host, cdb) = (self.number, &command.cdb);
                format!("host {host}, {}, {clock}: {cdb:02x?} {what}", unit.name)
            });
        };
        note("begins");
        command.upsets.set(self.books.upsets());
        let waiting = self.array.asked.begin("command", unit.name.clone());
        let (task, answered) = self.begin_task(command, &cancel);
        let executed = nexus.execute_making_room(lun, command.cdb.into(), data, cancel);
        let response = executed.await;
        waiting.end(response.status == GOOD);
        let is_answered = self.end_task(&task);
        note(&format!("says {:#x}", response.status));
        let attention = is_attention(&response);
        if due && !attention {
            self.fail(format!(
                "host {} is not told of a reset of {}: {:02x?} says {:#x}",
                self.number, unit.name, command.cdb, response.status
            ));
        }
        if attention {
            // A command that found no room is tried again, and hears then of what came since.
            self.due[command.unit].set(false);
            let heard = &self.heard[command.unit];
            heard.set(heard.get() + 1);
            if heard.get() > self.array.owed[command.unit].get() {
                self.fail(format!(
                    "host {} is told of what was not at {}: {:02x?}",
                    self.number, unit.name, response.sense
                ));
            }
        }
        match is_answered {
            true => Ok(response),
            // The sender goes with the boot only.
            false => Err(answered.await.unwrap_or(u64::MAX)),
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

    /// Changes reservations, unless somebody else does.
    async fn call(&self) {
        let number = self.any_unit();
        let unit = &self.books.units[number];
        if unit.calling.get().is_some() || !unit.turns.get().is_multiple_of(2) {
            return;
        }
        let key = self.number + 10;
        let kind = *self.prng.borrow_mut().pick(&TYPES);
        let call = match self.below(12) {
            0..=3 => Call::Register {
                key,
                keep: self.below(3) > 0,
            },
            4 => Call::Register {
                key: 0,
                keep: self.below(2) > 0,
            },
            5..=7 => Call::Reserve { kind },
            8 => Call::Release { kind },
            9 if self.below(3) == 0 => Call::Clear,
            _ => Call::Preempt {
                victim: self.below(self.books.hosts + 1) + 9,
                kind,
                abort: self.below(2) == 0,
            },
        };
        // Nobody has the key 9: it stands for none.
        let call = match call {
            Call::Preempt {
                victim: 9,
                kind,
                abort,
            } => Call::Preempt {
                victim: 0,
                kind,
                abort,
            },
            call => call,
        };
        unit.calling.set(Some((self.number, call)));
        unit.turns.set(unit.turns.get() + 1);
        self.array.owe(number, 3);
        let response = self.place_call(number, call, key).await;
        self.answer_aborted(By::Preempting(number));
        let next = unit.fence.borrow().after(self.number, call);
        let known = unit.fence.borrow().keys.contains_key(&self.number);
        match (response.status, next) {
            (GOOD, Some(next)) => drop(unit.fence.replace(next)),
            (CONFLICT, None) => {}
            // Releasing another type, or preempting nobody, is wrong in itself.
            (CHECK_CONDITION, None) if known && response.sense[2] == 5 => {}
            (status, next) => self.fail(format!(
                "host {}: {call:?} says {status:#x}, and should lead from {:?} to {next:?}",
                self.number,
                unit.fence.borrow()
            )),
        }
        let found = self.read_fence(number).await;
        let shown = unit.fence.borrow().shown();
        if found.as_ref() != Some(&shown) {
            self.fail(format!("after {call:?} there is {found:?}, not {shown:?}"));
        }
        unit.turns.set(unit.turns.get() + 1);
        unit.calling.set(None);
    }

    async fn place_call(&self, unit: usize, call: Call, key: u64) -> Response {
        let (action, kind, action_key, flags) = match call {
            Call::Register { key, keep } => (6, 0, key, u8::from(keep)),
            Call::Reserve { kind } => (1, kind, 0, 0),
            Call::Release { kind } => (2, kind, 0, 0),
            Call::Clear => (3, 0, 0, 0),
            Call::Preempt {
                victim,
                kind,
                abort,
            } => (4 + u8::from(abort), kind, victim, 0),
        };
        let mut cdb = [0; 16];
        cdb[..9].copy_from_slice(&[0x5f, action, kind, 0, 0, 0, 0, 0, 24]);
        let mut list = [key.to_be_bytes(), action_key.to_be_bytes()].concat();
        list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
        self.insist(unit, cdb, list).await
    }

    /// Until there is nothing else to say first.
    async fn insist(&self, unit: usize, cdb: [u8; 16], data: Vec<u8>) -> Response {
        let command = Command {
            needs: Vec::new(),
            ..Command::at(unit, cdb, data, false)
        };
        for _ in 0..ATTENTIONS_MAX {
            if let Ok(response) = self.execute(&command).await
                && !is_attention(&response)
            {
                return response;
            }
        }
        self.fail_of_attentions();
        Response::default()
    }

    /// What is reserved.
    pub(super) async fn read_fence(&self, unit: usize) -> Option<Shown> {
        let mut cdb = [0; 16];
        cdb[..9].copy_from_slice(&[0x5e, 0, 0, 0, 0, 0, 0, 4, 0]);
        let keys = bytes_of(&self.insist(unit, cdb, Vec::new()).await);
        cdb[1] = 1;
        let held = bytes_of(&self.insist(unit, cdb, Vec::new()).await);
        let keys = keys.get(8..)?.as_chunks::<8>().0.iter();
        let mut keys: Vec<u64> = keys.map(|key| u64::from_be_bytes(*key)).collect();
        keys.sort_unstable();
        let held = held.get(8..24).map(|held| {
            let key = held[..8]
                .iter()
                .fold(0, |key, byte| key << 8 | u64::from(*byte));
            (key, held[13])
        });
        Some((keys, held))
    }
}

fn is_attention(response: &Response) -> bool {
    response.status == CHECK_CONDITION && response.sense[2] & 0xf == UNIT_ATTENTION
}

pub(super) fn sixteen(opcode: u8, lba: u64, sectors: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&sectors.to_be_bytes());
    cdb
}

pub(super) fn bytes_of(response: &Response) -> Vec<u8> {
    let parts = response.data.parts.iter();
    parts
        .filter_map(|part| part.bytes())
        .flatten()
        .copied()
        .collect()
}
