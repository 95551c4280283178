//! A pool of modelled disks that loses some of them under load: [`measure`].

use base::{Prng, Time, VolumeOffset};
use engine::pool::maintenance::Rates;
use engine::raid::{Geometry, Protection};
use engine::{Lane, MemberState, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec, World};
use model::bus::Bus;
use model::controller::ASHLAR;
use model::hdd::Hdd;
use rehearse::parts::bus::BusRig;
use rehearse::parts::controller::ControllerRig;
use rehearse::parts::drive::{DriveKind, DriveRig, RigDrive};
use rehearse::parts::world::RigWorld;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use world_sim::Outcome;

/// The rate of the middle of a disk of 20 TB, and the seeks of a disk of 7,200 rpm.
pub const DISK: Hdd = Hdd {
    name: "20 TB, its middle",
    capacity_bytes: 128_000_000_000,
    // So few tracks that a surface of them has seeks of all lengths.
    heads: 1,
    outer_bytes_per_s: 212_000_000,
    inner_bytes_per_s: 208_000_000,
    ..Hdd::NL_SAS_7K2
};

pub const WHOLE_BYTES: f64 = 20e12;
const WITHIN_HOURS: f64 = 48.0;

/// How long commands are watched where nothing is rebuilt.
const WATCHED: Duration = Duration::from_secs(20);
const BLOCK: usize = 8 << 10;

/// What commands took.
#[derive(Default)]
struct Felt {
    count: Cell<u64>,
    nanos: Cell<u64>,
    longest: Cell<u64>,
}

impl Felt {
    fn note(&self, took: Duration) {
        let nanos = took.as_nanos() as u64;
        self.count.set(self.count.get() + 1);
        self.nanos.set(self.nanos.get() + nanos);
        self.longest.set(self.longest.get().max(nanos));
    }

    /// Mean and longest, in milliseconds.
    fn ms(&self) -> (f64, f64) {
        let mean = self.nanos.get() as f64 / self.count.get().max(1) as f64;
        (mean / 1e6, self.longest.get() as f64 / 1e6)
    }
}

/// A pool under test.
struct Bench {
    world: RigWorld,
    pool: Lane<RigWorld>,
    volume: Volume<RigWorld>,
    size_bytes: u64,
    felt: Rc<RefCell<Rc<Felt>>>,
}

#[derive(Clone, Copy)]
pub struct Case {
    pub protection: Protection,
    pub disks: usize,
    pub used_bytes: u64,
    pub zone_bytes: u64,
    pub spares: usize,
    pub lost: usize,
    /// Commands a second for each disk.
    pub load: f64,
    /// Percent of them that are reads.
    pub reads: u64,
}

async fn bench(world: &RigWorld, case: Case) -> Result<Bench, String> {
    let bus = Rc::new(BusRig::new("bus".to_owned(), Bus::PCIE_4_X16));
    let model = ASHLAR;
    let controller = ControllerRig::new(world, "array".to_owned(), model, false);
    let controller = Rc::new(controller);
    let drive = |number: usize| NamedDrive {
        name: format!("d{number}"),
        drive: RigDrive(DriveRig::new(
            world,
            format!("d{number}"),
            (DriveKind::Hdd(DISK), DISK.capacity_bytes),
            (&bus, &controller),
            true,
        )),
    };
    let members = (0..case.disks).map(drive).collect();
    let spares = (case.disks..case.disks + case.spares).map(drive).collect();
    let spec = PoolSpec {
        zone_bytes: Some(case.zone_bytes),
        ..PoolSpec::new("tank", case.protection.level)
    };
    let groups = vec![(case.protection, members)];
    let pool = Lane::create_groups(world.clone(), spec, groups, spares).await;
    let pool = pool.map_err(said)?;
    // Of a disk, the sums would be in RAM after a while.
    pool.store().integrity.set_budget(usize::MAX / 4);
    pool.store().integrity.set_apart(false);
    let shape = Geometry::of_group(case.protection, case.disks, 64 << 10)?;
    let data = (shape.data_columns() * shape.spans) as u64;
    // What a place holds: distributed spares hold nothing.
    let used_bytes = case.used_bytes * case.disks as u64 / shape.places() as u64;
    let used_bytes = used_bytes.next_multiple_of(1 << 20);
    let size_bytes = data * used_bytes;
    let spec = VolumeSpec {
        name: "v".to_owned(),
        size_bytes,
        provisioning: Provisioning::Thin,
    };
    let volume = pool.create_volume(spec).await.map_err(said)?;
    volume.lay_out(0..size_bytes).await.map_err(said)?;
    let parts = case.used_bytes as f64 / WHOLE_BYTES;
    pool.set_rates(Rates {
        rebuild_within: Some(Duration::from_secs_f64(WITHIN_HOURS * 3600.0 * parts)),
        scrub_within: None,
        ..Rates::default()
    });
    Ok(Bench {
        world: world.clone(),
        pool,
        volume,
        size_bytes,
        felt: Rc::default(),
    })
}

impl Bench {
    /// Commands come, so many a second, at random times and places.
    fn load(&self, per_s: f64, reads: u64) {
        let (world, volume) = (self.world.clone(), self.volume.clone());
        let (felt, blocks) = (Rc::clone(&self.felt), self.size_bytes / BLOCK as u64);
        let mut prng: Prng = world.prng("load");
        self.world.spawn(async move {
            loop {
                let pause = -(1.0 - prng.unit()).ln() / per_s;
                world.sleep(Duration::from_secs_f64(pause)).await;
                let at = VolumeOffset(prng.below(blocks) * BLOCK as u64);
                let is_read = prng.chance(reads, 100);
                let (volume, world, felt) =
                    (volume.clone(), world.clone(), Rc::clone(&felt.borrow()));
                let task = world.clone();
                task.spawn(async move {
                    let began = world.now();
                    let is_done = match is_read {
                        true => volume.read(at, BLOCK).await.is_ok(),
                        false => {
                            let data = world.buffers().data(BLOCK).freeze();
                            volume.write(at, data).await.is_ok()
                        }
                    };
                    assert!(is_done, "a command has failed");
                    felt.note(world.now().since(began));
                });
            }
        });
    }

    async fn watch(&self, duration: Duration) -> Rc<Felt> {
        let felt = Rc::new(Felt::default());
        self.felt.replace(Rc::clone(&felt));
        self.world.sleep(duration).await;
        felt
    }

    async fn rebuild(&self, lost: usize) -> Result<(Duration, u64, Rc<Felt>), String> {
        let felt = Rc::new(Felt::default());
        for number in 0..lost {
            let failed = self.pool.fail_drive(&format!("d{number}")).await;
            failed.map_err(said)?;
        }
        let bytes = || {
            let tasks = self.pool.info().tasks;
            tasks.iter().map(|task| task.total_bytes).max().unwrap_or(0)
        };
        self.felt.replace(Rc::clone(&felt));
        let began: Time = self.world.now();
        let mut total = 0;
        loop {
            self.world.sleep(Duration::from_millis(50)).await;
            total = total.max(bytes());
            let info = self.pool.info();
            let group = &info.groups[0];
            let is_whole = |state: MemberState| state == MemberState::Healthy;
            if group.places.lost == 0
                && (group.spread.is_some()
                    || info.members.iter().all(|member| is_whole(member.state)))
            {
                return Ok((self.world.now().since(began), total, felt));
            }
        }
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What a rebuild came to.
#[derive(Debug)]
pub struct Measured {
    /// Bytes of a lost disk put together, in a second.
    pub bytes_per_s: f64,
    /// What commands took before it and while it went on, on the average.
    pub mean_ms: (f64, f64),
    pub longest_ms: f64,
}

/// Loses disks, and waits until the rest has made up for them.
///
/// # Errors
/// When the pool can't be made, or a disk can't be lost.
pub fn measure(case: Case) -> Result<Measured, String> {
    let world = RigWorld::new(1);
    let load = case.load * case.disks as f64;
    let outcome = world.run(u64::MAX, async {
        let with = bench(&world, case).await?;
        if load > 0.0 {
            with.load(load, case.reads);
        }
        let before = with.watch(WATCHED).await;
        let (took, bytes, during) = with.rebuild(case.lost).await?;
        let (mean, longest_ms) = during.ms();
        Ok(Measured {
            bytes_per_s: bytes as f64 / took.as_secs_f64(),
            mean_ms: (before.ms().0, mean),
            longest_ms,
        })
    });
    world.power_off();
    match outcome {
        Ok(Outcome::Done(measured)) => measured,
        Ok(other) => Err(format!("it ended as {other:?}")),
        Err(error) => Err(format!("{error:?}")),
    }
}
