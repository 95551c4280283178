//! How many 4 KiB operations per second a drive of the real world does.
//!
//! `drive_rate PATH read|write|durable SECONDS [DEPTH]` opens the file or block
//! device at PATH as a drive (its content is overwritten by the writing modes)
//! and prints one number: operations per second over SECONDS, with DEPTH
//! (default 32) outstanding at random offsets. With `durable` every write is on
//! stable media before it counts.
//! `scripts/bench` puts this beside fio.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of the real world, which measures with its clock"
)]

use base::{BLOCK_BYTES, Buf, DriveOffset};
use engine::drive::{Drive, DriveError};
use engine::world::World;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use world_real::{RealDrive, RealWorld};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (path, mode, seconds, depth) = match &args[..] {
        [path, mode, seconds] => (path, mode, seconds, "32"),
        [path, mode, seconds, depth] => (path, mode, seconds, depth.as_str()),
        _ => return Err("usage: drive_rate PATH read|write|durable SECONDS [DEPTH]".into()),
    };
    let mode = match mode.as_str() {
        "read" => Mode::Read,
        "write" => Mode::Write,
        "durable" => Mode::Durable,
        other => return Err(format!("{other}: use read, write or durable").into()),
    };
    let (seconds, depth): (f64, u64) = (seconds.parse()?, depth.parse()?);
    let rate = world_real::run(|world| async move {
        let drive = RealDrive::open(&world, Path::new(path))?;
        measure(world, drive, mode, Duration::from_secs_f64(seconds), depth)
            .await
            .map_err(Box::<dyn Error>::from)
    })??;
    println!("{rate:.0}");
    Ok(())
}

#[derive(Clone, Copy)]
enum Mode {
    Read,
    Write,
    Durable,
}

struct Bench {
    world: RealWorld,
    drive: RealDrive,
    mode: Mode,
    blocks: u64,
    stopped: Cell<bool>,
    done: Cell<u64>,
    failure: RefCell<Option<DriveError>>,
}

async fn measure(
    world: RealWorld,
    drive: RealDrive,
    mode: Mode,
    duration: Duration,
    depth: u64,
) -> Result<f64, DriveError> {
    let blocks = drive.geometry().capacity_bytes / BLOCK_BYTES as u64;
    let bench = Rc::new(Bench {
        world: world.clone(),
        drive,
        mode,
        blocks,
        stopped: Cell::new(false),
        done: Cell::new(0),
        failure: RefCell::new(None),
    });
    let began = world.now();
    for lane in 0..depth {
        let bench = Rc::clone(&bench);
        world.spawn(async move {
            if let Err(error) = bench.run_lane(lane).await {
                bench.failure.replace(Some(error));
            }
        });
    }
    world.sleep(duration).await;
    bench.stopped.set(true);
    let rate = bench.done.get() as f64 / world.now().since(began).as_secs_f64();
    match bench.failure.take() {
        Some(error) => Err(error),
        None => Ok(rate),
    }
}

impl Bench {
    async fn run_lane(&self, lane: u64) -> Result<(), DriveError> {
        let mut prng = self.world.prng(&format!("lane {lane}"));
        let mut buf = self.world.buffers().zeroed(BLOCK_BYTES);
        let data = self.world.buffers().zeroed(BLOCK_BYTES).freeze();
        while !self.stopped.get() {
            let at = DriveOffset(prng.below(self.blocks) * BLOCK_BYTES as u64);
            match self.mode {
                Mode::Read => buf = self.read(at, buf).await?,
                Mode::Write => self.drive.write(at, data.clone()).await?,
                Mode::Durable => self.drive.write_durable(at, data.clone()).await?,
            }
            self.done.set(self.done.get() + 1);
        }
        Ok(())
    }

    async fn read(&self, at: DriveOffset, buf: Buf) -> Result<Buf, DriveError> {
        let (buf, result) = self.drive.read(at, buf).await;
        result.map(|()| buf)
    }
}
