//! Closed loops of random commands on a drive, kind by kind, size by size, number by number.
//!
//! Invariants: a rate counts what ended while all of a loop's commands were outstanding; the drive is idle
//! between two loops.

use base::{DriveOffset, Slice};
use engine::drive::{Drive, DriveError};
use engine::world::World;
use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use world_real::{RealDrive, RealWorld};

/// Sizes of commands, bytes; the largest fits into a place.
pub const SIZES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// How many commands a loop keeps outstanding.
pub const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Which of these is half reads and half durable writes, where both are measured together.
const MIXED: usize = 3;

/// Parts that times of single commands are told in.
const SPREAD_PARTS: usize = 20;

/// Commands that a rate counts at least.
const COUNTED_MIN: usize = 16;

/// How long a point may take at the most, however slow the drive is.
const POINT_MAX: Duration = Duration::from_secs(60);

/// Where commands go: pieces of the drive, all alike.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Where the first one begins.
    pub start_bytes: u64,
    pub count: u64,
    /// From the beginning of one to that of the next.
    pub stride_bytes: u64,
    /// How long each of them is.
    pub bytes: u64,
}

/// A kind of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    DurableWrite,
    /// A write and a flush, of which the flush counts.
    Flush,
    /// Reads of every other loop, and durable writes of the others.
    Mixed,
}

impl Kind {
    /// What a loop of this number does.
    fn of(self, number: usize) -> Kind {
        match self {
            Kind::Mixed if number.is_multiple_of(2) => Kind::Read,
            Kind::Mixed => Kind::DurableWrite,
            kind => kind,
        }
    }
}

/// What was measured of a kind of commands.
pub struct Commands {
    /// A list for each of [`SIZES`], with a rate for each of [`DEPTHS`].
    pub per_s: Vec<Vec<f64>>,
    /// Mean times of the twentieths of single commands of the smallest size, against the mean of all.
    pub spread: Vec<f64>,
}

/// What was measured of a drive.
pub struct Figures {
    pub reads: Commands,
    pub writes: Commands,
    pub durable_writes: Commands,
    /// Flushes, each after a write of the smallest size: one list.
    pub flushes: Commands,
    /// What a durable write got of the drive beside as many reads, against what a read got.
    pub durable_write_share: f64,
}

struct Bench {
    world: RealWorld,
    drive: RealDrive,
    places: Places,
    each: Duration,
    /// What all writes write: random bytes, which no device makes smaller. They are the same at every place.
    content: Slice,
}

/// Measures all of it, for `each` a point; writes the places first.
///
/// # Errors
/// A sentence: what the drive says, or that it is too slow.
pub async fn all(
    world: &RealWorld,
    drive: RealDrive,
    places: Places,
    each: Duration,
) -> Result<Figures, String> {
    let mut content = world.buffers().zeroed(places.bytes as usize);
    if let Some(bytes) = content.bytes_mut() {
        world.prng("content").fill(bytes);
    }
    let bench = Rc::new(Bench {
        world: world.clone(),
        drive,
        places,
        each,
        content: content.freeze(),
    });
    bench.fill().await.map_err(|error| error.to_string())?;
    let reads = bench.commands(Kind::Read).await?;
    let writes = bench.commands(Kind::Write).await?;
    let durable_writes = bench.commands(Kind::DurableWrite).await?;
    Ok(Figures {
        flushes: bench.flushes().await?,
        durable_write_share: bench.durable_write_share(&reads, &durable_writes).await?,
        reads,
        writes,
        durable_writes,
    })
}

fn tell(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("{what}");
    }
}

/// A closed loop at work.
struct Running {
    kind: Kind,
    len_bytes: u64,
    depth: usize,
    /// Of commands that ended: when, and how long they took, nanoseconds.
    ended: RefCell<Vec<(u64, u64)>>,
    /// How many of them were durable writes, after each of them.
    durable: RefCell<Vec<usize>>,
    under_way: Cell<usize>,
    failure: RefCell<Option<DriveError>>,
    /// It ends then, unless too little was counted.
    end_ns: u64,
    /// When the first of its commands was not followed by another.
    thinned_ns: Cell<Option<u64>>,
    /// Part of the time that volatile writes took of all, with the flush that made them durable.
    sustained: Cell<f64>,
}

impl Running {
    fn until(end_ns: u64, kind: Kind, len_bytes: u64, depth: usize) -> Running {
        Running {
            kind,
            len_bytes,
            depth,
            ended: RefCell::default(),
            durable: RefCell::default(),
            under_way: Cell::new(depth),
            failure: RefCell::default(),
            end_ns,
            thinned_ns: Cell::default(),
            sustained: Cell::new(1.0),
        }
    }

    fn is_over(&self, now_ns: u64) -> bool {
        let ended = self.ended.borrow().len();
        let durable = self.durable.borrow().last().copied().unwrap_or(0);
        // Of a mix, each half for itself.
        let fewest = match self.kind {
            Kind::Mixed => durable.min(ended - durable),
            _ => ended,
        };
        let counted = fewest >= self.depth + COUNTED_MIN;
        let longest_ns = self.end_ns + POINT_MAX.as_nanos() as u64;
        let is_late = now_ns >= self.end_ns && counted || now_ns >= longest_ns;
        is_late || self.failure.borrow().is_some()
    }

    /// Which commands count: those that ended while all were outstanding, which is from the moment at which as
    /// many had ended as are outstanding, until one was not followed by another. The one before them begins
    /// the time.
    fn counted(&self) -> Result<Range<usize>, String> {
        let until = self.thinned_ns.get().unwrap_or(u64::MAX);
        let last = self
            .ended
            .borrow()
            .partition_point(|(end, _)| *end <= until);
        match last >= self.depth + COUNTED_MIN {
            true => Ok(self.depth..last),
            false => Err(format!(
                "{:?} of {} KiB, {} outstanding: fewer than {COUNTED_MIN} ended in {} s; it is too slow to be measured",
                self.kind,
                self.len_bytes >> 10,
                self.depth,
                POINT_MAX.as_secs()
            )),
        }
    }

    /// Commands a second while all were outstanding.
    fn per_s(&self) -> Result<f64, String> {
        let counted = self.counted()?;
        let ended = self.ended.borrow();
        let took_ns = ended[counted.end - 1].0 - ended[counted.start - 1].0;
        Ok(counted.len() as f64 * 1e9 / took_ns.max(1) as f64)
    }

    /// How many of those that count are reads, and how many durable writes.
    fn halves(&self) -> Result<(usize, usize), String> {
        let counted = self.counted()?;
        let durable = self.durable.borrow();
        let durable = durable[counted.end - 1] - durable[counted.start - 1];
        Ok((counted.len() - durable, durable))
    }

    /// The mean time of a command while all loops ran.
    fn mean_s(&self) -> Result<f64, String> {
        let counted = self.counted()?;
        let ended = self.ended.borrow();
        let took_ns: u64 = ended[counted.clone()]
            .iter()
            .map(|(_, took_ns)| took_ns)
            .sum();
        Ok(took_ns.max(1) as f64 / 1e9 / counted.len() as f64)
    }
}

impl Bench {
    fn now_ns(&self) -> u64 {
        self.world.now().as_nanos()
    }

    async fn fill(&self) -> Result<(), DriveError> {
        tell("writing all places once");
        for place in 0..self.places.count {
            let at = self.places.start_bytes + place * self.places.stride_bytes;
            let content = self.content.clone();
            self.drive.write(DriveOffset(at), content).await?;
        }
        self.drive.flush().await
    }

    async fn commands(self: &Rc<Self>, kind: Kind) -> Result<Commands, String> {
        let (mut per_s, mut spread) = (Vec::new(), Vec::new());
        for len_bytes in SIZES {
            let mut rates = Vec::new();
            for depth in DEPTHS {
                let running = self.point(kind, len_bytes, depth).await?;
                rates.push(running.per_s()? * running.sustained.get());
                if spread.is_empty() {
                    spread = spread_of(running.ended.borrow().iter().map(|(_, took)| *took));
                }
            }
            tell_rates(&format!("{kind:?}, {} KiB", len_bytes >> 10), &rates);
            per_s.push(rates);
        }
        Ok(Commands { per_s, spread })
    }

    /// Runs a closed loop, and waits until nothing of it is under way.
    async fn point(
        self: &Rc<Self>,
        kind: Kind,
        len_bytes: u64,
        depth: usize,
    ) -> Result<Rc<Running>, String> {
        let began_ns = self.now_ns();
        let end_ns = began_ns + self.each.as_nanos() as u64;
        let running = Rc::new(Running::until(end_ns, kind, len_bytes, depth));
        for number in 0..depth {
            let (bench, running) = (Rc::clone(self), Rc::clone(&running));
            self.world.spawn(async move {
                if let Err(error) = bench.run(&running, number).await {
                    running.failure.replace(Some(error));
                }
                running.under_way.set(running.under_way.get() - 1);
            });
        }
        while running.under_way.get() > 0 {
            self.world.sleep(Duration::from_millis(1)).await;
        }
        // Volatile writes are paid for by the loop that made them.
        let wrote_ns = self.now_ns() - began_ns;
        let flushed = self.drive.flush().await;
        let all_ns = self.now_ns() - began_ns;
        if kind == Kind::Write {
            let part = wrote_ns as f64 / all_ns.max(1) as f64;
            running.sustained.set(part);
        }
        match flushed.err().or(running.failure.take()) {
            Some(error) => Err(error.to_string()),
            None => Ok(running),
        }
    }

    /// One command after the other.
    async fn run(&self, running: &Running, number: usize) -> Result<(), DriveError> {
        let (kind, len_bytes, depth) = (running.kind, running.len_bytes, running.depth);
        let stream = format!("{kind:?} of {len_bytes}, {number} of {depth}");
        let mut prng = self.world.prng(&stream);
        let len = running.len_bytes as usize;
        let mut buf = self.world.buffers().zeroed(len);
        while !running.is_over(self.now_ns()) {
            let place = prng.below(self.places.count) * self.places.stride_bytes;
            let place = self.places.start_bytes + place;
            let within = prng.below(self.places.bytes / running.len_bytes) * running.len_bytes;
            let (at, mut began) = (DriveOffset(place + within), self.now_ns());
            let kind = running.kind.of(number);
            match kind {
                Kind::Read => {
                    let (back, read) = self.drive.read(at, buf).await;
                    buf = back;
                    read?;
                }
                Kind::Write => self.drive.write(at, self.content.slice(0, len)).await?,
                Kind::DurableWrite | Kind::Mixed => {
                    self.drive
                        .write_durable(at, self.content.slice(0, len))
                        .await?
                }
                Kind::Flush => {
                    self.drive.write(at, self.content.slice(0, len)).await?;
                    began = self.now_ns();
                    self.drive.flush().await?;
                }
            }
            let end = self.now_ns();
            running.ended.borrow_mut().push((end, end - began));
            let before = running.durable.borrow().last().copied().unwrap_or(0);
            let durable = before + usize::from(kind == Kind::DurableWrite);
            running.durable.borrow_mut().push(durable);
        }
        if running.thinned_ns.get().is_none() {
            running.thinned_ns.set(Some(self.now_ns()));
        }
        Ok(())
    }

    /// Flushes, each after a write of its own.
    async fn flushes(self: &Rc<Self>) -> Result<Commands, String> {
        let (mut rates, mut spread) = (Vec::new(), Vec::new());
        for depth in DEPTHS {
            let running = self.point(Kind::Flush, SIZES[0], depth).await?;
            rates.push(depth as f64 / running.mean_s()?);
            if spread.is_empty() {
                let ended = running.ended.borrow();
                spread = spread_of(ended.iter().map(|(_, took_ns)| *took_ns));
            }
        }
        tell_rates("Flush", &rates);
        Ok(Commands {
            per_s: vec![rates],
            spread,
        })
    }
}

impl Bench {
    /// What a durable write gets of the drive beside as many reads, against what a read gets. Of each counts the
    /// rate here against that with as many of its own kind outstanding as are here of both.
    async fn durable_write_share(
        self: &Rc<Self>,
        reads: &Commands,
        durable_writes: &Commands,
    ) -> Result<f64, String> {
        let running = self.point(Kind::Mixed, SIZES[0], DEPTHS[MIXED]).await?;
        let (read, written) = running.halves()?;
        let part = |count: usize, alone: &Commands| count as f64 / alone.per_s[0][MIXED];
        let share = part(written, durable_writes) / part(read.max(1), reads);
        tell(&format!(
            "a durable write gets {share:.2} of what a read gets beside it"
        ));
        Ok(share)
    }
}

fn tell_rates(what: &str, rates: &[f64]) {
    let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    tell(&format!("{what}: {} a second", rates.join(", ")));
}

/// The means of equal parts of `times`, the shortest first, against the mean of all.
fn spread_of(times: impl Iterator<Item = u64>) -> Vec<f64> {
    let mut times: Vec<f64> = times.map(|time| time.max(1) as f64).collect();
    times.sort_by(f64::total_cmp);
    if times.len() < SPREAD_PARTS {
        return vec![1.0];
    }
    let mean_of = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let mean = mean_of(&times);
    let part = |number: usize| number * times.len() / SPREAD_PARTS;
    let parts = (0..SPREAD_PARTS).map(|number| &times[part(number)..part(number + 1)]);
    parts.map(|of_part| mean_of(of_part) / mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_the_means_of_twentieths_against_the_mean() {
        // 1 to 40: parts of two.
        let spread = spread_of((1..=40).rev());
        assert_eq!(spread.len(), SPREAD_PARTS);
        assert!((spread[0] - 1.5 / 20.5).abs() < 1e-9, "{spread:?}");
        assert!((spread[19] - 39.5 / 20.5).abs() < 1e-9, "{spread:?}");
        assert_eq!(spread_of([5, 6].into_iter()), [1.0]);
    }

    /// Two outstanding, of which one ends every 100 ns, up to so many. One ends alone, much later.
    fn running(ended: u64) -> Running {
        let end = |number| (number * 100, 1);
        let durable = (1..=ended as usize + 1).map(|number| number / 4).collect();
        Running {
            ended: RefCell::new((1..=ended).map(end).chain([(1_000_000, 1)]).collect()),
            durable: RefCell::new(durable),
            thinned_ns: Cell::new(Some(ended * 100)),
            ..Running::until(0, Kind::Read, 4096, 2)
        }
    }

    #[test]
    fn a_rate_counts_what_ended_while_all_were_outstanding() {
        let per_s = running(18).per_s().expect("sixteen are enough");
        assert!((per_s / 1e7 - 1.0).abs() < 1e-9, "{per_s}");
        let Err(what) = running(17).per_s() else {
            panic!("fifteen are too few");
        };
        assert!(what.contains("too slow"), "{what}");
        assert!((running(18).mean_s().expect("sixteen") / 1e-9 - 1.0).abs() < 1e-9);
        // The third to the eighteenth: each fourth is a durable write.
        assert_eq!(running(18).halves(), Ok((12, 4)));
    }
}
