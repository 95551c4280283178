//! Tests of snapshots by the clock, in virtual time.

use crate::world::{Array, BEGAN, boot, create, media};
use array::control::{Deletion, PlacedVolume};
use std::collections::BTreeSet;
use std::time::Duration;

async fn rest(array: &Array, seconds: u64) {
    array.runtime().sleep(Duration::from_secs(seconds)).await;
}

async fn snapshots(array: &Array) -> Vec<PlacedVolume> {
    array.snapshots(None).await.unwrap()
}

async fn names(array: &Array) -> BTreeSet<String> {
    let all = snapshots(array).await.into_iter();
    all.map(|one| one.info.name).collect()
}

/// When snapshots were taken, in seconds since the first boot.
async fn times(array: &Array) -> Vec<u64> {
    let all = snapshots(array).await.into_iter();
    let mut times: Vec<u64> = all
        .map(|one| one.properties.origin.unwrap().at_unix_s - BEGAN)
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn the_newest_are_kept_and_only_its_own_are_deleted() {
    boot(&media(), 0, async |array| {
        create(&array, "v").await;
        let own = array.take_snapshot("v".to_owned(), "auto1-mine").await;
        let own = own.unwrap().info.name;
        array.add_schedule("v", 60, 2).await.unwrap();
        rest(&array, 1).await;
        assert_eq!(snapshots(&array).await.len(), 2, "the first comes at once");
        rest(&array, 600).await;
        let left = names(&array).await;
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(left.contains(&own));
        let times = times(&array).await;
        assert!(
            (600..=601).contains(&times[2]) && times[2] - times[1] == 60,
            "{times:?}"
        );
        array.remove_schedule("v", 1).await.unwrap();
        // A new one of the same number takes no account of them.
        array.add_schedule("v", 3600, 1).await.unwrap();
        rest(&array, 1).await;
        let now = names(&array).await;
        assert_eq!((now.len(), now.is_superset(&left)), (4, true), "{now:?}");
    });
}

#[test]
fn runs_that_were_missed_are_made_up_for_by_one() {
    let media = media();
    boot(&media, 0, async |array| {
        create(&array, "v").await;
        array.add_schedule("v", 60, 99).await.unwrap();
        rest(&array, 130).await;
        assert_eq!(times(&array).await, [0, 60, 120]);
    });
    boot(&media, 1000, async |array| {
        rest(&array, 5).await;
        assert_eq!(times(&array).await, [0, 60, 120, 1000], "one for all");
        // The next one comes when it would have been anyway.
        rest(&array, 120).await;
        assert_eq!(times(&array).await, [0, 60, 120, 1000, 1020, 1080]);
    });
}

#[test]
fn a_schedule_rests_while_its_volume_is_in_the_trash() {
    boot(&media(), 0, async |array| {
        create(&array, "w").await;
        array.add_schedule("w", 10, 99).await.unwrap();
        rest(&array, 25).await;
        let deleted = array
            .delete_volume("w".to_owned(), Deletion::default())
            .await;
        let stayed = names(&array).await;
        let said: BTreeSet<String> = deleted.unwrap().snapshots.into_iter().collect();
        assert_eq!((said.len(), &said), (3, &stayed));
        rest(&array, 60).await;
        assert_eq!(names(&array).await, stayed);
        array.recover_volume("w".to_owned(), None).await.unwrap();
        rest(&array, 1).await;
        let times = times(&array).await;
        assert_eq!(times.len(), 4, "one for those that were missed: {times:?}");
    });
}

#[test]
fn a_schedule_that_takes_the_place_of_another_in_the_same_second_takes_its_own() {
    boot(&media(), 0, async |array| {
        create(&array, "v").await;
        array.add_schedule("v", 60, 9).await.unwrap();
        rest(&array, 0).await;
        array.runtime().sleep(Duration::from_millis(510)).await;
        array.remove_schedule("v", 1).await.unwrap();
        array.add_schedule("v", 60, 9).await.unwrap();
        array.runtime().sleep(Duration::from_millis(480)).await;
        rest(&array, 1).await;
        let all = names(&array).await;
        assert_eq!(all.len(), 2, "{all:?}");
    });
}
