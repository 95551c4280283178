//! Shares memory for checksums of blocks among the lanes of all pools.
//!
//! A lane whose checksums do not fit its memory reads some of them from its drives for each read of
//! a block. Checksums take about a thousandth of the data that they are of.
//!
//! Invariants:
//! - Lanes of shards that answer have together what the settings say, or else an eighth of the
//!   machine's memory. But each lane has what the engine gives one by itself, at least.
//! - Where all checksums fit, each lane has room for all of its own. Elsewhere lanes have parts of
//!   the memory in the ratio of their checksums.
//! - Shards that are silent keep what they have until they answer.

use super::{ArrayError, ControlPlane};
use crate::shard::ShardState;
use engine::{Lane, World};
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The part of the machine's memory that checksums get when the settings say nothing.
const PART: u64 = 8;

/// Memory that a block of checksums takes: its bytes, and what leads to it.
const BLOCK_BYTES: u64 = 4096 + 160;

/// How often pools are looked at.
const PAUSE: Duration = Duration::from_secs(5);

/// Room for the checksums of zones that come into use until the next look: one part of so many.
const GROWTH_PARTS: u64 = 8;

/// A lane of a pool: its pool, and its number there.
type LaneKey = (String, u16);

impl<W: World> ControlPlane<W> {
    /// Shares the memory for checksums in the background from now on.
    pub fn keep_checksum_memory(self: &Arc<Self>) {
        let (array, runtime) = (Arc::downgrade(self), Arc::clone(&self.runtime));
        let keep = async move {
            while let Some(array) = array.upgrade() {
                if array.share_checksum_memory().await.is_err() {
                    return;
                }
                drop(array);
                runtime.sleep(PAUSE).await;
            }
        };
        self.runtime.spawn(keep.boxed());
    }

    /// Gives each lane its part of the memory for checksums. Returns how many blocks of checksums
    /// each may keep; none where nobody says how much memory there is.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn share_checksum_memory(&self) -> Result<BTreeMap<LaneKey, u64>, ArrayError> {
        let said = self.settings().limits.checksum_memory_bytes;
        let there_is = self.machine.memory_bytes();
        let Some(bytes) = said.or(there_is.map(|all| all / PART)) else {
            return Ok(BTreeMap::new());
        };
        let look = |_| {
            |state: Rc<ShardState<W>>| async move {
                let pools = state.pools();
                let needs = pools.iter().map(|lane| (key(lane), needed_blocks(lane)));
                needs.collect::<Vec<_>>()
            }
        };
        let answers = self.ask_all(false, look).await?;
        let needs = answers.into_iter().filter_map(|(_, said)| said).flatten();
        let shares = shares(bytes / BLOCK_BYTES, needs.collect());
        let give = |_| {
            let shares = shares.clone();
            move |state: Rc<ShardState<W>>| async move {
                for lane in state.pools() {
                    if let Some(blocks) = shares.get(&key(&lane)) {
                        lane.set_checksum_blocks(*blocks);
                    }
                }
            }
        };
        self.ask_all(false, give).await?;
        Ok(shares)
    }
}

fn key<W: World>(lane: &Lane<W>) -> LaneKey {
    (lane.name().to_owned(), lane.lane())
}

/// Blocks of checksums that a lane has, and will have soon.
fn needed_blocks<W: World>(lane: &Lane<W>) -> u64 {
    let there_are = lane.checksum_blocks_on_drives();
    there_are + there_are.div_ceil(GROWTH_PARTS)
}

/// What each lane may keep of so many blocks, by what it needs.
fn shares(blocks: u64, needs: Vec<(LaneKey, u64)>) -> BTreeMap<LaneKey, u64> {
    let all = needs
        .iter()
        .fold(0, |sum: u64, (_, need)| sum.saturating_add(*need));
    let share = |need: u64| match all <= blocks {
        true => need,
        false => (u128::from(blocks) * u128::from(need) / u128::from(all)) as u64,
    };
    let shares = needs.into_iter().map(|(lane, need)| (lane, share(need)));
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(blocks: u64, needs: &[(u16, u64)]) -> Vec<u64> {
        let needs = needs
            .iter()
            .map(|(lane, need)| (("p".to_owned(), *lane), *need));
        shares(blocks, needs.collect()).into_values().collect()
    }

    #[test]
    fn what_fits_is_given_and_what_does_not_is_shared_by_need() {
        assert_eq!(shared(100, &[(0, 60), (1, 40)]), [60, 40]);
        assert_eq!(shared(50, &[(0, 60), (1, 40)]), [30, 20]);
        assert_eq!(shared(50, &[(0, 0), (1, 100)]), [0, 50]);
        assert_eq!(shared(50, &[]), [0; 0]);
        let most = u64::MAX;
        assert_eq!(shared(most - 1, &[(0, most), (1, 0)]), [most - 1, 0]);
    }
}
