//! What others have on drives before the first start.

use super::shelf::{Bay, NAMESAKES, Shelf};
use crate::pool_changes::Door;
use crate::shards::Shards;
use array::pool::opening::Opening;
use base::DriveOffset;
use engine::drive::Drive as _;
use engine::{Level, PoolSpec, World};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use world_sim::{Media, SimDrive, SimWorld};

/// After so long nothing is under way on drives of pools that were closed.
const QUIET: Duration = Duration::from_secs(30);

/// Puts on drives what others have there: a pool that is called `name` as one of this array, another
/// one, and something else.
///
/// # Errors
/// It can't be made.
pub(crate) async fn make_others(world: &SimWorld, shelf: &Shelf, name: &str) -> Result<(), String> {
    let others = shelf.others();
    let shards = Shards::new(world, 2);
    let doors = |range: Range<usize>| {
        let door = |bay: &Rc<Bay>| Door::from(&(bay.name.clone(), Rc::clone(&bay.media)));
        others[range].iter().map(door).collect::<Vec<Door>>()
    };
    let pools = [
        (name, Level::Raid10 { copies: 2 }, 0..NAMESAKES),
        ("x", Level::Simple, NAMESAKES..3),
    ];
    for (name, level, range) in pools {
        let spec = PoolSpec {
            stripe_unit_bytes: 8 << 10,
            page_bytes: 8 << 10,
            journal_bytes: Some(16 << 10),
            zone_bytes: Some(64 << 10),
            log_bytes: Some(256 << 10),
            volumes_max: 8,
            nonce: 7,
            ..PoolSpec::new(name, level)
        };
        let lanes = range.len();
        let opening = Opening::new(name.to_owned(), shards.handles[..lanes].to_vec());
        let made = opening.create(&spec, &[(level, doors(range))], &[]).await;
        made.map_err(|error| format!("the pool of others: {error}"))?;
        let closed = opening.close().await;
        closed.map_err(|error| format!("the pool of others: {error}"))?;
    }
    write_something(world, &others[3].media).await?;
    // What is not on media may go with the power, also later; so may what is under way still.
    world.sleep(QUIET).await;
    for bay in others {
        let drive = SimDrive::adversarial(world, &bay.media);
        let flushed = drive.flush().await;
        flushed.map_err(|error| format!("the drive of others: {error}"))?;
    }
    Ok(())
}

/// Puts something on a drive that is no label.
async fn write_something(world: &SimWorld, media: &Rc<Media>) -> Result<(), String> {
    let drive = SimDrive::adversarial(world, media);
    let mut buf = world.buffers().data(4096);
    if let Some(bytes) = buf.bytes_mut() {
        bytes.fill(7);
    }
    let written = drive.write_durable(DriveOffset(4096), buf.freeze()).await;
    written.map_err(|error| format!("the drive of others: {error}"))
}
