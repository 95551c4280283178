//! The smoke benchmark: how many I/Os the engine and the simulated world get
//! through per second of the host's time.
//!
//! 4 KiB requests, 70 % reads, at random over a thick volume on a RAID 10 pool of
//! eight drives of constant latency, 64 outstanding, with length-only buffers in
//! virtual time. The caller measures the wall time of [`Bench::run`].

use base::{BufPool, Prng, Time, VolumeOffset};
use engine::{
    IoError, Level, NamedDrive, Pool, PoolError, PoolSpec, Provisioning, Volume, VolumeSpec, World,
};
use futures_channel::oneshot;
use model::constant::Constant;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use world::sim::{Deadlock, ModelledMedia, Order, Outcome, SimDrive, SimWorld};

const DRIVES: u64 = 8;
const DRIVE_BYTES: u64 = 1 << 40;
const VOLUME_BYTES: u64 = 4 << 30;
const IO_BYTES: u64 = 4096;
const FILL_BYTES: usize = 1 << 20;
const OUTSTANDING: u64 = 64;

/// Why the benchmark has no figure.
#[derive(Debug)]
pub enum RateError {
    /// The pool could not be made or closed.
    Pool(PoolError),
    /// A request failed.
    Io(IoError),
    /// Something waits for ever.
    Deadlock(Deadlock),
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateError::Pool(error) => write!(f, "the pool of the benchmark: {error}"),
            RateError::Io(error) => write!(f, "a request of the benchmark: {error}"),
            RateError::Deadlock(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RateError {}

/// What came of it, in virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests that ended well.
    pub ios: u64,
    /// Virtual time from the first to the last.
    pub virtual_time: Duration,
    /// Mean time of a read.
    pub mean_read_latency: Duration,
    /// Mean time of a write.
    pub mean_write_latency: Duration,
    /// Hash over everything that happened.
    pub trace_hash: u64,
}

/// A pool with a full volume, ready to be measured.
pub struct Bench {
    world: SimWorld,
    pool: Pool<SimWorld>,
    volume: Volume<SimWorld>,
}

#[derive(Default)]
struct Counts {
    left: Cell<u64>,
    reads: Cell<u64>,
    writes: Cell<u64>,
    read_nanos: Cell<u64>,
    write_nanos: Cell<u64>,
    failure: RefCell<Option<IoError>>,
}

fn finish<T>(world: &SimWorld, root: impl Future<Output = T>) -> Result<T, RateError> {
    match world.run(u64::MAX, root).map_err(RateError::Deadlock)? {
        Outcome::Done(value) => Ok(value),
        Outcome::Cut => unreachable!("nothing limits the polls"),
    }
}

impl Bench {
    /// Makes the pool and its volume.
    ///
    /// # Errors
    /// When the engine can't.
    pub fn prepare(seed: u64) -> Result<Bench, RateError> {
        let seed = Prng::from_seed(seed);
        let buffers = BufPool::length_only();
        let world = SimWorld::new(seed.clone(), Order::Fifo, buffers, Time(0));
        let drive = |place| {
            let name = format!("drive{place}");
            let media = ModelledMedia::new(DRIVE_BYTES, Constant::FLASH, seed.stream(&name));
            NamedDrive {
                name,
                drive: SimDrive::modelled(&world, &Rc::new(media)),
            }
        };
        let drives = (0..DRIVES).map(drive).collect();
        let spec = VolumeSpec {
            name: "full".to_owned(),
            size_bytes: VOLUME_BYTES,
            provisioning: Provisioning::Thick,
        };
        let (pool, volume) = finish(&world, async {
            let spec_of_pool = PoolSpec::new("rate", Level::Raid10 { copies: 2 });
            let pool = Pool::create(world.clone(), spec_of_pool, drives).await?;
            let volume = pool.create_volume(spec).await?;
            Ok((pool, volume))
        })?
        .map_err(RateError::Pool)?;
        // What was never written is read from nowhere.
        let filled = finish(&world, async {
            for at in (0..VOLUME_BYTES).step_by(FILL_BYTES) {
                let data = world.buffers().data(FILL_BYTES).freeze();
                volume.write(VolumeOffset(at), data).await?;
            }
            Ok(())
        })?;
        filled.map_err(RateError::Io)?;
        Ok(Bench {
            world,
            pool,
            volume,
        })
    }

    /// Issues `ios` requests.
    ///
    /// # Errors
    /// The first request that failed.
    pub fn run(self, ios: u64) -> Result<Rate, RateError> {
        let began = self.world.now();
        let counts = Rc::new(Counts::default());
        counts.left.set(ios);
        let mut ends = Vec::new();
        for worker in 0..OUTSTANDING {
            let (done, end) = oneshot::channel();
            let prng = self.world.prng(&format!("worker {worker}"));
            let work = work(
                self.world.clone(),
                self.volume.clone(),
                Rc::clone(&counts),
                prng,
            );
            self.world.spawn(async move {
                work.await;
                // The receiver lives as long as the run.
                let _ = done.send(());
            });
            ends.push(end);
        }
        finish(&self.world, async {
            for end in ends {
                // A sender dropped is a worker gone with its world: not here.
                let _ = end.await;
            }
        })?;
        let ended = self.world.now();
        let closed = finish(&self.world, self.pool.close())?;
        let trace_hash = self.world.trace_hash();
        self.world.power_off();
        closed.map_err(RateError::Pool)?;
        if let Some(error) = counts.failure.borrow_mut().take() {
            return Err(RateError::Io(error));
        }
        let mean = |nanos: u64, count: u64| Duration::from_nanos(nanos / count.max(1));
        Ok(Rate {
            ios: counts.reads.get() + counts.writes.get(),
            virtual_time: ended.since(began),
            mean_read_latency: mean(counts.read_nanos.get(), counts.reads.get()),
            mean_write_latency: mean(counts.write_nanos.get(), counts.writes.get()),
            trace_hash,
        })
    }
}

fn add(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get() + by);
}

async fn work(world: SimWorld, volume: Volume<SimWorld>, counts: Rc<Counts>, mut prng: Prng) {
    while counts.left.get() > 0 && counts.failure.borrow().is_none() {
        counts.left.set(counts.left.get() - 1);
        let at = VolumeOffset(prng.below(VOLUME_BYTES / IO_BYTES) * IO_BYTES);
        let reads = prng.chance(7, 10);
        let began = world.now();
        let outcome = if reads {
            volume.read(at, IO_BYTES as usize).await.map(drop)
        } else {
            volume
                .write(at, world.buffers().data(IO_BYTES as usize).freeze())
                .await
        };
        if let Err(error) = outcome {
            counts.failure.borrow_mut().get_or_insert(error);
            return;
        }
        let nanos = world.now().since(began).as_nanos() as u64;
        let (count, time) = if reads {
            (&counts.reads, &counts.read_nanos)
        } else {
            (&counts.writes, &counts.write_nanos)
        };
        add(count, 1);
        add(time, nanos);
    }
}
