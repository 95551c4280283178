//! Counts how pools answer operations, and checks that they answer in time.
//!
//! Every operation has a bound in virtual time, made of the time-outs that the
//! configuration allows ([`crate::config::Config::patience`]). One that takes longer is
//! named, and the run ends there: what hangs would go on for ever. Time in which the
//! process stood still, and in which more was lost than a pool can do without, does not
//! count.

use base::Time;
use engine::World;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;
use world_sim::{Alarm, SimWorld};

/// How operations of a kind were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of operations that ended well.
    pub good: u64,
    /// With an error, whether it was one that may be or not.
    pub bad: u64,
    /// The longest, in thousandths of its bound.
    pub longest: u64,
}

/// Counts of answers, by kind of operation.
pub type Counts = BTreeMap<&'static str, Count>;

/// Requests that must be refused.
pub const WRONG: &str = "wrong";

/// Blocks that are lost, and were told to be.
pub const LOST: &str = "medium error";

/// Adds what another run has counted.
pub fn add(counts: &mut Counts, others: &Counts) {
    for (kind, other) in others {
        let count = counts.entry(kind).or_default();
        count.good += other.good;
        count.bad += other.bad;
        count.longest = count.longest.max(other.longest);
    }
}

/// Of so many operations of a kind one has to end well, over many seeds.
const GOOD_OF: u64 = 10;

/// Kinds that mostly are refused, rightly: of these one has to end well in all.
const SELDOM: [&str; 3] = ["remove group", "snapshots", "late drive"];

/// Kinds of which too few ended well for anything to be proved by them.
pub fn too_few(counts: &Counts) -> Vec<&'static str> {
    let is_bad = |(kind, count): &(&&'static str, &Count)| {
        let few = count.good * GOOD_OF < count.good + count.bad;
        count.good == 0 || (few && !SELDOM.contains(*kind))
    };
    let rightly = |(kind, _): &(&&'static str, &Count)| ![WRONG, LOST].contains(*kind);
    counts
        .iter()
        .filter(rightly)
        .filter(is_bad)
        .map(|(kind, _)| *kind)
        .collect()
}

/// Operations under way in one world.
#[derive(Clone)]
pub struct Asked(Rc<Books>);

struct Books {
    world: SimWorld,
    /// The longest that an operation may take that is done in few steps.
    bound: Cell<Duration>,
    counts: Rc<RefCell<Counts>>,
    under_way: RefCell<BTreeMap<u64, Operation>>,
    next: Cell<u64>,
    /// Time that does not count, so far.
    allowed: Cell<Duration>,
    fail: Box<dyn Fn(String)>,
}

struct Operation {
    kind: &'static str,
    what: String,
    begun: Time,
    /// Time that did not count before it began.
    allowed: Duration,
    bound: Duration,
}

/// How many times as long as a read or a write this may take: what goes through many
/// blocks, one after the other.
fn steps(kind: &str) -> u32 {
    match kind {
        "read" | "write" | "flush" => 1,
        _ => 8,
    }
}

impl Asked {
    /// Nothing is under way. `fail` is told of what takes too long.
    pub fn new(
        world: &SimWorld,
        bound: Duration,
        counts: &Rc<RefCell<Counts>>,
        fail: impl Fn(String) + 'static,
    ) -> Asked {
        Asked(Rc::new(Books {
            world: world.clone(),
            bound: Cell::new(bound),
            counts: Rc::clone(counts),
            under_way: RefCell::default(),
            next: Cell::new(0),
            allowed: Cell::default(),
            fail: Box::new(fail),
        }))
    }

    /// Waits for an answer, which must come in time.
    ///
    /// # Errors
    /// What was answered.
    pub async fn ask<T, E>(
        &self,
        kind: &'static str,
        what: String,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let waiting = self.begin(kind, what);
        let answer = answer.await;
        waiting.end(answer.is_ok());
        answer
    }

    /// Something begins that must end in time.
    pub fn begin(&self, kind: &'static str, what: String) -> Waiting<'_> {
        let (books, number) = (&self.0, self.0.next.get());
        books.next.set(number + 1);
        let operation = Operation {
            kind,
            what,
            begun: books.world.now(),
            allowed: books.not_counted(),
            bound: books.bound.get() * steps(kind),
        };
        let look = Look {
            books: Rc::downgrade(books),
            number,
        };
        let due = operation.begun + operation.bound;
        books.under_way.borrow_mut().insert(number, operation);
        books.world.at(due, Rc::new(look));
        Waiting {
            books,
            number,
            is_good: None,
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.0.under_way.borrow().is_empty()
    }

    /// What begins from now on may take so long.
    pub fn set_bound(&self, bound: Duration) {
        self.0.bound.set(bound);
    }

    /// So much time does not count: no engine could have answered in it.
    pub fn allow(&self, time: Duration) {
        self.0.allowed.set(self.0.allowed.get() + time);
    }
}

impl Books {
    fn not_counted(&self) -> Duration {
        self.allowed.get() + self.world.paused()
    }
}

/// An operation under way; it ends with this.
pub struct Waiting<'a> {
    books: &'a Books,
    number: u64,
    /// Nobody knows of what was cut off.
    is_good: Option<bool>,
}

impl Waiting<'_> {
    /// It was answered, well or with an error.
    pub fn end(mut self, is_good: bool) {
        self.is_good = Some(is_good);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let operation = self.books.under_way.borrow_mut().remove(&self.number);
        let Some(operation) = operation else { return };
        let took = self.books.world.now().since(operation.begun);
        let not_counted = self.books.not_counted() - operation.allowed;
        let took = took.saturating_sub(not_counted);
        let longest = took.as_micros() * 1000 / operation.bound.as_micros().max(1);
        let mut counts = self.books.counts.borrow_mut();
        let count = counts.entry(operation.kind).or_default();
        match self.is_good {
            Some(true) => count.good += 1,
            Some(false) => count.bad += 1,
            None => {}
        }
        count.longest = count.longest.max(longest as u64);
    }
}

/// A look at an operation when it should have ended.
struct Look {
    books: Weak<Books>,
    number: u64,
}

impl Alarm for Look {
    fn ring(self: Rc<Self>, now: Time) {
        let Some(books) = self.books.upgrade() else {
            return;
        };
        let late = {
            let under_way = books.under_way.borrow();
            let Some(operation) = under_way.get(&self.number) else {
                return;
            };
            let not_counted = books.not_counted() - operation.allowed;
            let due = operation.begun + operation.bound + not_counted;
            match due > now {
                true => Err(due),
                false => Ok(format!(
                    "no answer after {:?}, and at most {:?} are allowed: {} {}",
                    now.since(operation.begun),
                    operation.bound + not_counted,
                    operation.kind,
                    operation.what
                )),
            }
        };
        match late {
            Err(due) => books.world.at(due, self),
            Ok(what) => {
                books.world.note(|| format!("WRONG: {what}"));
                (books.fail)(what);
                books.world.cut();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BufPool, Prng};
    use world_sim::{Order, Outcome};

    const SECOND: Duration = Duration::from_secs(1);

    /// Whether it was cut, and what was said, of something that takes `seconds` where a
    /// second is allowed.
    fn run(kind: &'static str, seconds: u64, pause: Duration) -> (bool, String) {
        let world = SimWorld::new(Prng::from_seed(1), Order::Fifo, BufPool::new(), Time(0));
        let said: Rc<RefCell<String>> = Rc::default();
        let told = Rc::clone(&said);
        let fail = move |what| *told.borrow_mut() = what;
        let asked = Asked::new(&world, SECOND, &Rc::default(), fail);
        let here = world.clone();
        let outcome = world.run(1_000, async move {
            here.pause(pause);
            here.sleep(Duration::from_millis(1)).await;
            let answer = async {
                here.sleep(SECOND * seconds as u32).await;
                Ok::<(), ()>(())
            };
            asked.ask(kind, "of nothing".to_owned(), answer).await
        });
        world.power_off();
        (outcome == Ok(Outcome::Cut), said.take())
    }

    #[test]
    fn what_takes_too_long_is_named_and_ends_the_run() {
        assert_eq!(run("write", 0, SECOND), (false, String::new()));
        let (is_cut, said) = run("write", 2, Duration::ZERO);
        assert!(is_cut && said.contains("write of nothing"), "{said}");
        assert!(!run("close", 2, Duration::ZERO).0, "it has many steps");
    }

    #[test]
    fn kinds_that_are_hardly_ever_answered_well_are_told() {
        let count = |good, bad| Count {
            good,
            bad,
            longest: 0,
        };
        let mut counts = Counts::from([
            ("read", count(1, 9)),
            ("write", count(0, 0)),
            (WRONG, count(0, 9)),
        ]);
        assert_eq!(too_few(&counts), ["write"]);
        add(
            &mut counts,
            &Counts::from([("read", count(0, 1)), ("write", count(5, 0))]),
        );
        assert_eq!(too_few(&counts), ["read"]);
    }
}
