//! The smoke benchmark: simulated I/Os per second of the host's time.
//!
//! Requests at random over volumes that are laid out whole, on drives of constant
//! latency, with length-only buffers in virtual time. So many drives are many groups, and
//! many pools of at most [`POOL_DRIVES_MAX`] drives, with one volume for each drive and
//! the same requests outstanding at each, and all sums in RAM. The caller measures the wall time of
//! [`Bench::run`].

use base::{BufPool, Prng, Time, VolumeOffset};
use engine::{
    IoError, Lane, Level, NamedDrive, PoolError, PoolSpec, Provisioning, Volume, VolumeSpec, World,
};
use futures_channel::oneshot;
use futures_util::future::join_all;
use model::constant::Constant;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Deadlock, ModelledMedia, Order, Outcome, SimDrive, SimWorld};

const DRIVE_BYTES: u64 = 1 << 40;
const VOLUME_BYTES: u64 = 512 << 20;
/// RAM for reads of a pool, for each of its drives.
const CACHE_BYTES: u64 = 8 << 20;
/// Blocks of sums of a pool in RAM, for each of its drives: all of them.
const SUMS_BLOCKS: usize = 256;
/// One block of sums speaks for so much.
const WARMING_BYTES: usize = 2 << 20;
/// Drives of a pool, at most.
pub const POOL_DRIVES_MAX: u64 = 40;

/// A pool and the requests to it whose rate is measured.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Name in the output of the benchmark.
    pub name: &'static str,
    /// How each group protects its data.
    pub level: Level,
    /// Drives of each group.
    pub group_drives: u64,
    /// Drives in all, whole groups.
    pub drives: u64,
    /// Bytes of a request.
    pub io_bytes: u64,
    /// Of a hundred requests, those that read.
    pub read_percent: u64,
    /// Requests outstanding at each volume; there is one for each drive.
    pub outstanding: u64,
}

impl Load {
    /// The headline: sets of RAID 5, 8 KiB, nine of ten are reads.
    pub const RAID5: Load = Load {
        name: "RAID 5 (4+1)",
        level: Level::Raid5,
        group_drives: 5,
        drives: 10,
        io_bytes: 8192,
        read_percent: 90,
        outstanding: 8,
    };

    /// Mirrors, 4 KiB, seven of ten are reads.
    pub const RAID10: Load = Load {
        name: "RAID 10",
        level: Level::Raid10 { copies: 2 },
        group_drives: 8,
        drives: 8,
        io_bytes: 4096,
        read_percent: 70,
        outstanding: 8,
    };
}

/// Why the benchmark has no figure.
#[derive(Debug)]
pub enum RateError {
    /// A pool could not be made or closed.
    Pool(PoolError),
    /// A request failed with this error.
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

impl From<PoolError> for RateError {
    fn from(error: PoolError) -> Self {
        RateError::Pool(error)
    }
}

impl From<IoError> for RateError {
    fn from(error: IoError) -> Self {
        RateError::Io(error)
    }
}

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

/// Pools with full volumes, ready to be measured.
pub struct Bench {
    load: Load,
    world: SimWorld,
    pools: Vec<Lane<SimWorld>>,
    volumes: Vec<Volume<SimWorld>>,
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
    /// Makes the pools and their volumes.
    ///
    /// # Errors
    /// When the engine can't.
    pub fn prepare(load: Load, seed: u64) -> Result<Bench, RateError> {
        let seed = Prng::from_seed(seed);
        let buffers = BufPool::length_only();
        let mut bench = Bench {
            load,
            world: SimWorld::new(seed.clone(), Order::Fifo, buffers, Time(0)),
            pools: Vec::new(),
            volumes: Vec::new(),
        };
        let firsts = (0..load.drives).step_by(POOL_DRIVES_MAX as usize);
        let pools = firsts.map(|first| {
            let end = load.drives.min(first + POOL_DRIVES_MAX);
            bench.pool(&seed, first..end)
        });
        for made in finish(&bench.world, join_all(pools))? {
            let (pool, volumes) = made?;
            bench.pools.push(pool);
            bench.volumes.extend(volumes);
        }
        Ok(bench)
    }

    /// A pool of some of the drives, with a volume for each of them.
    async fn pool(
        &self,
        seed: &Prng,
        places: std::ops::Range<u64>,
    ) -> Result<(Lane<SimWorld>, Vec<Volume<SimWorld>>), RateError> {
        let drive = |place: u64| {
            let name = format!("drive{place}");
            let media = ModelledMedia::new(DRIVE_BYTES, Constant::FLASH, seed.stream(&name));
            let drive = SimDrive::modelled(&self.world, &Rc::new(media));
            NamedDrive { name, drive }
        };
        let Load {
            level,
            group_drives,
            ..
        } = self.load;
        let spec = PoolSpec::new(&format!("rate{}", places.start), level);
        let firsts = places.clone().step_by(group_drives as usize);
        let groups =
            firsts.map(|first| (level, (first..first + group_drives).map(drive).collect()));
        let (world, groups) = (self.world.clone(), groups.collect());
        let pool = Lane::create_groups(world, spec, groups, Vec::new()).await?;
        let count = places.end - places.start;
        pool.store().cache.set_capacity(CACHE_BYTES * count);
        let sums = &pool.store().integrity;
        sums.set_budget(SUMS_BLOCKS * count as usize);
        let mut volumes = Vec::new();
        for place in places {
            let spec = VolumeSpec {
                name: format!("vm{place}"),
                size_bytes: VOLUME_BYTES,
                provisioning: Provisioning::Thin,
            };
            let volume = pool.create_volume(spec).await?;
            volume.lay_out(0..VOLUME_BYTES).await?;
            // So that what is measured is the same for few drives and for many.
            for at in (0..VOLUME_BYTES).step_by(WARMING_BYTES) {
                let len = self.load.io_bytes as usize;
                volume.read(VolumeOffset(at), len).await?;
            }
            volumes.push(volume);
        }
        Ok((pool, volumes))
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
        for (number, volume) in self.volumes.iter().enumerate() {
            for worker in 0..self.load.outstanding {
                let (done, end) = oneshot::channel();
                let worker = Worker {
                    load: self.load,
                    world: self.world.clone(),
                    volume: volume.clone(),
                    counts: Rc::clone(&counts),
                    prng: self.world.prng(&format!("worker {number}.{worker}")),
                };
                self.world.spawn(async move {
                    worker.work().await;
                    // The receiver lives as long as the run.
                    let _ = done.send(());
                });
                ends.push(end);
            }
        }
        finish(&self.world, async {
            for end in ends {
                // A sender dropped is a worker gone with its world: not here.
                let _ = end.await;
            }
        })?;
        let ended = self.world.now();
        for pool in &self.pools {
            finish(&self.world, pool.close())??;
        }
        let trace_hash = self.world.trace_hash();
        self.world.power_off();
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

/// One request after the other.
struct Worker {
    load: Load,
    world: SimWorld,
    volume: Volume<SimWorld>,
    counts: Rc<Counts>,
    prng: Prng,
}

impl Worker {
    async fn work(mut self) {
        let counts = Rc::clone(&self.counts);
        while counts.left.get() > 0 && counts.failure.borrow().is_none() {
            counts.left.set(counts.left.get() - 1);
            let began = self.world.now();
            let is_read = self.prng.chance(self.load.read_percent, 100);
            if let Err(error) = self.request(is_read).await {
                counts.failure.borrow_mut().get_or_insert(error);
                return;
            }
            let nanos = self.world.now().since(began).as_nanos() as u64;
            let (count, time) = match is_read {
                true => (&counts.reads, &counts.read_nanos),
                false => (&counts.writes, &counts.write_nanos),
            };
            add(count, 1);
            add(time, nanos);
        }
    }

    async fn request(&mut self, is_read: bool) -> Result<(), IoError> {
        let len = self.load.io_bytes;
        let at = VolumeOffset(self.prng.below(VOLUME_BYTES / len) * len);
        if is_read {
            return self.volume.read(at, len as usize).await.map(drop);
        }
        let data = self.world.buffers().data(len as usize).freeze();
        self.volume.write(at, data).await
    }
}
