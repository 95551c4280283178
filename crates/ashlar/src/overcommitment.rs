//! Warns of volumes that come to be more than their pool can hold.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::Format;
use api::{Pool, Volume};
use server::overcommitment::{Sizes, warnings};

/// The volumes before a change; none are looked at where programs read.
pub struct VolumesBefore(Option<Vec<Volume>>);

impl VolumesBefore {
    /// Looks at the volumes.
    ///
    /// # Errors
    /// The array does not answer.
    pub fn look(client: &Client, format: Format) -> Result<VolumesBefore, Failure> {
        Ok(VolumesBefore(match format.is_json() {
            true => None,
            false => Some(client.get(&["volumes"])?),
        }))
    }

    /// Warns on standard error of the volumes that are larger by now than their pool, or bring
    /// the sum above what it can hold. The change is made: where the array does not answer any
    /// more, nothing is said.
    pub fn warn(&self, client: &Client) {
        let Some(before) = &self.0 else { return };
        let after: Result<Vec<Volume>, Failure> = client.get(&["volumes"]);
        let pools: Result<Vec<Pool>, Failure> = client.get(&["pools"]);
        let (Ok(after), Ok(pools)) = (after, pools) else {
            return;
        };
        for pool in &pools {
            let (before, after) = (sizes(before, pool), sizes(&after, pool));
            for warning in warnings((&pool.name, pool.capacity_bytes), &before, &after) {
                eprintln!("warning: {warning}");
            }
        }
    }
}

fn sizes<'a>(volumes: &'a [Volume], pool: &Pool) -> Sizes<'a> {
    let ours = volumes.iter().filter(|volume| volume.pool == pool.name);
    ours.map(|volume| (volume.name.as_str(), volume.size_bytes))
        .collect()
}
