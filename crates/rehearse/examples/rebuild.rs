//! Rebuilds of modelled hard disks under load: how long a disk of 20 TB takes, and what commands of
//! hosts feel of it. One line for each load, each level and each number of lost drives. The last rows
//! compare one spare with distributed spares: the stripes are equally wide, and the disks equally full.
//! The argument `spread` prints these rows only.
//!
//! The disks are models of 20 TB disks as to their rate and their seeks, and small: the bound of 48
//! hours is scaled down alike. So the least rate is that of a disk of 20 TB which is in use as a whole.

use base::{Prng, Time, VolumeOffset};
use engine::pool::maintenance::Rates;
use engine::raid::{Geometry, Protection, Spread};
use engine::{
    Lane, Level, MemberState, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec, World,
};
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
const DISK: Hdd = Hdd {
    name: "20 TB, its middle",
    capacity_bytes: 128_000_000_000,
    // So few tracks that a surface of them has seeks of all lengths.
    heads: 1,
    outer_bytes_per_s: 212_000_000,
    inner_bytes_per_s: 208_000_000,
    ..Hdd::NL_SAS_7K2
};

const WHOLE_BYTES: f64 = 20e12;
const WITHIN_HOURS: f64 = 48.0;

/// What is in use of each disk, about.
const USED_BYTES: u64 = 2 << 30;

/// The same beside distributed spares: so many zones that chance spreads them evenly, as a disk of 20 TB
/// has tens of thousands.
const USED_SPREAD_BYTES: u64 = 96 << 30;

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
struct Case {
    protection: Protection,
    disks: usize,
    used_bytes: u64,
    zone_bytes: u64,
    spares: usize,
    lost: usize,
    /// Commands a second for each disk.
    load: f64,
    /// Percent of them that are reads.
    reads: u64,
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

fn run(case: Case, name: &str) {
    let world = RigWorld::new(1);
    let load = case.load * case.disks as f64;
    let told = world.run(u64::MAX, async {
        let with = bench(&world, case).await?;
        if load > 0.0 {
            with.load(load, case.reads);
        }
        let before = with.watch(WATCHED).await;
        let (took, bytes, during) = with.rebuild(case.lost).await?;
        let rate = bytes as f64 / took.as_secs_f64();
        let (mean_before, _) = before.ms();
        let (mean, longest) = during.ms();
        let hours = WHOLE_BYTES / rate / 3600.0;
        println!(
            "{name}: {} lost, {:.0} commands a second and disk: {:.0} MB/s, 20 TB in {hours:.0} h; \
             mean {mean_before:.1} -> {mean:.1} ms (x {:.2}), longest {longest:.0} ms",
            case.lost,
            case.load,
            rate / 1e6,
            mean / mean_before.max(1e-9),
        );
        Ok::<(), String>(())
    });
    assert!(
        matches!(told, Ok(Outcome::Done(Ok(())))),
        "{name}: {told:?}"
    );
    world.power_off();
}

/// A group whose disks are this full, with as many spares as disks are lost.
fn with_spares(level: Level, disks: usize, lost: usize, load: f64) -> Case {
    Case {
        protection: level.into(),
        disks,
        used_bytes: USED_BYTES,
        zone_bytes: 256 << 20,
        spares: lost,
        lost,
        load,
        reads: 100,
    }
}

fn main() {
    let only_spread = std::env::args().any(|arg| arg == "spread");
    for load in [0.0, 20.0] {
        for (name, level, disks, lost) in [
            ("RAID 6 of 12", Level::Raid6, 12, 1),
            ("RAID 6 of 12", Level::Raid6, 12, 2),
            ("RAID 10 of 12", Level::Raid10 { copies: 2 }, 12, 1),
            ("RAID 6 of 24", Level::Raid6, 24, 1),
        ] {
            if !only_spread {
                run(with_spares(level, disks, lost, load), name);
            }
        }
        for (width, disks, spares) in [(6, 60, 6), (8, 60, 4), (10, 62, 2)] {
            let of_stripe = Case {
                used_bytes: USED_SPREAD_BYTES,
                ..with_spares(Level::Raid6, usize::from(width), 1, load)
            };
            run(of_stripe, &format!("RAID 6 of {width}, to one spare"));
            let protection = Protection {
                level: Level::Raid6,
                spread: Some(Spread { width, spares }),
            };
            let spread = Case {
                protection,
                disks,
                spares: 0,
                ..of_stripe
            };
            run(spread, &format!("RAID {protection}, {disks} disks"));
        }
    }
}
