//! Names, attributes and origins of volumes, and the trash: over closings, crashes and checkpoints.

use crate::common::{PAGE, Shelf, content, spec, thin};
use engine::pool::{AttributesChange, Lane, PoolErrorKind};
use engine::{IoErrorKind, Level, PoolSpec};
use world_sim::SimWorld;

fn named(name: &str) -> AttributesChange {
    AttributesChange {
        name: Some(name.to_owned()),
        attributes: Vec::new(),
    }
}

fn tagged(tags: &[(&str, &str)]) -> AttributesChange {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    AttributesChange {
        name: None,
        attributes: tags.iter().map(owned).collect(),
    }
}

fn names(pool: &Lane<SimWorld>) -> Vec<String> {
    pool.volumes().into_iter().map(|info| info.name).collect()
}

#[test]
fn names_attributes_and_origins_survive_crashes_and_checkpoints() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    let uuid = shelf.open(async |pool| {
        pool.clone_volume("v", "v@one", true, 77).await.unwrap();
        pool.clone_volume("v", "copy", false, 78).await.unwrap();
        let change = AttributesChange {
            name: Some("web01".to_owned()),
            ..tagged(&[("vm", "web01"), ("role", "system")])
        };
        pool.change_attributes("v", &change).await.unwrap();
        pool.change_attributes("web01", &tagged(&[("role", "")]))
            .await
            .unwrap();
        assert_eq!(names(&pool), ["copy", "web01", "web01@one"]);
        pool.volume("web01").unwrap().info().uuid
    });
    // Twice: from the journal, and from the checkpoint of the opening before.
    for _ in 0..2 {
        shelf.open(async |pool| {
            assert_eq!(names(&pool), ["copy", "web01", "web01@one"]);
            let volume = pool.volume("web01").unwrap();
            assert_eq!(volume.info().uuid, uuid, "the identity stays");
            let properties = volume.properties();
            let tags: Vec<_> = properties.attributes.into_iter().collect();
            assert_eq!(tags, [("vm".to_owned(), "web01".to_owned())]);
            let origin = pool
                .volume("web01@one")
                .unwrap()
                .properties()
                .origin
                .unwrap();
            assert_eq!((origin.uuid, origin.at_unix_s), (uuid, 77));
            assert_eq!(origin.name, "v", "what it was called then");
            let data = content(pool.world(), 1, 512);
            let snapshot = pool.volume("web01@one").unwrap();
            let refused = snapshot.write(base::VolumeOffset(0), data).await;
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind, IoErrorKind::ReadOnly);
            assert!(refused.context.contains("'web01@one'"), "{refused}");
        });
    }
}

#[test]
fn a_volume_in_the_trash_has_no_name_and_keeps_what_it_has() {
    let shelf = Shelf::with_pool(1, Level::Simple);
    let (uuid, before) = shelf.open(async |pool| {
        let info = pool.volume("v").unwrap().info();
        pool.trash_volume("v", 1234).await.unwrap();
        assert!(pool.volume("v").is_none());
        let again = pool.trash_volume("v", 1).await.unwrap_err();
        assert_eq!(again.kind, PoolErrorKind::NotFound);
        // The name is free.
        pool.create_volume(thin("v", PAGE as u64)).await.unwrap();
        (info.uuid, info)
    });
    shelf.open(async |pool| {
        let trash = pool.trash();
        assert_eq!((trash.len(), &trash[0].0), (1, &before));
        assert_eq!(trash[0].1.trashed_unix_s, Some(1234));
        let taken = pool.recover_trashed(uuid, None).await.unwrap_err();
        assert_eq!(taken.kind, PoolErrorKind::Exists);
        pool.recover_trashed(uuid, Some("old")).await.unwrap();
        assert_eq!(pool.trash(), []);
        let old = pool.volume("old").unwrap();
        let read = old.read(base::VolumeOffset(0), 8 * PAGE).await.unwrap();
        assert!(read.to_vec() == crate::common::bytes(1, 8 * PAGE));
        let none = pool.recover_trashed(uuid, None).await.unwrap_err();
        assert_eq!(none.kind, PoolErrorKind::NotFound, "not in the trash");
        let none = pool.delete_trashed(uuid).await.unwrap_err();
        assert_eq!(none.kind, PoolErrorKind::NotFound, "not in the trash");
        pool.trash_volume("old", 9).await.unwrap();
        pool.delete_trashed(uuid).await.unwrap();
        assert_eq!(pool.trash(), []);
        assert_eq!(pool.info().mapped_bytes, 0, "its pages are free");
    });
}

#[test]
fn a_snapshot_in_the_trash_keeps_no_name_from_others_until_it_comes_back() {
    let shelf = Shelf::with_pool(1, Level::Simple);
    shelf.open(async |pool| {
        pool.create_volume(thin("w", PAGE as u64)).await.unwrap();
        pool.clone_volume("v", "v@s", true, 0).await.unwrap();
        pool.clone_volume("w", "w@s", true, 0).await.unwrap();
        pool.delete_volume("w").await.unwrap();
        let taken = pool.change_attributes("v", &named("w")).await.unwrap_err();
        assert_eq!(taken.kind, PoolErrorKind::Exists, "w@s is another's");
        let uuid = pool.volume("v@s").unwrap().info().uuid;
        pool.trash_volume("v@s", 1).await.unwrap();
        pool.change_attributes("v", &named("w")).await.unwrap();
        assert_eq!(names(&pool), ["w", "w@s"]);
        let taken = pool.recover_trashed(uuid, None).await.unwrap_err();
        assert_eq!(taken.kind, PoolErrorKind::Exists);
        pool.recover_trashed(uuid, Some("w@t")).await.unwrap();
        assert_eq!(names(&pool), ["w", "w@s", "w@t"]);
    });
}

#[test]
fn what_can_not_be_said_is_refused_and_changes_nothing() {
    let shelf = Shelf::with_pool(1, Level::Simple);
    shelf.open(async |pool| {
        pool.create_volume(thin("w", PAGE as u64)).await.unwrap();
        pool.clone_volume("v", "v@s", true, 0).await.unwrap();
        pool.clone_volume("w", "w@s", true, 0).await.unwrap();
        let long = "x".repeat(63);
        let many: Vec<(String, String)> =
            (0..33).map(|n| (format!("k{n}"), "x".to_owned())).collect();
        let too_many = AttributesChange {
            name: None,
            attributes: many,
        };
        let wrong = [
            (named("w"), PoolErrorKind::Exists),
            (named("a@b"), PoolErrorKind::Invalid),
            (named("a b"), PoolErrorKind::Invalid),
            (named(""), PoolErrorKind::Invalid),
            // Its snapshot's name would be too long.
            (named(&long), PoolErrorKind::Invalid),
            (tagged(&[("", "x")]), PoolErrorKind::Invalid),
            (tagged(&[("a b", "x")]), PoolErrorKind::Invalid),
            (tagged(&[(&"k".repeat(24), "x")]), PoolErrorKind::Invalid),
            (tagged(&[("k", &"x".repeat(65))]), PoolErrorKind::Invalid),
            (tagged(&[("k", "a\nb")]), PoolErrorKind::Invalid),
            (too_many, PoolErrorKind::Invalid),
        ];
        for (change, kind) in wrong {
            let refused = pool.change_attributes("v", &change).await.unwrap_err();
            assert_eq!(refused.kind, kind, "{change:?}: {refused}");
        }
        let none = pool
            .change_attributes("no", &named("yes"))
            .await
            .unwrap_err();
        assert_eq!(none.kind, PoolErrorKind::NotFound);
        for name in ["v@", "@s", "v@a@b", "v@a b"] {
            let refused = pool.clone_volume("v", name, true, 0).await;
            let refused = refused.map(drop).unwrap_err();
            assert_eq!(refused.kind, PoolErrorKind::Invalid, "{name}");
        }
        assert_eq!(names(&pool), ["v", "v@s", "w", "w@s"]);
        assert!(pool.volume("v").unwrap().properties().attributes.is_empty());
    });
}

#[test]
fn the_metadata_takes_no_more_words_than_it_has_room_for() {
    let shelf = Shelf::new(1);
    let mut said = 0;
    let spec = PoolSpec {
        volumes_max: 64,
        ..spec("pool", Level::Simple)
    };
    let full = shelf.create(spec, async |pool| {
        for volume in 1..64 {
            let name = format!("v{volume}");
            pool.create_volume(thin(&name, PAGE as u64)).await.unwrap();
            for key in 0..32 {
                let tag = (format!("key-{key}"), "x".repeat(64));
                let change = AttributesChange {
                    name: None,
                    attributes: vec![tag],
                };
                if let Err(error) = pool.change_attributes(&name, &change).await {
                    return Some(error);
                }
                said += 1;
            }
        }
        None
    });
    let full = full.unwrap().expect("a small pool has little room");
    assert_eq!(full.kind, PoolErrorKind::Full, "{full}");
    assert!(said > 10, "{said}");
    shelf.open(async |pool| {
        let volumes = pool.volumes();
        let properties = |name: &str| pool.volume(name).unwrap().properties();
        let tags = volumes
            .iter()
            .map(|info| properties(&info.name).attributes.len());
        assert_eq!(tags.sum::<usize>(), said);
        pool.checkpoint().await.unwrap();
        // Those there are can go.
        pool.change_attributes("v1", &tagged(&[("key-0", "")]))
            .await
            .unwrap();
    });
}

#[test]
fn a_pool_made_for_them_holds_an_origin_for_every_volume() {
    let shelf = Shelf::new(1);
    let made = shelf.create(spec("pool", Level::Simple), async |pool| {
        pool.create_volume(thin("v", PAGE as u64)).await.unwrap();
        for number in 1..8 {
            let name = format!("v@{number}");
            pool.clone_volume("v", &name, true, number).await.unwrap();
        }
        let full = pool.clone_volume("v", "v@8", true, 8).await;
        assert_eq!(full.map(drop).unwrap_err().kind, PoolErrorKind::Full);
    });
    made.unwrap();
}
