//! Warns that a snapshot or a clone may cost space later.
//!
//! A volume whose data it shares takes space again for all that hosts overwrite.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::Format;
use api::{Pool, Volume};
use site::human;
use std::collections::BTreeMap;

/// Says on standard error which pools have too little room for hosts that overwrite all of these
/// volumes.
///
/// # Errors
/// The array does not answer.
pub fn warn(client: &Client, volumes: &[&str], format: Format) -> Result<(), Failure> {
    if format.is_json() {
        return Ok(());
    }
    let mut shared: BTreeMap<String, u64> = BTreeMap::new();
    for name in volumes {
        let volume: Volume = client.get(&["volumes", name])?;
        *shared.entry(volume.pool).or_default() += volume.mapped_bytes;
    }
    for (name, bytes) in shared {
        let pool: Pool = client.get(&["pools", &name])?;
        if let Some(warning) = warning(&pool, volumes, bytes) {
            eprintln!("{warning}");
        }
    }
    Ok(())
}

fn warning(pool: &Pool, volumes: &[&str], shared_bytes: u64) -> Option<String> {
    (shared_bytes > pool.free_bytes).then(|| {
        format!(
            "warning: pool {} has {} free, and hosts that overwrite all of {} need {}: their writes \
             fail when the pool is full; grow the pool, or delete the snapshot or clone in time",
            pool.name,
            human(pool.free_bytes),
            volumes.join(", "),
            human(shared_bytes)
        )
    })
}
