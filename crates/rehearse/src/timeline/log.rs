//! The messages of a run, in the order of its time.

use crate::parts::world::RigWorld;
use base::Time;
use engine::World;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEvent {
    /// From the start of the run.
    pub at: Duration,
    /// A sentence for people, without the time.
    pub text: String,
}

/// Something that took a time of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undertook {
    /// Its name for people, such as the event of the plan.
    pub what: String,
    /// When it began, from the start of the run.
    pub began: Duration,
    /// How long it took, or until the end of the run.
    pub took: Duration,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Whether it ended, and did not fail.
    pub has_ended: bool,
}

/// Something under way: since when, what, and the bytes that it has moved.
type Open = (Time, String, Rc<Cell<u64>>);

/// What has been told, and what is under way.
pub struct Log {
    world: RigWorld,
    began: Time,
    told: RefCell<Vec<RunEvent>>,
    open: RefCell<BTreeMap<u64, Open>>,
    undertook: RefCell<Vec<Undertook>>,
    next: Cell<u64>,
}

/// Something under way, from its beginning on.
pub struct Undertaking<'a> {
    log: &'a Log,
    number: u64,
    began: Time,
    what: String,
    /// Bytes that it has moved.
    pub bytes: Rc<Cell<u64>>,
}

impl Log {
    /// Nothing is told yet; times count from now on.
    pub fn new(world: &RigWorld) -> Log {
        Log {
            world: world.clone(),
            began: world.now(),
            told: RefCell::default(),
            open: RefCell::default(),
            undertook: RefCell::default(),
            next: Cell::new(0),
        }
    }

    /// Tells something that happens now.
    pub fn tell(&self, text: String) {
        self.tell_of(self.world.now(), text);
    }

    /// Tells something that happened at an instant of the world.
    pub fn tell_of(&self, at: Time, text: String) {
        let at = at.since(self.began);
        self.told.borrow_mut().push(RunEvent { at, text });
    }

    /// Tells that `what` begins, with what there is to say of it.
    pub fn begin(&self, what: String, more: &str) -> Undertaking<'_> {
        self.tell(format!("{what} begins: {more}"));
        let number = self.next.get();
        self.next.set(number + 1);
        let (began, bytes) = (self.world.now(), Rc::new(Cell::new(0)));
        let open = (began, what.clone(), Rc::clone(&bytes));
        self.open.borrow_mut().insert(number, open);
        Undertaking {
            log: self,
            number,
            began,
            what,
            bytes,
        }
    }

    /// What is no longer under way, or will never be.
    fn close(&self, (began, what, bytes): Open, has_ended: bool) {
        self.undertook.borrow_mut().push(Undertook {
            what,
            began: began.since(self.began),
            took: self.world.now().since(began),
            bytes: bytes.get(),
            has_ended,
        });
    }

    /// All of it. What is under way is told to be so.
    pub fn take(&self) -> (Vec<RunEvent>, Vec<Undertook>) {
        for (began, what, bytes) in self.open.take().into_values() {
            self.close((began, what.clone(), Rc::clone(&bytes)), false);
            let took = seconds(self.world.now().since(began));
            let moved = match bytes.get() {
                0 => String::new(),
                bytes => format!(", {} so far", amount(bytes)),
            };
            self.tell(format!("{what} has not ended with the run: {took}{moved}"));
        }
        let mut told = self.told.take();
        // Stable: what was told at one instant stays in its order.
        told.sort_by_key(|told| told.at);
        (told, self.undertook.take())
    }
}

/// Tells of an undertaking from elsewhere.
#[derive(Clone)]
pub struct Teller {
    what: String,
    began: Time,
    /// Bytes that it has moved.
    pub bytes: Rc<Cell<u64>>,
}

impl Teller {
    /// Tells of a stage of it.
    pub fn stage(&self, log: &Log, text: &str) {
        let took = seconds(log.world.now().since(self.began));
        log.tell(format!("{}: {text}, after {took}", self.what));
    }
}

impl Undertaking<'_> {
    /// One that tells of it, for tasks.
    pub fn teller(&self) -> Teller {
        Teller {
            what: self.what.clone(),
            began: self.began,
            bytes: Rc::clone(&self.bytes),
        }
    }

    /// Its name for people, with which all its messages begin.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The virtual time since it began.
    pub fn took(&self) -> Duration {
        self.log.world.now().since(self.began)
    }

    /// Tells of a stage of it.
    pub fn stage(&self, text: &str) {
        self.teller().stage(self.log, text);
    }

    fn close(&self, has_ended: bool) {
        let open = self.log.open.borrow_mut().remove(&self.number);
        if let Some(open) = open {
            self.log.close(open, has_ended);
        }
    }

    /// Closes it as ended and tells how long it took.
    pub fn end(self, text: &str) {
        self.close(true);
        let (what, took) = (&self.what, seconds(self.took()));
        self.log
            .tell(format!("{what} has ended after {took}: {text}"));
    }

    /// Closes it as failed and tells why, and after how long.
    pub fn fail(self, why: &str) {
        self.close(false);
        let (what, took) = (&self.what, seconds(self.took()));
        self.log
            .tell(format!("{what} has failed after {took}: {why}"));
    }
}

/// A duration for people.
pub fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.1} ms", s * 1e3),
    }
}

/// A number of bytes for people: in GiB, in MiB, or exactly.
pub fn amount(bytes: u64) -> String {
    let of = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        b if b >= 1 << 30 => format!("{:.1} GiB", of(1 << 30)),
        b if b >= 1 << 20 => format!("{:.1} MiB", of(1 << 20)),
        b => format!("{b} bytes"),
    }
}

/// A rate for people: `, 12.3 MB/s`, or nothing where nothing moved.
pub fn rate(bytes: u64, duration: Duration) -> String {
    match bytes > 0 && !duration.is_zero() {
        true => format!(", {:.1} MB/s", bytes as f64 / 1e6 / duration.as_secs_f64()),
        false => String::new(),
    }
}

/// `3 VMs`, or `1 VM`.
pub fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
