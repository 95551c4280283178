//! Random I/O over all volumes of a pool, so many commands outstanding: what the processor spends
//! on one.

use super::pool::{Bench, EXTENT_BYTES, EXTENTS, extent_at, finish, said};
use super::process;
use base::{Prng, VolumeOffset};
use engine::{Volume, World};
use futures_util::future::try_join_all;
use rehearse::parts::world::RigWorld;
use std::cell::Cell;

const BLOCK: u64 = 8 << 10;
const READS_PERCENT: u64 = 67;
const OUTSTANDING: u64 = 256;

/// Where commands go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// To what volumes hold.
    Held,
    /// Anywhere in volumes: nearly nothing is there, and a write takes a new page.
    Anywhere,
}

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Place::Held => "random 8 KiB, 67 % reads, of what volumes hold",
            Place::Anywhere => "random 8 KiB, 67 % reads, anywhere in the volumes",
        }
    }

    fn draw(self, prng: &mut Prng, volume: &Volume<RigWorld>) -> VolumeOffset {
        match self {
            Place::Held => {
                let extent = extent_at(volume, prng.below(EXTENTS));
                VolumeOffset(extent.0 + prng.below(EXTENT_BYTES / BLOCK) * BLOCK)
            }
            Place::Anywhere => VolumeOffset(prng.below(volume.size_bytes() / BLOCK) * BLOCK),
        }
    }
}

/// Nanoseconds of processor time for a command, and commands a second of virtual time.
#[derive(Clone, Copy)]
pub struct Cost {
    pub nanos: f64,
    pub per_virtual_s: f64,
}

/// Does so many commands.
///
/// # Errors
/// One of them failed.
pub fn measure(bench: &Bench, place: Place, round: u32, count: u64) -> Result<Cost, String> {
    let (world, left) = (&bench.world, Cell::new(count));
    let clients = (0..OUTSTANDING).map(|client| {
        let prng = world.prng(&format!("client {client}, {}, round {round}", place.name()));
        run_client(bench, place, prng, &left)
    });
    let (processor, now) = (process::processor_time()?, world.now());
    finish(world, async { try_join_all(clients).await })?;
    let took = process::processor_time()? - processor;
    Ok(Cost {
        nanos: took.as_nanos() as f64 / count as f64,
        per_virtual_s: count as f64 / world.now().since(now).as_secs_f64(),
    })
}

/// One command after the other, until all clients together have done so many.
async fn run_client(
    bench: &Bench,
    place: Place,
    mut prng: Prng,
    left: &Cell<u64>,
) -> Result<(), String> {
    while let Some(rest) = left.get().checked_sub(1) {
        left.set(rest);
        let volume = &bench.volumes[prng.below(bench.volumes.len() as u64) as usize];
        let at = place.draw(&mut prng, volume);
        match prng.chance(READS_PERCENT, 100) {
            true => volume.read(at, BLOCK as usize).await.map(|_| ()),
            false => {
                let data = bench.world.buffers().data(BLOCK as usize).freeze();
                volume.write(at, data).await
            }
        }
        .map_err(said)?;
    }
    Ok(())
}
