//! How long a pool with a large map takes to open, and what its checkpoints cost.
//!
//! `recovery make DIR SHAPE TIB [LANES]` makes sparse drive files in DIR, with a pool at RAID 5. There
//! are four, or one for each ten tebibytes and one more. The pool's metadata says that TIB tebibytes are
//! mapped; there is no data below it.
//! `recovery lanes DIR LANES` opens a pool of so many lanes, each on a thread of its own.
//! `recovery open DIR` opens that pool, works on a new volume of it with and without a
//! checkpoint on the way, and prints what it measured, a `name=value` a line.
//! `recovery snapshots DIR` takes 1,000 snapshots of a volume of that pool, each after a
//! change of its map, and clones and restores the first, the tenth and the last of them.
//! `recovery zero DIR` zeroes a volume of that pool, all of it mapped, and one of as much of
//! which nothing is.
//! Programs of their own, so that the memory of one is that of the pool alone.
//!
//! SHAPE is how pages lie: `runs` (of 16 MiB), `scattered` (no two pages of a volume
//! that follow each other do so on the drives) or `holes` (as scattered, and only every
//! other page of a volume is mapped).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of the real world, which measures with its clock"
)]

use base::{BLOCK_BYTES, DriveOffset, PageIndex, Uuid, VolumeOffset};
use engine::drives::zone_capacity;
use engine::label::{GroupEntry, Label, PoolIdentity, SLOT_BYTES, SLOT_OFFSETS, Slot};
use engine::lane::{LaneSlot, Part};
use engine::meta::checkpoint::{self, Encoder, Step};
use engine::meta::page_map::UNMAPPED;
use engine::meta::{Record, State, VolumeId};
use engine::{Lane, Level, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec, World};
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use world_real::{OpenDrive, RealDrive, RealWorld};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Drives of a pool, at least.
const DRIVES_MIN: u64 = 4;
/// The most that a drive holds: file systems limit how long a file may be.
const DRIVE_TIB_MAX: u64 = 10;
/// Volumes that the mapped pages of a lane belong to.
const VOLUMES: u64 = 10;
/// Pages of a run, of those that have some.
const RUN: u64 = 64;
/// Pages of the volume that is worked on that are there from the start: some to read,
/// as many others to write over.
const WARM_PAGES: u64 = 512;
/// Time for the log to empty itself, so that reads go to the drives.
const SETTLE: Duration = Duration::from_secs(2);
const QUIET: Duration = Duration::from_secs(3);
const CHECKPOINTS: u32 = 3;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", dir, shape, tib] => make(Path::new(dir), Shape::of(shape)?, tib.parse()?, 1),
        ["make", dir, shape, tib, lanes] => {
            make(Path::new(dir), Shape::of(shape)?, tib.parse()?, lanes.parse()?)
        }
        ["lanes", dir, lanes] => open_lanes(Path::new(dir), lanes.parse()?),
        ["open", dir] => world_real::run(|world| measure(world, PathBuf::from(dir)))?,
        ["snapshots", dir] => world_real::run(|world| snapshots(world, PathBuf::from(dir)))?,
        ["zero", dir] => world_real::run(|world| zero(world, PathBuf::from(dir)))?,
        _ => Err(
            "usage: recovery make DIR runs|scattered|holes TIB [LANES] | recovery lanes DIR LANES | \
             recovery open|snapshots|zero DIR"
                .into(),
        ),
    }
}

fn path(dir: &Path, drive: usize) -> PathBuf {
    dir.join(format!("drive{drive}.img"))
}

fn drives(world: &RealWorld, dir: &Path) -> Outcome<Vec<NamedDrive<RealWorld>>> {
    Ok(of_world(world, &files(dir)?))
}

/// The drive files of a pool, opened.
fn files(dir: &Path) -> Outcome<Vec<OpenDrive>> {
    let there = |drive: &usize| path(dir, *drive).exists();
    let open = |drive| OpenDrive::open(&path(dir, drive)).map_err(Into::into);
    (0..).take_while(there).map(open).collect()
}

/// Opened files as the drives of a lane.
fn of_world(world: &RealWorld, files: &[OpenDrive]) -> Vec<NamedDrive<RealWorld>> {
    let drive = |(number, file)| NamedDrive {
        name: format!("drive{number}"),
        drive: RealDrive::of(world, file),
    };
    files.iter().enumerate().map(drive).collect()
}

// --- Making ---------------------------------------------------------------------

#[derive(Clone, Copy)]
enum Shape {
    Runs,
    Scattered,
    Holes,
}

impl Shape {
    fn of(name: &str) -> Outcome<Shape> {
        match name {
            "runs" => Ok(Shape::Runs),
            "scattered" => Ok(Shape::Scattered),
            "holes" => Ok(Shape::Holes),
            other => Err(format!("{other}: use runs, scattered or holes").into()),
        }
    }
}

fn make(dir: &Path, shape: Shape, tib: u64, lanes: u16) -> Outcome<()> {
    let drives_count = DRIVES_MIN.max(1 + tib.div_ceil(DRIVE_TIB_MAX));
    // One of them is parity; a tenth and more is for what is written later.
    let drive_bytes = (tib << 40) / (drives_count - 1) * 9 / 8 / (1 << 20) * (1 << 20);
    for drive in 0..drives_count as usize {
        File::create_new(path(dir, drive))?.set_len(drive_bytes)?;
    }
    let files = files(dir)?;
    world_real::run(|world| async move {
        let mut made = Vec::new();
        for slot in LaneSlot::all(lanes).into_iter().rev() {
            let spec = PoolSpec {
                volumes_max: SNAPSHOTS as u32 + 100,
                ..PoolSpec::new("bench", Level::Raid5)
            };
            let groups = vec![(Level::Raid5, of_world(&world, &files))];
            let lane = Lane::create_lane(world.clone(), slot, spec, groups, Vec::new());
            made.push(lane.await?);
        }
        for lane in made {
            lane.close().await?;
        }
        Ok::<(), Box<dyn Error>>(())
    })??;
    for lane in 0..lanes {
        let label = label(&path(dir, 0), lane)?;
        let group = label.groups.first().ok_or("a pool without groups")?;
        let state = synthetic(&label.pool, group, shape, tib)?;
        // Both slots, as after some time in use: their space is there.
        for generation in [8, 9] {
            write_checkpoint(dir, &label, generation, &state)?;
        }
    }
    Ok(())
}

/// The newest label that a lane has on a drive file.
fn label(path: &Path, lane: u16) -> Outcome<Label> {
    let file = File::open(path)?;
    let first = newest_label(&file, Part::WHOLE)?;
    let part = Part {
        lane,
        ..first.pool.part()
    };
    newest_label(&file, part)
}

fn newest_label(file: &File, part: Part) -> Outcome<Label> {
    let mut newest: Option<Label> = None;
    for offset in SLOT_OFFSETS {
        let mut slot = vec![0; SLOT_BYTES];
        let at = part.place(DriveOffset(offset), SLOT_BYTES as u64);
        file.read_exact_at(&mut slot, at.0)?;
        if let Slot::Label(label) = Label::decode(&slot)
            && newest
                .as_ref()
                .is_none_or(|newest| newest.generation < label.generation)
        {
            newest = Some(*label);
        }
    }
    newest.ok_or_else(|| "a drive without a label".into())
}

/// A state with whole zones full of pages: a lane's part of `tib`.
fn synthetic(pool: &PoolIdentity, group: &GroupEntry, shape: Shape, tib: u64) -> Outcome<State> {
    let in_zone = zone_capacity(group.level, usize::from(group.drives), pool);
    let (lane, lanes) = (u64::from(pool.lane), u64::from(pool.lanes));
    let zones = ((tib << 40) / lanes).div_ceil(in_zone * u64::from(pool.page_bytes));
    let first_zone = lane * zones;
    let mut state = State::default();
    for zone in (first_zone..).take(zones as usize) {
        // Those of a lane leave its number when divided by that of lanes.
        let (level, incarnation) = (group.level, (zone * lanes + lane) as u32);
        let zone = zone as u32;
        state.apply(&Record::ZoneOn {
            zone,
            level,
            incarnation,
        })?;
    }
    let pages = zones * in_zone;
    let of_zone = u64::from(group.numbers.zone_pages);
    let place = |page: u64| (first_zone + page / in_zone) * of_zone + page % in_zone;
    let step = match shape {
        Shape::Runs => step_through(pages / RUN),
        Shape::Scattered | Shape::Holes => step_through(pages),
    };
    let nth = |page: u64| match shape {
        Shape::Runs => page / RUN * step % (pages / RUN) * RUN + page % RUN,
        Shape::Scattered | Shape::Holes => page * step % pages,
    };
    let apart = if matches!(shape, Shape::Holes) { 2 } else { 1 };
    let of_volume = pages.div_ceil(VOLUMES);
    for volume in 0..VOLUMES {
        let id = VolumeId(volume as u32);
        let number = lane * VOLUMES + volume;
        let create = Record::Create {
            id,
            uuid: Uuid::from_u128(u128::from(number) + 1),
            name: format!("v{number}"),
            size_bytes: of_volume * apart * u64::from(pool.page_bytes),
            provisioning: Provisioning::Thin,
            read_only: false,
        };
        state.apply(&create)?;
        let (first, end) = (volume * of_volume, pages.min((volume + 1) * of_volume));
        for some in (first..end).step_by(1 << 16) {
            let places = (some..end.min(some + (1 << 16)))
                .flat_map(|page| {
                    let phys = place(nth(page)) as u32;
                    std::iter::once(phys).chain((1..apart).map(|_| UNMAPPED))
                })
                .collect::<Vec<u32>>();
            let page = PageIndex((some - first) * apart);
            state.apply_table(id, page, places.into_iter())?;
        }
        state.apply(&Record::Ready { id })?;
    }
    Ok(state)
}

/// A step that goes through all of `count` numbers, and never to a neighbour.
fn step_through(count: u64) -> u64 {
    let divides = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a > 1
    };
    let golden = (count as f64 * 0.618) as u64;
    (golden..).find(|&step| !divides(step, count)).unwrap_or(1)
}

fn write_checkpoint(dir: &Path, label: &Label, generation: u64, state: &State) -> Outcome<()> {
    let pool = &label.pool;
    let carriers = label.members.iter().filter(|member| member.metadata);
    let files = carriers
        .map(|member| {
            File::options()
                .write(true)
                .open(dir.join(format!("{}.img", member.name)))
        })
        .collect::<Result<Vec<File>, _>>()?;
    let segment_bytes = checkpoint::segment_bytes(pool.journal_bytes);
    let mut encoder = Encoder::new(pool.lane_uuid(), generation, segment_bytes, state);
    let slot = pool.checkpoint_offset(generation);
    let place = |at, bytes: &[u8]| pool.part().place(DriveOffset(at), bytes.len() as u64).0;
    let mut at = slot + checkpoint::HEADER_BYTES as u64;
    loop {
        let (bytes, to, last) = match encoder.step() {
            Step::More => continue,
            Step::Segment(bytes) => (bytes, at, false),
            Step::End(header) => (header, slot, true),
        };
        for file in &files {
            file.write_all_at(&bytes, place(to, &bytes))?;
        }
        at += bytes.len() as u64;
        if last {
            return files
                .iter()
                .try_for_each(File::sync_all)
                .map_err(Into::into);
        }
    }
}

// --- Measuring ------------------------------------------------------------------

/// Opens a pool, each lane on a thread of its own, and says how long the slowest takes.
fn open_lanes(dir: &Path, lanes: u16) -> Outcome<()> {
    let (rss, read, processor) = (status("VmRSS:")?, read_bytes()?, processor_time()?);
    let (open, failed, files) = (&AtomicU64::new(0), &AtomicBool::new(false), &files(dir)?);
    let lane = |slot: LaneSlot| {
        world_real::run(|world| async move {
            let began = Instant::now();
            let pool = Lane::open_lane(world.clone(), slot, of_world(&world, files)).await?;
            let (took, mapped) = (began.elapsed(), pool.info().mapped_bytes);
            open.fetch_add(1, Ordering::SeqCst);
            while open.load(Ordering::SeqCst) < u64::from(lanes) && !failed.load(Ordering::SeqCst) {
                world.sleep(Duration::from_millis(1)).await;
            }
            let rss = status("VmRSS:")?;
            pool.close().await?;
            Ok((took, mapped, rss))
        })
    };
    // What threads give to each other can be sent.
    let lane = |slot| -> Result<_, String> {
        let outcome: Result<Outcome<_>, _> = lane(slot);
        let is_open = outcome.as_ref().is_ok_and(Result::is_ok);
        failed.fetch_or(!is_open, Ordering::SeqCst);
        outcome
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let slots = LaneSlot::all(lanes).into_iter();
        let threads: Vec<_> = slots.map(|slot| scope.spawn(|| lane(slot))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let (mut slowest, mut mapped, mut peak) = (Duration::ZERO, 0, 0);
    for outcome in outcomes {
        let (took, mapped_bytes, rss) = outcome.map_err(|_| "a lane's thread panicked")??;
        slowest = slowest.max(took);
        mapped += mapped_bytes;
        peak = peak.max(rss);
    }
    let tib = mapped as f64 / (1u64 << 40) as f64;
    println!("mapped_tib={tib:.2}");
    println!("recovery_s={:.2}", slowest.as_secs_f64());
    println!(
        "processor_s={:.2}",
        (processor_time()? - processor).as_secs_f64()
    );
    println!("read_mib={}", (read_bytes()? - read) >> 20);
    println!("rss_mib_per_tib={:.1}", (peak - rss) as f64 / 1024.0 / tib);
    Ok(())
}

async fn measure(world: RealWorld, dir: PathBuf) -> Outcome<()> {
    let drives = drives(&world, &dir)?;
    let (rss, read) = (status("VmRSS:")?, read_bytes()?);
    let began = Instant::now();
    let pool = Lane::open(world.clone(), drives).await?;
    let recovery = began.elapsed();
    let tib = pool.info().mapped_bytes as f64 / (1u64 << 40) as f64;
    println!("mapped_tib={tib:.2}");
    println!("recovery_s={:.2}", recovery.as_secs_f64());
    println!("read_mib={}", (read_bytes()? - read) >> 20);
    println!(
        "rss_mib_per_tib={:.1}",
        (status("VmRSS:")? - rss) as f64 / 1024.0 / tib
    );
    println!(
        "peak_mib_per_tib={:.1}",
        (status("VmHWM:")? - rss) as f64 / 1024.0 / tib
    );
    let spec = VolumeSpec {
        name: "work".into(),
        size_bytes: 1 << 40,
        provisioning: Provisioning::Thin,
    };
    let work = Rc::new(Work {
        world: world.clone(),
        volume: pool.create_volume(spec).await?,
        page_bytes: u64::from(pool.info().page_bytes),
        stopped: Cell::new(false),
        running: Cell::new(0),
        longest: Default::default(),
        failure: RefCell::new(None),
    });
    for page in 0..2 * WARM_PAGES {
        work.write(page).await?;
    }
    world.sleep(SETTLE).await;
    for lane in Load::ALL {
        world.spawn(Rc::clone(&work).run(lane));
    }
    world.sleep(QUIET).await;
    work.longest_since("quiet");
    let mut times = Vec::new();
    for _ in 0..CHECKPOINTS {
        let began = Instant::now();
        pool.checkpoint().await?;
        times.push(began.elapsed());
    }
    work.longest_since("checkpoint");
    println!(
        "checkpoint_s={:.2}",
        times.iter().sum::<Duration>().as_secs_f64() / f64::from(CHECKPOINTS)
    );
    println!(
        "peak_after_mib_per_tib={:.1}",
        (status("VmHWM:")? - rss) as f64 / 1024.0 / tib
    );
    work.stopped.set(true);
    while work.running.get() > 0 {
        world.sleep(Duration::from_millis(1)).await;
    }
    pool.close().await?;
    work.failure.take().map_or(Ok(()), |what| Err(what.into()))
}

/// Snapshots that are taken, and those of them that are cloned and restored.
const SNAPSHOTS: u64 = 1000;
const SHOWN: [u64; 3] = [1, 10, SNAPSHOTS];

async fn snapshots(world: RealWorld, dir: PathBuf) -> Outcome<()> {
    let pool = Lane::open(world.clone(), drives(&world, &dir)?).await?;
    let volume = pool.volume("v0").ok_or("the pool has no volume v0")?;
    println!(
        "mapped_tib={:.2}",
        volume.info().mapped_bytes as f64 / (1u64 << 40) as f64
    );
    let page_bytes = u64::from(pool.info().page_bytes);
    let before_kib = status("VmRSS:")?;
    for count in 1..=SNAPSHOTS {
        // Far from each other: each has a chunk of the map of its own. There is no data
        // below the map that could be copied, so a page goes.
        let page = count * 997 % (volume.size_bytes() / page_bytes / 2);
        volume
            .clear(VolumeOffset(page * page_bytes), page_bytes)
            .await?;
        let name = format!("v0@{count}");
        let began = Instant::now();
        pool.clone_volume("v0", &name, true, count).await?;
        let taken = began.elapsed();
        if SHOWN.contains(&count) {
            println!("snapshot_{count}_ms={:.2}", taken.as_secs_f64() * 1e3);
            let began = Instant::now();
            pool.clone_volume(&name, "clone", false, count).await?;
            println!(
                "clone_{count}_ms={:.2}",
                began.elapsed().as_secs_f64() * 1e3
            );
            let began = Instant::now();
            pool.restore("v0", &name, None, count).await?;
            println!(
                "restore_{count}_ms={:.2}",
                began.elapsed().as_secs_f64() * 1e3
            );
            pool.delete_volume("clone").await?;
        }
    }
    println!(
        "rss_kib_per_snapshot={:.1}",
        (status("VmRSS:")? - before_kib) as f64 / SNAPSHOTS as f64
    );
    let began = Instant::now();
    for clone in 0..64 {
        pool.clone_volume("v1", &format!("c{clone}"), false, 0)
            .await?;
    }
    println!("clones_64_s={:.3}", began.elapsed().as_secs_f64());
    let began = Instant::now();
    pool.checkpoint().await?;
    println!("checkpoint_s={:.2}", began.elapsed().as_secs_f64());
    pool.close().await.map_err(Box::<dyn Error>::from)
}

async fn zero(world: RealWorld, dir: PathBuf) -> Outcome<()> {
    let pool = Lane::open(world.clone(), drives(&world, &dir)?).await?;
    let mapped = pool.volume("v1").ok_or("the pool has no volume v1")?;
    let spec = VolumeSpec {
        name: "new".into(),
        size_bytes: mapped.size_bytes(),
        provisioning: Provisioning::Thin,
    };
    let unmapped = pool.create_volume(spec).await?;
    let tib = mapped.info().mapped_bytes as f64 / (1u64 << 40) as f64;
    println!("mapped_tib={tib:.2}");
    for (name, volume) in [("mapped", mapped), ("unmapped", unmapped)] {
        let (began, written) = (Instant::now(), number("/proc/self/io", "write_bytes:")?);
        volume.clear(VolumeOffset(0), volume.size_bytes()).await?;
        println!("zero_{name}_s={:.3}", began.elapsed().as_secs_f64());
        let written = number("/proc/self/io", "write_bytes:")? - written;
        println!("zero_{name}_written_kib={}", written >> 10);
        if volume.info().mapped_bytes > 0 {
            return Err("something is left".into());
        }
    }
    pool.close().await.map_err(Box::<dyn Error>::from)
}

/// What goes on beside a checkpoint.
#[derive(Clone, Copy)]
enum Load {
    /// A sleep of a millisecond: how long the shard was busy with something else.
    Tick,
    /// Reads of what is there.
    Read,
    /// Writes over what is there.
    Overwrite,
    /// Writes to new pages, which need a record in the journal.
    Allocate,
}

impl Load {
    const ALL: [Load; 4] = [Load::Tick, Load::Read, Load::Overwrite, Load::Allocate];
    const NAMES: [&str; 4] = ["tick", "read", "overwrite", "allocate"];
}

struct Work {
    world: RealWorld,
    volume: Volume<RealWorld>,
    page_bytes: u64,
    stopped: Cell<bool>,
    running: Cell<u32>,
    /// Of each lane: the longest of its operations, their sum, their count.
    longest: RefCell<[(Duration, Duration, u32); 4]>,
    failure: RefCell<Option<String>>,
}

impl Work {
    async fn run(self: Rc<Self>, lane: Load) {
        self.running.set(self.running.get() + 1);
        let mut prng = self.world.prng(Load::NAMES[lane as usize]);
        let mut fresh = 2 * WARM_PAGES;
        while !self.stopped.get() {
            let began = Instant::now();
            let outcome = match lane {
                Load::Tick => {
                    self.world.sleep(Duration::from_millis(1)).await;
                    Ok(())
                }
                Load::Read => self.read(prng.below(WARM_PAGES)).await,
                Load::Overwrite => self.write(WARM_PAGES + prng.below(WARM_PAGES)).await,
                Load::Allocate => {
                    fresh += 1;
                    self.write(fresh).await
                }
            };
            if let Err(error) = outcome {
                self.failure.replace(Some(error.to_string()));
                break;
            }
            self.count(lane, began.elapsed());
            // What is answered from memory waits for nothing, and would keep the shard.
            tokio::task::yield_now().await;
        }
        self.running.set(self.running.get() - 1);
    }

    fn count(&self, lane: Load, took: Duration) {
        let (longest, sum, count) = &mut self.longest.borrow_mut()[lane as usize];
        *longest = (*longest).max(took);
        *sum += took;
        *count += 1;
    }

    async fn read(&self, page: u64) -> Outcome<()> {
        let at = VolumeOffset(page * self.page_bytes);
        self.volume.read(at, BLOCK_BYTES).await?;
        Ok(())
    }

    async fn write(&self, page: u64) -> Outcome<()> {
        let at = VolumeOffset(page * self.page_bytes);
        let data = self.world.buffers().zeroed(BLOCK_BYTES).freeze();
        self.volume.write(at, data).await?;
        Ok(())
    }

    /// Prints the longest and the mean operation of each lane, and begins anew.
    fn longest_since(&self, phase: &str) {
        for (name, (longest, sum, count)) in Load::NAMES.iter().zip(self.longest.take()) {
            let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
            println!("{phase}_{name}_max_ms={:.1}", ms(longest));
            println!(
                "{phase}_{name}_mean_ms={:.2}",
                ms(sum) / f64::from(count.max(1))
            );
            println!("{phase}_{name}_count={count}");
        }
    }
}

/// A field of /proc/self/status, in KiB.
fn status(field: &str) -> Outcome<u64> {
    number("/proc/self/status", field)
}

/// Of all threads of this process, in the kernel too.
fn processor_time() -> Outcome<Duration> {
    let text = fs::read_to_string("/proc/self/stat")?;
    // Behind the name, which may hold anything: fields 14 and 15 are hundredths of a second.
    let (_, fields) = text.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(10 * ticks))
}

fn read_bytes() -> Outcome<u64> {
    number("/proc/self/io", "read_bytes:")
}

fn number(file: &str, field: &str) -> Outcome<u64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let value = line.and_then(|line| line.split_whitespace().next());
    Ok(value
        .ok_or_else(|| format!("{file} has no {field}"))?
        .parse()?)
}
