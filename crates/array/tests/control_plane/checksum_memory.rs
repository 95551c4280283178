//! Tests of the memory for checksums of blocks: who gets how much, and what is the least.

use crate::world::{Array, boot, create, media};
use array::shard::ShardState;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use world_sim::SimWorld;

/// What a lane of a pool that has one keeps by itself: 64 MiB.
const USUAL_BLOCKS: usize = 16 << 10;

fn has_memory(array: &Array, bytes: u64) {
    let mut settings = (*array.settings()).clone();
    settings.limits.checksum_memory_bytes = Some(bytes);
    array.settings_are(Arc::new(settings));
}

/// Blocks of checksums that the only lane may keep.
async fn budget(array: &Array) -> usize {
    let look = |_| {
        |state: Rc<ShardState<SimWorld>>| async move {
            let lanes = state.pools();
            lanes[0].store().integrity.budget_blocks()
        }
    };
    let answers = array.ask_all(true, look).await.unwrap();
    answers[0].1.unwrap()
}

#[test]
fn a_lane_has_what_it_needs_and_never_less_than_by_itself() {
    boot(&media(), 0, async |array| {
        assert_eq!(budget(&array).await, USUAL_BLOCKS);
        let shares = array.share_checksum_memory().await.unwrap();
        assert_eq!(shares, BTreeMap::new(), "nobody says how much there is");
        create(&array, "v").await;
        has_memory(&array, 1 << 40);
        let shares = array.share_checksum_memory().await.unwrap();
        let lanes: Vec<_> = shares.keys().cloned().collect();
        assert_eq!(lanes, [("p".to_owned(), 0)]);
        assert_eq!(budget(&array).await, USUAL_BLOCKS, "of a small pool");
    });
}
