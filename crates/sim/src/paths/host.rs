//! A host with several paths: what it does, and what it makes of the answers.

use super::array::{Array, target_name};
use super::slot::Slot;
use super::{Books, SECTORS};
use crate::history::{Deed, filled, value_of};
use crate::wire::aborts::{
    ABORT_TASK_SET, ANSWER_MAX, Aborting, CLEAR_TASK_SET, DONE, UNIT_RESET, abort,
};
use crate::wire::login::Identity;
use crate::wire::path::{Answer, Command, Outcome, Path};
use array::wake::in_time;
use base::{Prng, SECTOR_BYTES};
use engine::World;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
const BUSY: u8 = 0x08;
const TASK_SET_FULL: u8 = 0x28;

const UNIT_ATTENTION: u8 = 6;
const MISCOMPARE: u8 = 0xe;

/// Others have given up what a reset has aborted after this time.
const RESET_MAX: Duration = Duration::from_millis(20);

/// How often a command is sent again that was not run.
const ATTEMPTS_MAX: u32 = 60;

/// Sectors of a long command, at most.
const LONG_SECTORS: u64 = 128;

pub(super) struct Host {
    pub(super) number: usize,
    pub(super) array: Rc<Array>,
    pub(super) books: Rc<Books>,
    slots: Vec<Rc<Slot>>,
    prng: RefCell<Prng>,
    /// Of the values that it writes.
    written: Cell<u64>,
}

impl Host {
    pub(super) fn new(number: usize, array: &Rc<Array>) -> Rc<Host> {
        let books = Rc::clone(&array.books);
        Rc::new_cyclic(|own| {
            let host = &books.hosts[number];
            let mut slots = Vec::new();
            for target in 0..books.targets {
                for (isid, portal) in &host.ways {
                    let who = Identity {
                        initiator: host.initiator.clone(),
                        isid: *isid,
                        target: target_name(target),
                        credential: None,
                    };
                    slots.push(Slot::new(own.clone(), array, target, who, *portal));
                }
            }
            Host {
                number,
                array: Rc::clone(array),
                slots,
                prng: RefCell::new(array.world.prng(&format!("host {number}"))),
                // Never the same again, in other boots either.
                written: Cell::new(books.clock.get() << 8),
                books: Rc::clone(&books),
            }
        })
    }

    fn below(&self, end: u64) -> u64 {
        self.prng.borrow_mut().below(end)
    }

    fn fail(&self, what: impl Into<String>) {
        self.books.fail(&self.array.world, what);
    }

    fn new_value(&self) -> u64 {
        self.written.set(self.written.get() + 1);
        (self.written.get() << 4) | (self.number as u64 + 1)
    }

    fn any_slot(&self, target: usize) -> Rc<Slot> {
        let slots: Vec<_> = self
            .slots
            .iter()
            .filter(|slot| slot.target == target)
            .collect();
        Rc::clone(slots[self.below(slots.len() as u64) as usize])
    }

    /// A few things, one after the other or some at once.
    pub(super) async fn work(&self) {
        for _ in 0..=self.below(3) {
            let pause = Duration::from_nanos(self.below(60_000));
            self.array.world.sleep(pause).await;
            let target = self.below(self.books.targets as u64) as usize;
            let slot = self.any_slot(target);
            match self.below(24) {
                0 => self.disturb(&slot).await,
                1 => self.vanish(&slot).await,
                2 => self.manage().await,
                3 => self.leave_or_ping(&slot).await,
                4 => slot.log_in_wrongly().await,
                5 | 6 => {
                    futures_util::future::join3(self.operate(), self.operate(), self.operate())
                        .await;
                }
                _ => self.operate().await,
            }
            if !self.array.goes_on() {
                return;
            }
        }
    }

    /// Goes without a word while commands run.
    async fn vanish(&self, slot: &Slot) {
        let pause = Duration::from_nanos(self.below(100_000));
        let vanish = async {
            self.array.world.sleep(pause).await;
            slot.vanish().await;
        };
        futures_util::future::join3(self.operate(), self.operate(), vanish).await;
    }

    /// Something goes wrong with a session; mostly that is its end.
    async fn disturb(&self, slot: &Slot) {
        let Some(path) = slot.path() else {
            return;
        };
        let digests = path.agreed.digests;
        match self.below(5) {
            0 | 1 => path.wire().cut(),
            2 => {
                path.is_disturbed.set(true);
                path.withholds.set(true);
                let unit = self.books.units.iter();
                let mut unit = unit
                    .enumerate()
                    .filter(|(_, unit)| unit.target == slot.target);
                if let Some((unit, _)) = unit.next() {
                    self.write(unit, 0..LONG_SECTORS).await;
                }
            }
            3 => path.skip_a_command(),
            _ if digests.header && digests.data => {
                path.is_disturbed.set(true);
                path.is_garbled.set(true);
                path.wire().garble();
            }
            _ => {
                self.be_deaf(slot, &path).await;
            }
        }
    }

    /// Takes nothing for a while, with answers that wait for it.
    async fn be_deaf(&self, slot: &Slot, path: &Path) {
        path.set_deaf(true);
        let pause = self
            .array
            .world
            .sleep(Duration::from_millis(self.below(800)));
        let mut units = self.books.units.iter();
        let unit = units.position(|unit| unit.target == slot.target);
        let reads = async {
            if let Some(unit) = unit {
                futures_util::future::join(self.read_all(unit), self.read_all(unit)).await;
            }
        };
        let hear = async {
            pause.await;
            path.set_deaf(false);
        };
        futures_util::future::join(reads, hear).await;
    }

    async fn leave_or_ping(&self, slot: &Rc<Slot>) {
        let Some(path) = slot.up().await else {
            return;
        };
        let leaves = path.is_asked_to_leave.get() || self.below(2) == 0;
        let world = &self.array.world;
        let answered = match leaves {
            true => in_time(world, ANSWER_MAX, path.log_out()).await,
            false => in_time(world, ANSWER_MAX, path.ping()).await,
        };
        if answered.is_none() {
            self.fail(format!(
                "host {}: no answer to a ping or logout",
                self.number
            ));
        }
    }

    async fn operate(&self) {
        let number = self.below(self.books.units.len() as u64) as usize;
        let sectors = SECTORS;
        let most = if self.below(4) == 0 { LONG_SECTORS } else { 12 };
        let len = 1 + self.below(most.min(sectors));
        let start = self.below(sectors - len + 1);
        match self.below(8) {
            0..=2 => self.read(number, start..start + len).await,
            3 => self.exchange(number, start).await,
            _ => self.write(number, start..start + len).await,
        }
    }

    pub(super) async fn read_all(&self, unit: usize) {
        let sectors = SECTORS;
        self.read(unit, 0..sectors).await;
    }

    async fn read(&self, unit: usize, run: Range<u64>) {
        let nothing = Deed::Perhaps {
            expected: 0,
            new: 0,
        };
        let deeds = run.clone().map(|_| nothing.clone()).collect();
        let command = self.command(unit, 0x88, &run, Vec::new());
        let bytes = command.read_bytes;
        let Some((begun, answer)) = self.perform(unit, (run.clone(), deeds), command).await else {
            return;
        };
        let values = answer.data.chunks(SECTOR_BYTES).map(value_of);
        match values.collect::<Option<Vec<u64>>>() {
            Some(values) if answer.data.len() == bytes => {
                self.books.end(unit, &begun, |nth| Deed::Read(values[nth]));
            }
            _ => {
                let came = answer.data.len();
                self.fail(format!(
                    "host {}: sectors {run:?} are torn, or not whole: {came} bytes",
                    self.number
                ));
            }
        }
    }

    async fn write(&self, unit: usize, run: Range<u64>) {
        let values: Vec<u64> = run.clone().map(|_| self.new_value()).collect();
        let data = values.iter().flat_map(|value| filled(*value, 1)).collect();
        let deeds: Vec<Deed> = values.iter().copied().map(Deed::Write).collect();
        let command = self.command(unit, 0x8a, &run, data);
        let performed = self.perform(unit, (run.clone(), deeds.clone()), command);
        if let Some((begun, _)) = performed.await {
            return self.books.end(unit, &begun, |nth| deeds[nth].clone());
        }
        // It may be over without an answer: what had not happened by now must not happen.
        for _ in 0..3 {
            self.read(unit, run.clone()).await;
            let pause = Duration::from_nanos(self.below(300_000));
            self.array.world.sleep(pause).await;
        }
    }

    /// COMPARE AND WRITE of a sector.
    async fn exchange(&self, unit: usize, sector: u64) {
        let expected = self.books.units[unit].last_written(sector);
        let new = self.new_value();
        let deed = Deed::Perhaps { expected, new };
        let data = [filled(expected, 1), filled(new, 1)].concat();
        let run = sector..sector + 1;
        let command = self.command(unit, 0x89, &run, data);
        let performed = self.perform(unit, (run, vec![deed]), command).await;
        if let Some((begun, answer)) = performed {
            let deed = match answer.status {
                GOOD => Deed::Exchanged { expected, new },
                _ => Deed::Differed { expected },
            };
            self.books.end(unit, &begun, |_| deed.clone());
        }
    }

    fn command(&self, unit: usize, opcode: u8, run: &Range<u64>, data: Vec<u8>) -> Command {
        let sectors = (run.end - run.start) as u32;
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        cdb[2..10].copy_from_slice(&run.start.to_be_bytes());
        match opcode {
            0x89 => cdb[13] = sectors as u8,
            _ => cdb[10..14].copy_from_slice(&sectors.to_be_bytes()),
        }
        let reads = opcode == 0x88;
        Command {
            lun: self.books.units[unit].lun,
            cdb,
            data_out: data.into(),
            read_bytes: if reads {
                sectors as usize * SECTOR_BYTES
            } else {
                0
            },
        }
    }

    /// Runs a command that does `deeds` to a run of sectors, by any path, again where it was not
    /// run. Its answer is good, or says that a comparison failed; nothing, where it has none.
    async fn perform(
        &self,
        unit: usize,
        (run, deeds): (Range<u64>, Vec<Deed>),
        command: Command,
    ) -> Option<(Vec<(u64, usize)>, Answer)> {
        let target = self.books.units[unit].target;
        for _ in 0..ATTEMPTS_MAX {
            let path = self.any_path(target).await?;
            let begun = self.books.begin(unit, &run, &deeds)?;
            let Some(outcome) = self.run_counted(unit, &path, &command).await else {
                // It was not sent.
                self.books.refuse(unit, &begun);
                continue;
            };
            let answer = match outcome {
                Outcome::Said(answer) => answer,
                Outcome::Over(at) => {
                    self.books.abandon(unit, &begun, at);
                    return None;
                }
            };
            let key = answer.sense_key();
            match (answer.status, key) {
                (GOOD, _) => return Some((begun, answer)),
                (CHECK_CONDITION, Some(MISCOMPARE)) if command.cdb[0] == 0x89 => {
                    return Some((begun, answer));
                }
                (CHECK_CONDITION, Some(UNIT_ATTENTION)) | (BUSY | TASK_SET_FULL, _) => {
                    self.books.refuse(unit, &begun);
                    self.array.world.sleep(Duration::from_micros(100)).await;
                }
                _ => {
                    self.books.abandon(unit, &begun, self.books.tick());
                    self.check_failure(&path, &command, &answer);
                    return None;
                }
            }
        }
        self.fail(format!("host {}: a command is never run", self.number));
        None
    }

    /// A session with a target. One that is asked to leave does so, or lets itself be closed.
    async fn any_path(&self, target: usize) -> Option<Rc<Path>> {
        let slot = self.any_slot(target);
        let path = slot.up().await?;
        if path.is_asked_to_leave.get() && self.below(2) == 0 {
            path.log_out().await;
            return slot.up().await;
        }
        Some(path)
    }

    /// A command fails only where a bit was turned.
    fn check_failure(&self, path: &Path, command: &Command, answer: &Answer) {
        if !path.is_garbled.get() {
            let (host, cdb) = (self.number, command.cdb);
            self.fail(format!("host {host}: {cdb:02x?} says {answer:02x?}"));
        }
    }

    /// As [`Host::run_on`]; it counts by the limits of the unit's volume.
    async fn run_counted(
        &self,
        unit: usize,
        path: &Rc<Path>,
        command: &Command,
    ) -> Option<Outcome> {
        let sent = self.array.world.now();
        let outcome = self.run_on(path, command.clone()).await?;
        if matches!(&outcome, Outcome::Said(answer) if answer.status == GOOD) {
            let went = (sent, &command.cdb);
            self.books.went(&self.array.world, unit, went);
        }
        Some(outcome)
    }

    /// Runs a command, and sometimes aborts it. Nothing, where it was not sent.
    async fn run_on(&self, path: &Rc<Path>, command: Command) -> Option<Outcome> {
        self.books.operations.set(self.books.operations.get() + 1);
        let (lun, cdb) = (command.lun, command.cdb);
        let (tag, ended) = path.begin(command).await?;
        let (number, tsih) = (self.number, path.agreed.tsih);
        let note = |what: &str| {
            let world = &self.array.world;
            world.note(|| format!("host {number}, session {tsih}, task {tag}: {cdb:02x?} {what}"));
        };
        note("is sent");
        if self.below(10) == 0 {
            let after = Duration::from_nanos(self.below(200_000));
            self.abort_later(path, (tag, lun), after);
        }
        match in_time(&self.array.world, ANSWER_MAX, ended).await {
            Some(outcome) => {
                note("is over");
                Some(outcome.unwrap_or(Outcome::Over(u64::MAX)))
            }
            None => {
                let up = path.is_up();
                self.fail(format!(
                    "host {}: no answer in {ANSWER_MAX:?}, up: {up}",
                    self.number
                ));
                Some(Outcome::Over(u64::MAX))
            }
        }
    }

    fn abort_later(&self, path: &Rc<Path>, (tag, lun): (u32, u16), after: Duration) {
        let (array, path) = (Rc::clone(&self.array), Rc::clone(path));
        let number = self.number;
        self.array.world.spawn(async move {
            array.world.sleep(after).await;
            let tick = || array.books.tick();
            if let Err(what) = abort(&array.front, &path, (tag, lun), &tick).await {
                array
                    .books
                    .fail(&array.world, format!("host {number}: {what}"));
            }
        });
    }

    /// A function that ends several commands: of this session, or of all at a unit.
    async fn manage(&self) {
        let unit = &self.books.units[self.below(self.books.units.len() as u64) as usize];
        let Some(path) = self.any_slot(unit.target).up().await else {
            return;
        };
        let functions = [ABORT_TASK_SET, CLEAR_TASK_SET, UNIT_RESET];
        let function = functions[self.below(3) as usize];
        let paths = || -> Vec<Rc<Path>> {
            let hosts = self.books.all_hosts();
            let paths = hosts.iter().flat_map(|host| host.paths(unit.target));
            paths.collect()
        };
        // ABORT TASK SET concerns its own session only.
        let meant = |paths: Vec<Rc<Path>>| match function {
            ABORT_TASK_SET => vec![Rc::clone(&path)],
            _ => paths,
        };
        let mut aborting = Aborting::begin(unit.lun, meant(paths()));
        let own = path.tasks_at(unit.lun);
        let managed = path.manage(function, unit.lun);
        match in_time(&self.array.world, ANSWER_MAX, managed).await {
            Some(Some(DONE)) => {
                let now = self.books.tick();
                own.iter().for_each(|tag| path.end(*tag, now));
                aborting.done(now, meant(paths()));
            }
            Some(None) => {
                self.array.world.sleep(RESET_MAX).await;
                aborting.done(self.books.tick(), meant(paths()));
            }
            answer => self.fail(format!(
                "host {}: function {function}: {answer:?}",
                self.number
            )),
        }
        // Others hear of a reset by unit attentions.
        let tick = || self.books.tick();
        let given_up = aborting.give_up(&self.array.front, RESET_MAX, &tick);
        if let Err(what) = given_up.await {
            self.fail(format!("after a reset: {what}"));
        }
    }

    /// Its sessions with a target.
    fn paths(&self, target: usize) -> Vec<Rc<Path>> {
        let slots = self.slots.iter().filter(|slot| slot.target == target);
        slots.filter_map(|slot| slot.path()).collect()
    }

    /// Tries to log in everywhere, whether it may or not.
    pub(super) async fn look_in(&self) {
        for slot in &self.slots {
            slot.up().await;
        }
    }

    /// Logs out everywhere, and in again: what the sessions held is free for the next ones.
    pub(super) async fn leave_and_return(&self) {
        for slot in &self.slots {
            slot.turn().await;
        }
    }
}
