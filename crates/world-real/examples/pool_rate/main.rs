//! What a pool over drive files does, without a protocol in front of it.
//!
//! `pool_rate DIR LEVEL DRIVES DRIVE_MIB VOLUME_MIB CACHE_MIB STEP...` makes DRIVES
//! files in DIR, a pool of them and a volume, and runs the steps one after the other:
//!
//! - `fill`: writes the volume once from end to end, 1 MiB at a time
//! - `drain`: puts in place what is in the log
//! - `KIND:BYTES:DEPTH:SECONDS`: keeps DEPTH operations of BYTES under way; KIND is
//!   `randread`, `seqread`, `randwrite`, `seqwrite`, or `mixP` (random, P per cent
//!   reads). With `served-` before it, what was read is copied, as a socket does;
//!   with `unverified-`, it is copied and not checked against its sums: the difference
//!   is what the check costs a read that somebody gets
//!
//! - `limit:MIB`: from here on each drive moves so many MiB a second and no more
//! - `rebuild`: puts a new drive in the place of the second, and measures what reaches
//!   it, from the first byte to the last
//!
//! For each measured step it prints a line of JSON: operations and bytes a second,
//! microseconds of the thread's processor time an operation, and what the drives were
//! used for meanwhile. `scripts/bench` puts this beside fio.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of the real world, which measures with its clock"
)]

mod limited;

use base::{BLOCK_BYTES, BufPool, Payload, Prng, Slice, Time, VolumeOffset};
use engine::pool::maintenance::Rates;
use engine::pool::{Level, MemberState};
use engine::store::counts::{IoCounts, Operations};
use engine::{Lane, NamedDrive, PoolSpec, Provisioning, Volume, VolumeSpec, World};
use limited::{Limit, LimitedDrive};
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use world_real::{RealDrive, RealWorld};

type Outcome<T> = Result<T, Box<dyn Error>>;

const MIB: u64 = 1 << 20;

/// The real world, in which reads can go unchecked for once.
#[derive(Clone)]
struct BenchWorld {
    real: RealWorld,
    unverified: Rc<Cell<bool>>,
    limit: Limit,
    dir: PathBuf,
    drive_bytes: u64,
}

impl BenchWorld {
    /// A new file as a drive.
    fn drive(&self, name: &str) -> Outcome<NamedDrive<BenchWorld>> {
        let path = self.dir.join(format!("{name}.img"));
        RealDrive::create_file(&path, self.drive_bytes)?;
        let drive = RealDrive::open(&self.real, &path)?;
        Ok(NamedDrive {
            name: name.to_owned(),
            drive: LimitedDrive::over(&self.real, drive, &self.limit),
        })
    }
}

impl World for BenchWorld {
    type Drive = LimitedDrive;

    fn now(&self) -> Time {
        self.real.now()
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.real.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        self.real.sleep(duration)
    }

    fn prng(&self, name: &str) -> Prng {
        self.real.prng(name)
    }

    fn buffers(&self) -> &BufPool {
        self.real.buffers()
    }

    fn planted(&self, bug: &'static str) -> bool {
        self.unverified.get() && bug == "sums not verified on reads"
    }
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [
        dir,
        level,
        drives,
        drive_mib,
        volume_mib,
        cache_mib,
        steps @ ..,
    ] = &args[..]
    else {
        return Err(
            "usage: pool_rate DIR LEVEL DRIVES DRIVE_MIB VOLUME_MIB CACHE_MIB STEP...".into(),
        );
    };
    let level = level_of(level)?;
    let steps: Vec<Step> = steps
        .iter()
        .map(|step| Step::read(step))
        .collect::<Outcome<_>>()?;
    let (drives, drive_mib): (usize, u64) = (drives.parse()?, drive_mib.parse()?);
    let (volume_mib, cache_mib): (u64, u64) = (volume_mib.parse()?, cache_mib.parse()?);
    world_real::run(|world| async move {
        let world = BenchWorld {
            real: world,
            unverified: Rc::default(),
            limit: Rc::default(),
            dir: PathBuf::from(dir),
            drive_bytes: drive_mib * MIB,
        };
        let named = (0..drives).map(|index| world.drive(&format!("d{index}")));
        let named = named.collect::<Outcome<Vec<_>>>()?;
        let pool = Lane::create(world.clone(), PoolSpec::new("bench", level), named).await?;
        pool.store().cache.set_capacity(cache_mib * MIB);
        let spec = VolumeSpec {
            name: "v".to_owned(),
            size_bytes: volume_mib * MIB,
            provisioning: Provisioning::Thin,
        };
        let volume = pool.create_volume(spec).await?;
        for step in steps {
            step.run(&world, &pool, &volume).await?;
        }
        pool.close().await?;
        Ok(())
    })?
}

fn level_of(text: &str) -> Outcome<Level> {
    let all = [
        Level::Simple,
        Level::Raid10 { copies: 2 },
        Level::Raid10 { copies: 3 },
        Level::Raid5,
        Level::Raid50,
        Level::Raid6,
    ];
    let found = all.into_iter().find(|level| level.to_string() == text);
    found.ok_or_else(|| format!("{text}: no level").into())
}

/// What is done to the volume.
#[derive(Clone, Debug)]
enum Step {
    Fill,
    Drain,
    /// MiB a second.
    Limit(u64),
    Rebuild,
    Load(Load),
}

/// A closed loop of operations.
#[derive(Clone, Debug)]
struct Load {
    name: String,
    /// Reads are copied, and with that not checked.
    served: bool,
    unverified: bool,
    read_percent: u64,
    random: bool,
    len_bytes: u64,
    depth: u64,
    duration: Duration,
}

impl Step {
    fn read(text: &str) -> Outcome<Step> {
        let parts: Vec<&str> = text.split(':').collect();
        let [kind, bytes, depth, seconds] = parts[..] else {
            return match text {
                "fill" => Ok(Step::Fill),
                "drain" => Ok(Step::Drain),
                "rebuild" => Ok(Step::Rebuild),
                other if other.starts_with("limit:") => Ok(Step::Limit(parts[1].parse()?)),
                other => Err(format!("{other}: no step").into()),
            };
        };
        let served = kind.strip_prefix("served-");
        let unverified = kind.strip_prefix("unverified-");
        let (read_percent, random) = match unverified.or(served).unwrap_or(kind) {
            "randread" => (100, true),
            "seqread" => (100, false),
            "randwrite" => (0, true),
            "seqwrite" => (0, false),
            mix => (
                mix.strip_prefix("mix").ok_or("no such kind")?.parse()?,
                true,
            ),
        };
        Ok(Step::Load(Load {
            name: kind.to_owned(),
            served: served.or(unverified).is_some(),
            unverified: unverified.is_some(),
            read_percent,
            random,
            len_bytes: bytes.parse()?,
            depth: depth.parse()?,
            duration: Duration::from_secs_f64(seconds.parse()?),
        }))
    }

    async fn run(
        self,
        world: &BenchWorld,
        pool: &Lane<BenchWorld>,
        volume: &Volume<BenchWorld>,
    ) -> Outcome<()> {
        match self {
            Step::Drain => pool.store().drain().await?,
            Step::Limit(mib) => world.limit.set(Some(mib * MIB)),
            Step::Rebuild => {
                let rate = rebuild(world, pool).await?;
                println!("{{\"step\": \"rebuild\", \"bytes_per_s\": {rate:.0}}}");
            }
            Step::Fill => {
                for at in (0..volume.size_bytes()).step_by(MIB as usize) {
                    volume
                        .write(VolumeOffset(at), random(world, MIB as usize))
                        .await?;
                }
            }
            Step::Load(load) => {
                let (io, cpu_ns) = (pool.store().io(), cpu_ns()?);
                world.unverified.set(load.unverified);
                let (operations, took) = load.run(world, volume).await?;
                world.unverified.set(false);
                let cpu_us = (self::cpu_ns()? - cpu_ns) as f64 / 1e3 / operations as f64;
                let rate = operations as f64 / took.as_secs_f64();
                println!(
                    "{{\"step\": \"{}\", \"operations_per_s\": {rate:.0}, \"bytes_per_s\": {:.0}, \
                     \"cpu_us\": {cpu_us:.2}, \"io\": {}}}",
                    load.name,
                    rate * load.len_bytes as f64,
                    json(&io, &pool.store().io())
                );
            }
        }
        Ok(())
    }
}

/// The state of a load that is under way.
struct Running {
    load: Load,
    volume: Volume<BenchWorld>,
    data: Slice,
    stopped: Cell<bool>,
    done: Cell<u64>,
    /// Where the next operation of a sequence goes, in operations.
    next: Cell<u64>,
    failure: RefCell<Option<String>>,
    lanes: Cell<u64>,
}

impl Load {
    /// Operations that were done, and how long it took.
    async fn run(
        &self,
        world: &BenchWorld,
        volume: &Volume<BenchWorld>,
    ) -> Outcome<(u64, Duration)> {
        let running = Rc::new(Running {
            load: self.clone(),
            volume: volume.clone(),
            data: random(world, self.len_bytes as usize),
            stopped: Cell::new(false),
            done: Cell::new(0),
            next: Cell::new(0),
            failure: RefCell::new(None),
            lanes: Cell::new(self.depth),
        });
        let began = world.now();
        for lane in 0..self.depth {
            let running = Rc::clone(&running);
            let prng = world.prng(&format!("{} lane {lane}", self.name));
            world.spawn(async move { running.lane(prng).await });
        }
        world.sleep(self.duration).await;
        running.stopped.set(true);
        let (done, took) = (running.done.get(), world.now().since(began));
        while running.lanes.get() > 0 {
            world.sleep(Duration::from_millis(1)).await;
        }
        match running.failure.take() {
            Some(failure) => Err(failure.into()),
            None => Ok((done.max(1), took)),
        }
    }
}

impl Running {
    async fn lane(&self, mut prng: Prng) {
        let places = self.volume.size_bytes() / self.load.len_bytes;
        let mut socket = Vec::new();
        while !self.stopped.get() {
            let place = match self.load.random {
                true => prng.below(places),
                false => self.next.replace((self.next.get() + 1) % places),
            };
            let at = VolumeOffset(place * self.load.len_bytes);
            let outcome = match prng.below(100) < self.load.read_percent {
                true => {
                    let read = self.volume.read(at, self.load.len_bytes as usize).await;
                    read.map(|payload| {
                        if self.load.served {
                            copy(&payload, &mut socket);
                        }
                    })
                }
                false => self.volume.write(at, self.data.clone()).await,
            };
            if let Err(error) = outcome {
                self.failure.replace(Some(error.to_string()));
                break;
            }
            self.done.set(self.done.get() + 1);
        }
        self.lanes.set(self.lanes.get() - 1);
    }
}

/// Bytes a second that reach a drive that is rebuilt while nothing else goes on.
async fn rebuild(world: &BenchWorld, pool: &Lane<BenchWorld>) -> Outcome<f64> {
    pool.set_rates(Rates {
        rebuild_bytes_per_s: None,
        yields: false,
        ..Rates::default()
    });
    let written = || pool.store().io().repair_writes.bytes;
    let before = written();
    let cpu = cpu_ns()?;
    pool.replace_drive("d1", world.drive("fresh")?).await?;
    let (mut first, mut last) = (None, (world.now(), before));
    loop {
        let now = (world.now(), written());
        if now.1 > last.1 {
            first.get_or_insert(now);
            last = now;
        }
        let info = pool.info();
        let is_over = |member: &engine::pool::MemberInfo| member.state == MemberState::Healthy;
        if first.is_some() && info.members.iter().all(is_over) {
            break;
        }
        world.sleep(Duration::from_millis(2)).await;
    }
    let first = first.ok_or("nothing was rebuilt")?;
    let took = last.0.since(first.0).as_secs_f64();
    eprintln!(
        "rebuilt {} MiB, {:.0} % of a core",
        (last.1 - before) / MIB,
        (cpu_ns()? - cpu) as f64 / 1e7 / took
    );
    Ok((last.1 - first.1) as f64 / took)
}

/// What a socket does with what was read.
fn copy(payload: &Payload, socket: &mut Vec<u8>) {
    socket.clear();
    for part in &payload.parts {
        socket.extend_from_slice(part.bytes().unwrap_or_default());
    }
    black_box(socket);
}

/// Bytes that no drive can make less of.
fn random(world: &BenchWorld, len: usize) -> Slice {
    assert!(len.is_multiple_of(BLOCK_BYTES));
    let mut bytes = vec![0; len];
    world.prng("data").fill(&mut bytes);
    world.buffers().copy_of(&bytes).freeze()
}

/// Processor time of this thread so far.
fn cpu_ns() -> Outcome<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().ok_or("no schedstat")?;
    Ok(first.parse()?)
}

fn json(before: &IoCounts, after: &IoCounts) -> String {
    type Kind = fn(&IoCounts) -> Operations;
    let kinds: [(&str, Kind); 11] = [
        ("host_reads", |io| io.host_reads),
        ("host_writes", |io| io.host_writes),
        ("data_reads", |io| io.data_reads),
        ("modify_reads", |io| io.modify_reads),
        ("data_writes", |io| io.data_writes),
        ("parity_writes", |io| io.parity_writes),
        ("repair_reads", |io| io.repair_reads),
        ("repair_writes", |io| io.repair_writes),
        ("log_writes", |io| io.log_writes),
        ("intent_writes", |io| io.intent_writes),
        ("sum_writes", |io| io.sum_writes),
    ];
    let of = |(name, kind): &(&str, Kind)| {
        let (before, after) = (kind(before), kind(after));
        format!(
            "\"{name}\": {{\"count\": {}, \"bytes\": {}}}",
            after.count - before.count,
            after.bytes - before.bytes
        )
    };
    let plain = [
        (
            "partial_stripes",
            after.partial_stripes - before.partial_stripes,
        ),
        ("whole_stripes", after.whole_stripes - before.whole_stripes),
        (
            "bypassed_bytes",
            after.bypassed_bytes - before.bypassed_bytes,
        ),
    ]
    .map(|(name, count)| format!("\"{name}\": {count}"));
    let all: Vec<String> = kinds.iter().map(of).chain(plain).collect();
    format!("{{{}}}", all.join(", "))
}
