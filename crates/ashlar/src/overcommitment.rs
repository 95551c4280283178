//! Warns that the volumes of a pool have more space between them than the pool can hold.
//!
//! That is what thin volumes are for, and it is also a mistake that shows when writes fail.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::Format;
use server::api::types::{Pool, Volume};
use site::human;

/// Says on standard error that `volume`, which had `before_bytes` until now, is larger than its
/// pool, or brings the sum of the volumes above what the pool can hold. A pool that was
/// overcommitted before is not told of again. The volume is made: where the array does not answer,
/// nothing is said.
pub fn warn(client: &Client, volume: &Volume, before_bytes: u64, format: Format) {
    if format.is_json() || volume.size_bytes <= before_bytes {
        return;
    }
    let pool: Result<Pool, Failure> = client.get(&["pools", &volume.pool]);
    let all: Result<Vec<Volume>, Failure> = client.get(&["volumes"]);
    let (Ok(pool), Ok(all)) = (pool, all) else {
        return;
    };
    let ours = all.iter().filter(|other| other.pool == volume.pool);
    let sizes = ours.map(|other| other.size_bytes);
    let sum_bytes = sizes.fold(0, u64::saturating_add);
    let sums = (
        sum_bytes.saturating_sub(volume.size_bytes - before_bytes),
        sum_bytes,
    );
    if let Some(warning) = warning((&pool.name, pool.capacity_bytes), volume, sums) {
        eprintln!("{warning}");
    }
}

/// What to say, given the sums of the volumes before and after.
fn warning(
    (pool, capacity_bytes): (&str, u64),
    volume: &Volume,
    (before_bytes, after_bytes): (u64, u64),
) -> Option<String> {
    let holds = format!("pool {pool} holds {}", human(capacity_bytes));
    let what = if volume.size_bytes > capacity_bytes {
        format!(
            "{holds}, and volume {} has {}",
            volume.name,
            human(volume.size_bytes)
        )
    } else if before_bytes <= capacity_bytes && after_bytes > capacity_bytes {
        format!(
            "{holds}, and its volumes have {} in all",
            human(after_bytes)
        )
    } else {
        return None;
    };
    Some(format!(
        "warning: {what}: writes fail when the pool is full; grow the pool in time"
    ))
}
