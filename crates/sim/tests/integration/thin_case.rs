//! A published case of thin provisioning, at 1:100: a volume of 700 GB had 520 GB mapped
//! when the files of its VMs were copied to it, 684 GB when the VMs ran, and 283 GB a day
//! after, when their guests had unmapped what they did not use (docs/internals/performance.md has
//! the source). The same is done to a volume here, over drives that keep no bytes, and
//! what the engine says is mapped is compared with arithmetic that knows nothing of it.

use base::{BufPool, Prng, Time, VolumeOffset};
use engine::{Lane, Level, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec, World};
use model::constant::Constant;
use std::ops::Range;
use std::rc::Rc;
use world_sim::{ModelledMedia, Order, Outcome, SimDrive, SimWorld};

/// What was published, and what is done here instead of it.
const SCALE: u64 = 100;
const GB: u64 = 1_000_000_000 / SCALE;
const VOLUME: u64 = 700 * GB;
const COPIED: u64 = 520 * GB;
const STARTED: u64 = 684 * GB;
const UNMAPPED: u64 = 283 * GB;

/// RAID 6 over 23 of 24 drives of 600 GB, one being a spare.
const DRIVES: usize = 23;
const DRIVE_BYTES: u64 = 600 * GB / 4096 * 4096;

const VMS: u64 = 10;
const SECTOR: u64 = 512;
const CLUSTER: u64 = 4096;
/// Hosts copy files in pieces of this size.
const PIECE: u64 = 1 << 20;

/// Which pages are mapped, by what was written and unmapped: a page is when a byte of it
/// was written, until all of it is unmapped by one command.
struct Arithmetic {
    page_bytes: u64,
    pages: Vec<bool>,
}

impl Arithmetic {
    fn written(&mut self, bytes: &Range<u64>) {
        let last = (bytes.end - 1) / self.page_bytes;
        self.pages[(bytes.start / self.page_bytes) as usize..=last as usize].fill(true);
    }

    fn unmapped(&mut self, bytes: &Range<u64>) {
        for page in bytes.start.div_ceil(self.page_bytes)..bytes.end / self.page_bytes {
            self.pages[page as usize] = false;
        }
    }

    fn mapped_bytes(&self) -> u64 {
        self.pages.iter().filter(|page| **page).count() as u64 * self.page_bytes
    }
}

struct Case {
    world: SimWorld,
    pool: Lane<SimWorld>,
    volume: Volume<SimWorld>,
    arithmetic: Arithmetic,
    /// Where the next file goes: after what a partition table takes.
    next: u64,
}

impl Case {
    /// Copies a file to the volume; gives where it is.
    async fn copy(&mut self, len: u64) -> Range<u64> {
        let file = self.next..self.next + len;
        for from in file.clone().step_by(PIECE as usize) {
            let to = file.end.min(from + PIECE);
            let data = self.world.buffers().data((to - from) as usize).freeze();
            self.volume.write(VolumeOffset(from), data).await.unwrap();
        }
        self.arithmetic.written(&file);
        self.next = file.end.next_multiple_of(CLUSTER);
        file
    }

    async fn unmap(&mut self, bytes: Range<u64>) {
        let at = VolumeOffset(bytes.start);
        let len = bytes.end - bytes.start;
        self.volume.clear(at, len).await.unwrap();
        self.arithmetic.unmapped(&bytes);
    }

    /// Compares what is mapped with the arithmetic, and what was published; the edges of so
    /// many runs of bytes may lie inside pages.
    fn check(&self, what: &str, published: u64, runs: u64) {
        let mapped = self.volume.info().mapped_bytes;
        let expected = self.arithmetic.mapped_bytes();
        let page_bytes = self.arithmetic.page_bytes;
        println!(
            "{what}: {:.3} GB x {SCALE} mapped, {:.3} by arithmetic, {} published",
            mapped as f64 / 1e9,
            expected as f64 / 1e9,
            published / GB,
        );
        assert!(mapped.abs_diff(expected) <= page_bytes, "{what}");
        assert!(
            mapped.abs_diff(published) <= runs * 2 * page_bytes,
            "{what}"
        );
        assert_eq!(self.pool.info().mapped_bytes, mapped, "{what}: of the pool");
    }
}

/// Parts of `total`, in sectors, none like the other.
fn parts(total: u64) -> Vec<u64> {
    let weights = VMS * (VMS + 1) / 2 + VMS * 8;
    let part = |vm: u64| total * (vm + 8) / weights / SECTOR * SECTOR;
    let mut parts: Vec<u64> = (1..VMS).map(part).collect();
    parts.push(total / SECTOR * SECTOR - parts.iter().sum::<u64>());
    parts
}

/// What a guest does not use of its disk: as long runs as file systems leave, at clusters
/// of the guest's, `unused` bytes in all.
fn free_runs(disk: &Range<u64>, mut unused: u64, prng: &mut Prng) -> Vec<Range<u64>> {
    let used_share = (disk.end - disk.start - unused) as f64 / unused as f64;
    let (mut runs, mut at) = (Vec::new(), disk.start);
    while unused > 0 {
        let len = (CLUSTER * prng.between(16, 16384)).min(unused);
        runs.push(at..at + len);
        unused -= len;
        // What is used lies behind; rounded down, so that all of it has room.
        at += len + (len as f64 * used_share) as u64 / CLUSTER * CLUSTER;
    }
    assert!(runs.last().unwrap().end <= disk.end);
    runs
}

async fn replay(world: SimWorld, drives: Vec<NamedDrive<SimWorld>>) {
    let pool = Lane::create(world.clone(), PoolSpec::new("case", Level::Raid6), drives);
    let pool = pool.await.unwrap();
    let spec = VolumeSpec {
        name: "csv".to_owned(),
        size_bytes: VOLUME,
        provisioning: Provisioning::Thin,
    };
    let volume = pool.create_volume(spec).await.unwrap();
    let page_bytes = u64::from(pool.info().page_bytes);
    let mut case = Case {
        world: world.clone(),
        pool,
        volume,
        arithmetic: Arithmetic {
            page_bytes,
            pages: vec![false; VOLUME.div_ceil(page_bytes) as usize],
        },
        next: 1 << 20,
    };
    case.check("new", 0, 0);

    let mut disks = Vec::new();
    for len in parts(COPIED) {
        disks.push(case.copy(len).await);
    }
    case.check("files of the VMs copied", COPIED, 1);

    // A VM that runs has a file as large as its memory.
    for len in parts(STARTED - COPIED) {
        case.copy(len).await;
    }
    case.check("the VMs started", STARTED, 1);

    let mut prng = world.prng("guests");
    let mut runs = Vec::new();
    for (disk, unused) in disks.iter().zip(parts(STARTED - UNMAPPED)) {
        runs.extend(free_runs(disk, unused, &mut prng));
    }
    for run in runs.clone() {
        case.unmap(run).await;
    }
    case.check("unmapped by the guests", UNMAPPED, runs.len() as u64);
    case.pool.close().await.unwrap();
}

#[test]
fn the_published_thin_volume_grows_and_shrinks_as_by_arithmetic() {
    let seed = Prng::from_seed(520_684_283);
    let order = Order::Fifo;
    let world = SimWorld::new(seed.clone(), order, BufPool::length_only(), Time(0));
    let drive = |place| {
        let name = format!("drive{place}");
        let media = ModelledMedia::new(DRIVE_BYTES, Constant::FLASH, seed.stream(&name));
        let drive = SimDrive::modelled(&world, &Rc::new(media));
        NamedDrive { name, drive }
    };
    let drives = (0..DRIVES).map(drive).collect();
    let outcome = world.run(u64::MAX, replay(world.clone(), drives)).unwrap();
    assert!(matches!(outcome, Outcome::Done(())));
    world.power_off();
}
