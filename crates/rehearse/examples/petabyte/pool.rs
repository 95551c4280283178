//! A pool of 60 modelled disks in four lanes with a thousand thin volumes, in a world of its own.
//!
//! The lanes run side by side in virtual time, on one thread. Disks keep what has bytes, labels and
//! metadata, and drop the data, which has only a length.

use super::process;
use base::VolumeOffset;
use engine::lane::LaneSlot;
use engine::pool::maintenance::Rates;
use engine::pool::{PoolError, PoolInfo};
use engine::raid::Protection;
use engine::{
    Lane, Level, MemberState, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec, World,
};
use futures_util::future::{join_all, try_join_all};
use model::bus::Bus;
use model::controller::ASHLAR;
use model::hdd::Hdd;
use rehearse::parts::bus::BusRig;
use rehearse::parts::controller::ControllerRig;
use rehearse::parts::drive::{DriveKind, DriveRig, RigDrive};
use rehearse::parts::world::RigWorld;
use std::rc::Rc;
use world_sim::Outcome;

const GROUPS: usize = 5;
const GROUP_DISKS: usize = 12;
pub const LANES: u16 = 4;
pub const VOLUMES: usize = 1000;

/// A pool has fewer than 2³² page numbers: with pages of 256 KiB, 60 disks of 20 TB have too many.
const PAGE_BYTES: u32 = 512 << 10;

/// Each volume holds data in so many extents, at even distances over all of it.
pub const EXTENTS: u64 = 16;
pub const EXTENT_BYTES: u64 = 64 << 20;

/// The host writes so much into each extent; the rest counts as written long ago.
const WRITTEN_BYTES: usize = 1 << 20;

/// A disk of 20 TB, with the seeks of the nearline model.
const DISK: Hdd = Hdd {
    name: "20 TB",
    capacity_bytes: 20_000_000_000_000,
    heads: 20,
    outer_bytes_per_s: 285_000_000,
    inner_bytes_per_s: 130_000_000,
    ..Hdd::NL_SAS_7K2
};

/// How large the pool is. The disks are the same model; a smaller one offers its outermost tracks only.
#[derive(Clone, Copy)]
pub struct Size {
    pub name: &'static str,
    pub disk_bytes: u64,
}

pub const PETABYTE: Size = Size {
    name: "1 PB",
    disk_bytes: DISK.capacity_bytes,
};
pub const TEN_TB: Size = Size {
    name: "10 TB",
    disk_bytes: DISK.capacity_bytes / 100,
};

/// The world of a pool, and the pool while it is open.
pub struct Bench {
    size: Size,
    pub world: RigWorld,
    disks: Vec<Rc<DriveRig>>,
    lanes: Vec<Lane<RigWorld>>,
    pub volumes: Vec<Volume<RigWorld>>,
}

pub fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Runs work in a world until it ends.
///
/// # Errors
/// What the work says, or that it can never end.
pub fn finish<T>(
    world: &RigWorld,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    match world.run(u64::MAX, work) {
        Ok(Outcome::Done(outcome)) => outcome,
        Ok(Outcome::Cut) => Err("it was cut short".to_owned()),
        Err(error) => Err(format!("{error:?}")),
    }
}

fn disks(world: &RigWorld, size: Size) -> Vec<Rc<DriveRig>> {
    let bus = Rc::new(BusRig::new("bus".to_owned(), Bus::PCIE_4_X16));
    let controller = ControllerRig::new(world, "array".to_owned(), ASHLAR, false);
    let controller = Rc::new(controller);
    let disk = |number| {
        let (kind, way) = (DriveKind::Hdd(DISK), (&bus, &controller));
        let name = format!("d{number}");
        DriveRig::new(world, name, (kind, size.disk_bytes), way, true)
    };
    (0..GROUPS * GROUP_DISKS).map(disk).collect()
}

/// The doors of a lane to disks.
fn doors(disks: &[Rc<DriveRig>]) -> Vec<NamedDrive<RigWorld>> {
    let door = |disk: &Rc<DriveRig>| NamedDrive {
        name: disk.name.clone(),
        drive: RigDrive(Rc::clone(disk)),
    };
    disks.iter().map(door).collect()
}

impl Bench {
    /// Disks without labels.
    pub fn new(size: Size) -> Bench {
        let world = RigWorld::new(1);
        Bench {
            size,
            disks: disks(&world, size),
            world,
            lanes: Vec::new(),
            volumes: Vec::new(),
        }
    }

    /// Takes the steps of a pool's life up to where it is full enough for I/O, and says what each
    /// took.
    ///
    /// # Errors
    /// A step failed, or an opening found something else than was there before.
    pub fn prepare(&mut self) -> Result<(), String> {
        self.step("created", Bench::create)?;
        self.describe()?;
        self.step("1,000 volumes created", Bench::create_volumes)?;
        self.step("16 MiB written to each", Bench::write)?;
        self.reopen("after the writes")?;
        self.step("1 GiB of each laid out", Bench::lay_out)
    }

    /// Closes and opens it, after what was done last.
    ///
    /// # Errors
    /// As of the steps; the pool has other volumes than before, or they hold other bytes.
    pub fn reopen(&mut self, after: &str) -> Result<(), String> {
        let before = self.contents();
        self.step(&format!("closed {after}"), Bench::close)?;
        self.step(&format!("opened {after}"), Bench::open)?;
        match self.contents() == before {
            true => Ok(()),
            false => Err("the opened pool has other volumes than the closed one".to_owned()),
        }
    }

    fn step(
        &mut self,
        what: &str,
        work: impl AsyncFnOnce(&mut Bench) -> Result<(), String>,
    ) -> Result<(), String> {
        let (began, processor) = (process::now(), process::processor_time()?);
        let world = self.world.clone();
        let now = world.now();
        finish(&world, work(self))
            .map_err(|error| format!("{}, {what}: {error}", self.size.name))?;
        println!(
            "{}, {what}: {:.3} s, processor {:.3} s, virtual {:.3} s, memory {} MiB",
            self.size.name,
            began.elapsed().as_secs_f64(),
            (process::processor_time()? - processor).as_secs_f64(),
            world.now().since(now).as_secs_f64(),
            process::memory_mib("VmRSS:")?
        );
        Ok(())
    }

    async fn create(&mut self) -> Result<(), String> {
        let spec = PoolSpec {
            page_bytes: PAGE_BYTES,
            ..PoolSpec::new("tank", Level::Raid6)
        };
        // The first lane is made last.
        for slot in LaneSlot::all(LANES).into_iter().rev() {
            let groups = self.disks.chunks(GROUP_DISKS);
            let groups = groups.map(|disks| (Protection::from(Level::Raid6), doors(disks)));
            let (spec, groups) = (spec.clone(), groups.collect());
            let made = Lane::create_lane(self.world.clone(), slot, spec, groups, Vec::new());
            self.lanes.insert(0, made.await.map_err(said)?);
        }
        self.give_memory();
        Ok(())
    }

    async fn open(&mut self) -> Result<(), String> {
        let slots = LaneSlot::all(LANES).into_iter();
        let opening = slots.map(|slot| {
            let doors = doors(&self.disks);
            Lane::open_lane(self.world.clone(), slot, doors)
        });
        let opened: Result<Vec<_>, PoolError> = join_all(opening).await.into_iter().collect();
        self.lanes = opened.map_err(said)?;
        self.lanes.iter().for_each(Lane::say_completed);
        self.give_memory();
        let volumes = self.lanes.iter().map(|lane| {
            let infos = lane.volumes();
            let found = infos.iter().filter_map(|info| lane.volume(&info.name));
            found.collect::<Vec<_>>()
        });
        self.volumes = volumes.flatten().collect();
        self.volumes.sort_by_key(|volume| volume.info().name);
        self.check_health()
    }

    async fn close(&mut self) -> Result<(), String> {
        self.volumes.clear();
        while let Some(lane) = self.lanes.pop() {
            lane.close().await.map_err(said)?;
            lane.release();
        }
        Ok(())
    }

    /// What a rehearsal gives a pool on this controller; and no scrub begins by itself.
    fn give_memory(&self) {
        let lanes = u64::from(LANES);
        for lane in &self.lanes {
            lane.store().cache.set_capacity(ASHLAR.cache_bytes / lanes);
            lane.set_checksum_blocks(ASHLAR.checksum_bytes / lanes / base::BLOCK_BYTES as u64);
            lane.set_rates(Rates {
                scrub_within: None,
                ..Rates::default()
            });
        }
    }

    fn info(&self) -> Result<PoolInfo, String> {
        let infos: Vec<PoolInfo> = self.lanes.iter().map(Lane::info).collect();
        PoolInfo::of_lanes(infos).ok_or_else(|| "no lane is open".to_owned())
    }

    fn check_health(&self) -> Result<(), String> {
        let info = self.info()?;
        let mut members = info.members.iter();
        match members.find(|member| member.state != MemberState::Healthy) {
            None => info.failure.map_or(Ok(()), Err),
            Some(member) => Err(format!("disk {} is {:?}", member.name, member.state)),
        }
    }

    fn describe(&self) -> Result<(), String> {
        let info = self.info()?;
        let zones: u32 = info.groups.iter().map(|group| group.zones).sum();
        println!(
            "{}: {} disks of {:.1} TB, {} groups at level {}, {} lanes: {:.3} TB for volumes, \
             {zones} zones, pages of {} KiB",
            self.size.name,
            self.disks.len(),
            self.size.disk_bytes as f64 / 1e12,
            info.groups.len(),
            info.level,
            info.lanes,
            info.capacity_bytes as f64 / 1e12,
            info.page_bytes >> 10,
        );
        println!(
            "{}: labels, metadata and logs of all lanes take {:.1} % of a disk",
            self.size.name,
            info.data_start as f64 * 100.0 / self.size.disk_bytes as f64
        );
        Ok(())
    }

    /// All volumes together are as large as the pool.
    async fn create_volumes(&mut self) -> Result<(), String> {
        let share = self.info()?.capacity_bytes / VOLUMES as u64;
        // Extents begin where pages begin.
        let grain = EXTENTS * u64::from(PAGE_BYTES);
        for number in 0..VOLUMES {
            let spec = VolumeSpec {
                name: format!("v{number:03}"),
                size_bytes: share / grain * grain,
                provisioning: Provisioning::Thin,
            };
            let lane = &self.lanes[number % self.lanes.len()];
            let volume = lane.create_volume(spec).await.map_err(said)?;
            self.volumes.push(volume);
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<(), String> {
        // So many at once that all disks have work, and the log has room.
        for some in self.volumes.chunks(32) {
            let writes = some.iter().map(async |volume| {
                for extent in 0..EXTENTS {
                    let data = self.world.buffers().data(WRITTEN_BYTES).freeze();
                    volume.write(extent_at(volume, extent), data).await?;
                }
                Ok::<_, engine::IoError>(())
            });
            try_join_all(writes).await.map_err(said)?;
        }
        Ok(())
    }

    async fn lay_out(&mut self) -> Result<(), String> {
        for volume in &self.volumes {
            for extent in 0..EXTENTS {
                let at = extent_at(volume, extent).0;
                let laid_out = volume.lay_out(at..at + EXTENT_BYTES).await;
                laid_out.map_err(said)?;
            }
        }
        Ok(())
    }

    /// What each volume is called, how large it is, and how much it holds.
    fn contents(&self) -> Vec<(String, u64, u64)> {
        let infos = self.volumes.iter().map(Volume::info);
        let held = infos.map(|info| (info.name, info.size_bytes, info.mapped_bytes));
        held.collect()
    }
}

impl Drop for Bench {
    /// Tasks hold the world, and the world the tasks.
    fn drop(&mut self) {
        self.world.power_off();
    }
}

/// Where an extent of a volume begins.
pub fn extent_at(volume: &Volume<RigWorld>, extent: u64) -> VolumeOffset {
    VolumeOffset(volume.size_bytes() / EXTENTS * extent)
}
