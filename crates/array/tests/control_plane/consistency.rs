//! Tests of snapshots of consistency groups by the clock, in virtual time.

use crate::world::{Array, BEGAN, boot, create, media};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

async fn rest(array: &Array, seconds: u64) {
    array.runtime().sleep(Duration::from_secs(seconds)).await;
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The volumes that were taken at each time, in seconds since the first boot, and how often.
async fn runs(array: &Array) -> BTreeMap<u64, Vec<String>> {
    let mut runs: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for one in array.snapshots(None).await.unwrap() {
        let at = one.properties.origin.unwrap().at_unix_s - BEGAN;
        let (volume, _) = one.info.name.split_once('@').unwrap();
        runs.entry(at).or_default().push(volume.to_owned());
    }
    runs.values_mut().for_each(|run| run.sort());
    runs
}

#[test]
fn a_group_schedule_takes_all_at_one_instant_and_keeps_so_many_of_each() {
    let media = media();
    boot(&media, 0, async |array| {
        for name in ["a", "b", "c"] {
            create(&array, name).await;
        }
        let db = || "db".to_owned();
        array.create_group(db(), texts(&["a", "c"])).await.unwrap();
        // Of the same number, and not touched.
        array.add_schedule("a", 3600, 1).await.unwrap();
        rest(&array, 2).await;
        let made = array.add_group_schedule(db(), 10, 2).await.unwrap();
        assert_eq!(made.number, 1);
        rest(&array, 25).await;
        let both = texts(&["a", "c"]);
        let expected = [(0, texts(&["a"])), (12, both.clone()), (22, both)];
        assert_eq!(runs(&array).await, BTreeMap::from(expected));

        // A volume that joins is in the next run, and one that leaves is not.
        let (add, remove) = (texts(&["b"]), texts(&["a"]));
        array.change_group(db(), add, remove).await.unwrap();
        let web = array.create_group("web".to_owned(), texts(&["a"])).await;
        assert!(web.unwrap().schedules.is_empty(), "it has left them behind");
        rest(&array, 10).await;
        let expected = [
            (0, texts(&["a"])),
            (12, texts(&["a"])),
            (22, texts(&["a", "c"])),
            (32, texts(&["b", "c"])),
        ];
        assert_eq!(runs(&array).await, BTreeMap::from(expected));
        let of_volume = array.schedules("b").await.unwrap();
        assert!(of_volume.is_empty(), "the group's are the group's");
    });
    // It continues after a power cut, with what is kept of before.
    boot(&media, 100, async |array| {
        rest(&array, 15).await;
        let runs = runs(&array).await;
        let newest: Vec<_> = runs.into_iter().filter(|(at, _)| *at >= 32).collect();
        let both = texts(&["b", "c"]);
        assert_eq!(newest, [(102, both.clone()), (112, both)]);
        let group = array.consistency_group("db").await.unwrap();
        assert_eq!(group.schedules[0].number, 1);
        let new = array.add_group_schedule("db".to_owned(), 3600, 3).await;
        array
            .remove_group_schedule("db".to_owned(), 1)
            .await
            .unwrap();
        let left = array.consistency_group("db").await.unwrap().schedules;
        assert_eq!((left.len(), left[0].number), (1, new.unwrap().number));
    });
}

#[test]
fn a_volume_keeps_what_the_schedule_of_its_old_group_took() {
    boot(&media(), 0, async |array| {
        for name in ["a", "b"] {
            create(&array, name).await;
        }
        let (old, new) = ("old".to_owned(), "new".to_owned());
        array
            .create_group(old.clone(), texts(&["a"]))
            .await
            .unwrap();
        array
            .create_group(new.clone(), texts(&["b"]))
            .await
            .unwrap();
        // Both have the number 1, and come in one second.
        array
            .add_group_schedule(old.clone(), 3600, 1)
            .await
            .unwrap();
        array.add_group_schedule(new.clone(), 10, 1).await.unwrap();
        rest(&array, 1).await;
        let names = async || -> BTreeSet<String> {
            let all = array.snapshots(None).await.unwrap().into_iter();
            let names = all.map(|one| one.info.name);
            names.filter(|name| name.starts_with("a@")).collect()
        };
        let first = names().await;
        assert_eq!(first.len(), 1);
        array
            .change_group(old, Vec::new(), texts(&["a"]))
            .await
            .unwrap();
        array
            .change_group(new, texts(&["a"]), Vec::new())
            .await
            .unwrap();
        rest(&array, 10).await;
        let second = names().await;
        assert_eq!((second.len(), second.is_superset(&first)), (2, true));
        // One of the new group goes for another.
        rest(&array, 10).await;
        let third = names().await;
        assert_eq!((third.len(), third.is_superset(&first)), (2, true));
        assert_ne!(second, third);
    });
}
