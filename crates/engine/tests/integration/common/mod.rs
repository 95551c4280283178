//! A bench for tests: media on a shelf, and worlds that come and go over them.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test uses its part"
)]

use base::{BufPool, Prng, Slice, Time};
use engine::{Lane, Level, NamedDrive, PoolError, PoolErrorKind, PoolSpec};
use engine::{Provisioning, VolumeSpec};
use std::rc::Rc;
use world_sim::{Media, MediaSpec, Order, Outcome, SimDrive, SimWorld};

pub const DRIVE_BYTES: u64 = 4 << 20;
pub const PAGE: usize = 32 << 10;

/// Drives that outlive the worlds they are used in.
pub struct Shelf {
    pub media: Vec<(String, Rc<Media>)>,
    worlds: std::cell::Cell<u64>,
}

pub fn media(name: &str, capacity_bytes: u64) -> Rc<Media> {
    let spec = MediaSpec::new(name, capacity_bytes);
    Rc::new(Media::new(spec, Prng::from_seed(1).stream(name)))
}

/// A drive with what `of` holds now.
pub fn copy(of: &Media, capacity_bytes: u64) -> Rc<Media> {
    Rc::new(of.copied(capacity_bytes, Prng::from_seed(2)))
}

/// A small pool: 8 KiB units, 32 KiB pages, the smallest journal.
pub fn spec(name: &str, level: Level) -> PoolSpec {
    PoolSpec {
        stripe_unit_bytes: 8 << 10,
        page_bytes: PAGE as u32,
        journal_bytes: Some(8 << 10),
        zone_bytes: Some(64 << 10),
        log_bytes: Some(256 << 10),
        volumes_max: 8,
        ..PoolSpec::new(name, level)
    }
}

impl Shelf {
    pub fn new(drives: usize) -> Shelf {
        let drive = |n| (format!("d{n}"), media(&format!("d{n}"), DRIVE_BYTES));
        Shelf {
            media: (0..drives).map(drive).collect(),
            worlds: 0.into(),
        }
    }

    /// Disks of so many bytes: pools of flash keep no records of sums.
    pub fn of_disks(count: usize, capacity_bytes: u64) -> Shelf {
        let mut shelf = Shelf::new(count);
        for (name, media) in &mut shelf.media {
            let spec = MediaSpec {
                rotational: true,
                ..MediaSpec::new(name.as_str(), capacity_bytes)
            };
            *media = Rc::new(Media::new(spec, Prng::from_seed(1).stream(name)));
        }
        shelf
    }

    /// A new world; its time and streams go on from the last.
    pub fn world(&self) -> SimWorld {
        self.worlds.set(self.worlds.get() + 1);
        let seed = Prng::from_seed(self.worlds.get());
        SimWorld::new(seed, Order::Shuffled, BufPool::new(), Time(0))
    }

    pub fn drives(&self, world: &SimWorld) -> Vec<NamedDrive<SimWorld>> {
        let drive = |(name, media): &(String, Rc<Media>)| NamedDrive {
            name: name.clone(),
            drive: SimDrive::adversarial(world, media),
        };
        self.media.iter().map(drive).collect()
    }

    /// Runs `test` over a pool opened from all drives, then ends the world.
    pub fn open<T>(&self, test: impl AsyncFnOnce(Lane<SimWorld>) -> T) -> T {
        self.try_open(test)
            .unwrap_or_else(|error| panic!("opening: {error}"))
    }

    pub fn try_open<T>(&self, test: impl AsyncFnOnce(Lane<SimWorld>) -> T) -> Result<T, PoolError> {
        let world = self.world();
        let drives = self.drives(&world);
        let root = async { Ok(test(Lane::open(world.clone(), drives).await?).await) };
        end(&world, root)
    }

    pub fn create<T>(
        &self,
        spec: PoolSpec,
        test: impl AsyncFnOnce(Lane<SimWorld>) -> T,
    ) -> Result<T, PoolError> {
        let world = self.world();
        let drives = self.drives(&world);
        let root = async { Ok(test(Lane::create(world.clone(), spec, drives).await?).await) };
        end(&world, root)
    }

    /// A shelf with a pool of `level`, closed cleanly, holding the volume `v` of
    /// eight pages with `content` in it.
    pub fn with_pool(drives: usize, level: Level) -> Shelf {
        Self::with_pool_of_seed(drives, level, 0)
    }

    /// The same from another seed: another pool, of the same name.
    pub fn with_pool_of_seed(drives: usize, level: Level, seed: u64) -> Shelf {
        let shelf = Shelf {
            worlds: seed.into(),
            ..Shelf::new(drives)
        };
        let made = shelf.create(spec("pool", level), async |pool| {
            let volume = pool
                .create_volume(thin("v", 8 * PAGE as u64))
                .await
                .unwrap();
            let world = pool.world().clone();
            volume
                .write(base::VolumeOffset(0), content(&world, 1, 8 * PAGE))
                .await
                .unwrap();
            pool.close().await.unwrap();
        });
        made.unwrap();
        shelf
    }

    /// Drives with what these hold now, and whims of their own.
    pub fn copied(&self, seed: u64) -> Shelf {
        let copy = |(name, media): &(String, Rc<Media>)| {
            let whims = Prng::from_seed(seed).stream(name);
            (
                name.clone(),
                Rc::new(media.copied(media.spec().capacity_bytes, whims)),
            )
        };
        Shelf {
            media: self.media.iter().map(copy).collect(),
            worlds: (seed << 8).into(),
        }
    }

    /// The refusal that opening meets.
    pub fn refusal(&self) -> (PoolErrorKind, String) {
        let refused = self.try_open(async |_| ());
        let error = refused.expect_err("the pool must not open");
        (error.kind, error.context)
    }

    pub fn named(&self, name: &str) -> &Rc<Media> {
        &self.media.iter().find(|(n, _)| n == name).unwrap().1
    }
}

pub fn end<T>(world: &SimWorld, root: impl Future<Output = T>) -> T {
    let outcome = world.run(u64::MAX, root);
    world.power_off();
    match outcome {
        Ok(Outcome::Done(value)) => value,
        Ok(_) => panic!("out of polls"),
        Err(deadlock) => panic!("deadlock: {deadlock:?}"),
    }
}

pub fn thin(name: &str, size_bytes: u64) -> VolumeSpec {
    VolumeSpec {
        name: name.to_owned(),
        size_bytes,
        provisioning: Provisioning::Thin,
    }
}

pub fn thick(name: &str, size_bytes: u64) -> VolumeSpec {
    VolumeSpec {
        provisioning: Provisioning::Thick,
        ..thin(name, size_bytes)
    }
}

/// Reproducible bytes, different for each `tag`.
pub fn bytes(tag: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Prng::from_seed(tag).fill(&mut bytes);
    bytes
}

pub fn content(world: &SimWorld, tag: u64, len: usize) -> Slice {
    use engine::World;
    world.buffers().copy_of(&bytes(tag, len)).freeze()
}
