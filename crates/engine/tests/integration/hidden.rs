//! Hidden volumes: over crashes, beside others, and until they are deleted.

use crate::common::{PAGE as PAGE_BYTES, Shelf, content, thick, thin};
use base::VolumeOffset;
use engine::pool::{AttributesChange, PoolErrorKind};
use engine::volume::{CancelToken, VolumeIo};
use engine::{IoErrorKind, Level};

const PAGE: u64 = PAGE_BYTES as u64;

#[test]
fn nobody_is_shown_one_and_a_crash_leaves_it_to_be_deleted() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    let (uuid, before) = shelf.open(async |pool| {
        let before = pool.info();
        let hidden = pool.create_hidden("held", 1000 * PAGE).await.unwrap();
        let source = pool.volume("v").unwrap();
        let data = content(pool.world(), 1, PAGE as usize);
        source.write(VolumeOffset(0), data).await.unwrap();
        let ends = (VolumeOffset(0), VolumeOffset(3 * PAGE));
        hidden
            .copy_from(&source, ends, PAGE, |_| true)
            .await
            .unwrap();
        assert!(pool.volume("held").is_none());
        let names: Vec<_> = pool.volumes().into_iter().map(|info| info.name).collect();
        assert!(!names.contains(&"held".to_owned()), "{names:?}");
        let said = pool.volumes_with_properties().into_iter();
        assert!(said.clone().all(|(info, _)| info.name != "held"));
        assert_eq!(pool.info().provisioned_bytes, before.provisioned_bytes);
        // Its name is free for others, and it is none of theirs.
        pool.create_volume(thin("held", PAGE)).await.unwrap();
        pool.delete_volume("held").await.unwrap();
        (hidden.info().uuid, before)
    });
    for _ in 0..2 {
        shelf.open(async |pool| {
            let left = pool.hidden();
            assert_eq!((left.len(), left[0].uuid), (1, uuid));
            assert!(pool.volume("held").is_none());
            let data = content(pool.world(), 1, PAGE as usize);
            let kept = pool.volume_of(uuid).unwrap();
            let kept = kept.read(VolumeOffset(3 * PAGE), PAGE as usize).await;
            assert_eq!(kept.unwrap().to_vec(), data.bytes().unwrap());
        });
    }
    shelf.open(async |pool| {
        let shown = pool.volume("v").unwrap().info().uuid;
        let refused = pool.delete_hidden(shown).await.unwrap_err();
        assert_eq!(refused.kind, PoolErrorKind::NotFound);
        pool.delete_hidden(uuid).await.unwrap();
        assert!(pool.hidden().is_empty());
        assert_eq!(pool.volumes().len() as u64, 1);
        assert_eq!(pool.info().provisioned_bytes, before.provisioned_bytes);
    });
}

#[test]
fn nobody_hides_a_volume_by_a_tag() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    shelf.open(async |pool| {
        let change = AttributesChange {
            name: None,
            attributes: vec![("/hidden".to_owned(), "1".to_owned())],
        };
        let refused = pool.change_attributes("v", &change).await.unwrap_err();
        assert_eq!(refused.kind, PoolErrorKind::Invalid);
        assert!(pool.volume("v").is_some());
    });
}

#[test]
fn a_copy_by_identity_tells_how_far_it_is_and_ends_when_it_is_told_to() {
    let shelf = Shelf::with_pool(2, Level::Raid10 { copies: 2 });
    shelf.open(async |pool| {
        let to = pool.create_volume(thick("to", 4 * PAGE)).await.unwrap();
        let from = pool.volume("v").unwrap();
        let data = content(pool.world(), 2, 2 * PAGE as usize);
        from.write(VolumeOffset(0), data).await.unwrap();
        let (uuid, ends) = (from.info().uuid, (VolumeOffset(0), VolumeOffset(0)));
        let cancel = CancelToken::default();
        let copied = to.copy_beside(uuid, ends, 2 * PAGE, cancel.clone()).await;
        assert_eq!(copied.unwrap(), Some(2 * PAGE));
        assert_eq!(cancel.done(), 2 * PAGE);
        let outside = to.copy_beside(uuid, ends, 5 * PAGE, cancel.clone()).await;
        assert_eq!(outside.unwrap_err().kind, IoErrorKind::OutOfRange);
        let nobody = to.copy_beside(base::Uuid::from_u128(7), ends, PAGE, cancel.clone());
        assert_eq!(nobody.await.unwrap(), None);
        cancel.stop();
        assert!(!cancel.reach(0));
    });
}
