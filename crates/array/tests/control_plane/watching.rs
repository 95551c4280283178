//! Tests of captures in virtual time: one at a time, that ends by itself.

use crate::world::{Array, boot, create, media};
use array::control::{ArrayErrorKind, KEPT, WATCH_MAX};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

async fn refused(array: &Array, duration: Duration) -> ArrayErrorKind {
    match array.watch(duration).await {
        Ok(_) => panic!("it has begun"),
        Err(error) => error.kind,
    }
}

#[test]
fn one_capture_at_a_time_ends_by_itself() {
    boot(&media(), 0, async |array| {
        create(&array, "a").await;
        create(&array, "b").await;
        assert!(array.watching().is_none());
        let first = array.watch(MINUTE).await.unwrap();
        assert_eq!(first.watches.len(), 2);
        assert_eq!(array.left_of(&first), Some(MINUTE));
        assert_eq!(refused(&array, MINUTE).await, ArrayErrorKind::Busy);

        array.runtime().sleep(MINUTE).await;
        // It is over, and can still be read.
        let over = array.watching().unwrap();
        assert_eq!((array.left_of(&over), over.watches.len()), (None, 2));
        // Nobody has read it: it is kept for a while.
        assert_eq!(refused(&array, MINUTE).await, ArrayErrorKind::Busy);
        array.runtime().sleep(KEPT).await;
        let second = array.watch(MINUTE).await.unwrap();
        assert!(!array.stop_watching(&first.id).await.unwrap());
        assert!(array.stop_watching(&second.id).await.unwrap());
        assert!(!array.stop_watching(&second.id).await.unwrap());
        assert!(array.watching().is_none());
        array.watch(MINUTE).await.unwrap();
    });
}

#[test]
fn a_capture_that_was_read_makes_room_at_once() {
    boot(&media(), 0, async |array| {
        let first = array.watch(MINUTE).await.unwrap();
        array.runtime().sleep(MINUTE).await;
        first.mark_read();
        let second = array.watch(MINUTE).await.unwrap();
        assert_ne!(first.id, second.id);
    });
}

#[test]
fn a_capture_has_a_longest_and_a_shortest_time() {
    boot(&media(), 0, async |array| {
        for wrong in [Duration::ZERO, WATCH_MAX + Duration::from_secs(1)] {
            assert_eq!(refused(&array, wrong).await, ArrayErrorKind::Invalid);
        }
        array.watch(WATCH_MAX).await.unwrap();
    });
}
