//! An initiator that does what comes to its mind, and keeps books.

use super::Books;
use super::fence::{Call, Shown, TYPES};
use super::history::Deed;
use base::{Prng, SECTOR_BYTES};
use engine::World;
use scsi::{Nexus, Response};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world::sim::SimWorld;

const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
const CONFLICT: u8 = 0x18;

const UNIT_ATTENTION: u8 = 6;
const MISCOMPARE: u8 = 0xe;

/// Unit attentions one after the other that are believed.
const ATTENTIONS_MAX: u32 = 50;

pub(super) struct Host {
    number: u64,
    nexus: Rc<Nexus<SimWorld>>,
    world: SimWorld,
    books: Rc<Books>,
    prng: RefCell<Prng>,
    /// Of the values that it writes.
    written: Cell<u64>,
    /// What it last knew of each register.
    known: RefCell<Vec<u64>>,
}

/// A command to be, and what it does.
struct Order {
    cdb: [u8; 16],
    data: Vec<u8>,
    deed: Deed,
}

impl Host {
    pub(super) fn new(
        number: u64,
        nexus: Rc<Nexus<SimWorld>>,
        world: SimWorld,
        books: Rc<Books>,
        prng: Prng,
    ) -> Self {
        let known = RefCell::new(vec![0; books.registers.borrow().len()]);
        // Never the same again, in other boots either.
        let written = Cell::new(books.clock.get() << 8);
        Host {
            number,
            nexus,
            world,
            books,
            prng: RefCell::new(prng),
            written,
            known,
        }
    }

    fn fail(&self, what: impl Into<String>) {
        self.books.fail(&self.world, what);
    }

    fn below(&self, end: u64) -> u64 {
        self.prng.borrow_mut().below(end)
    }

    fn new_value(&self) -> u64 {
        self.written.set(self.written.get() + 1);
        (self.written.get() << 4) | (self.number + 1)
    }

    /// A few commands, one after the other or some at once.
    pub(super) async fn work(&self) {
        for _ in 0..=self.below(3) {
            let pause = Duration::from_nanos(self.below(40_000));
            self.world.sleep(pause).await;
            match self.below(24) {
                0 => self.nexus.target().unit_reset(0),
                1..=4 => self.call().await,
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

    /// Reads all registers.
    pub(super) async fn read_all(&self) {
        let count = self.books.registers.borrow().len();
        for register in 0..count {
            self.perform(register, true).await;
        }
    }

    async fn operate(&self) {
        let count = self.books.registers.borrow().len() as u64;
        let register = self.below(count) as usize;
        self.perform(register, false).await;
    }

    /// One operation on a register; only a read, if so asked. Tried again until there is
    /// nothing else to say first.
    async fn perform(&self, register: usize, reads: bool) {
        let (lba, sectors) = {
            let registers = self.books.registers.borrow();
            let register = &registers[register];
            if register.history.is_long() {
                return;
            }
            (register.lba, register.sectors)
        };
        let order = match reads {
            true => self.read(lba, sectors),
            false => self.order(register, lba, sectors),
        };
        let aborts = !reads && self.below(12) == 0;
        for _ in 0..ATTENTIONS_MAX {
            self.books.operations.set(self.books.operations.get() + 1);
            let turn = self.books.turns.get();
            let begun = self.books.tick();
            let history = |visit: &mut dyn FnMut(&mut super::History)| {
                visit(&mut self.books.registers.borrow_mut()[register].history);
            };
            let mut number = 0;
            history(&mut |history| number = history.begin(order.deed, begun));
            let response = self.execute(order.cdb, &order.data).await;
            let ended = self.books.tick();
            let certain = turn == self.books.turns.get() && turn.is_multiple_of(2);
            let writes = !matches!(order.cdb[0], 0x88);
            let admitted = self.books.fence.borrow().admits(self.number, writes);
            let refused = response.status == CONFLICT;
            if certain && admitted == refused && !is_attention(&response) {
                self.fail(format!(
                    "host {}: {:02x?} {}, with {:?}",
                    self.number,
                    order.cdb,
                    if refused { "is refused" } else { "is run" },
                    self.books.fence.borrow()
                ));
            }
            if refused || is_attention(&response) {
                history(&mut |history| history.refuse(number));
                match refused {
                    true => return,
                    false => continue,
                }
            }
            if aborts {
                return history(&mut |history| history.abandon(number, ended));
            }
            let Some(deed) = self.outcome(&order, &response) else {
                return self.fail(format!(
                    "host {}: {:02x?} said {:#x}, {:02x?}",
                    self.number, order.cdb, response.status, response.sense
                ));
            };
            if let Deed::Read(value) | Deed::Write(value) | Deed::Exchanged { new: value, .. } =
                deed
            {
                self.known.borrow_mut()[register] = value;
            }
            return history(&mut |history| history.end(number, deed, ended));
        }
        self.fail(format!(
            "host {}: unit attentions without an end",
            self.number
        ));
    }

    /// What a command did, by its answer.
    fn outcome(&self, order: &Order, response: &Response) -> Option<Deed> {
        match (order.deed, response.status) {
            (Deed::Perhaps { .. }, GOOD) if order.cdb[0] == 0x88 => {
                value_of(response).map(Deed::Read)
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

    async fn execute(&self, cdb: [u8; 16], data: &[u8]) -> Response {
        let data = self.world.buffers().copy_of(data).freeze();
        self.nexus.execute([0; 8], cdb, data).await
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

    fn order(&self, register: usize, lba: u64, sectors: u32) -> Order {
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
                    _ => self.known.borrow()[register],
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
        if self.books.calling.get().is_some() {
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
        self.books.calling.set(Some((self.number, call)));
        self.books.turns.set(self.books.turns.get() + 1);
        let response = self.place_call(call, key).await;
        let next = self.books.fence.borrow().after(self.number, call);
        let known = self.books.fence.borrow().keys.contains_key(&self.number);
        match (response.status, next) {
            (GOOD, Some(next)) => drop(self.books.fence.replace(next)),
            (CONFLICT, None) => {}
            // Releasing another type, or preempting nobody, is wrong in itself.
            (CHECK_CONDITION, None) if known && response.sense[2] == 5 => {}
            (status, next) => self.fail(format!(
                "host {}: {call:?} says {status:#x}, and should lead from {:?} to {next:?}",
                self.number,
                self.books.fence.borrow()
            )),
        }
        let found = self.read_fence().await;
        let shown = self.books.fence.borrow().shown();
        if found.as_ref() != Some(&shown) {
            self.fail(format!("after {call:?} there is {found:?}, not {shown:?}"));
        }
        self.books.turns.set(self.books.turns.get() + 1);
        self.books.calling.set(None);
    }

    async fn place_call(&self, call: Call, key: u64) -> Response {
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
        self.insist(cdb, &list).await
    }

    /// Until there is nothing else to say first.
    async fn insist(&self, cdb: [u8; 16], data: &[u8]) -> Response {
        for _ in 0..ATTENTIONS_MAX {
            let response = self.execute(cdb, data).await;
            if !is_attention(&response) {
                return response;
            }
        }
        self.fail(format!(
            "host {}: unit attentions without an end",
            self.number
        ));
        Response::default()
    }

    /// What is reserved.
    pub(super) async fn read_fence(&self) -> Option<Shown> {
        let mut cdb = [0; 16];
        cdb[..9].copy_from_slice(&[0x5e, 0, 0, 0, 0, 0, 0, 4, 0]);
        let keys = bytes_of(&self.insist(cdb, &[]).await);
        cdb[1] = 1;
        let held = bytes_of(&self.insist(cdb, &[]).await);
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

fn sixteen(opcode: u8, lba: u64, sectors: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&sectors.to_be_bytes());
    cdb
}

/// Sectors that hold a value, again and again.
fn filled(value: u64, sectors: u32) -> Vec<u8> {
    value
        .to_le_bytes()
        .repeat(sectors as usize * SECTOR_BYTES / 8)
}

fn bytes_of(response: &Response) -> Vec<u8> {
    let parts = response.data.parts.iter();
    parts
        .filter_map(|part| part.bytes())
        .flatten()
        .copied()
        .collect()
}

/// The value that all that was read holds; nothing, where it is torn.
fn value_of(response: &Response) -> Option<u64> {
    let bytes = bytes_of(response);
    let first = u64::from_le_bytes(*bytes.first_chunk()?);
    let mut all = bytes.as_chunks::<8>().0.iter();
    all.all(|value| u64::from_le_bytes(*value) == first)
        .then_some(first)
}
