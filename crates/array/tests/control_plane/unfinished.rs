//! Changes of several volumes whose record can't be written, and what a start makes of them.

use crate::record::Record;
use crate::world::{Array, boot_with, create, media};
use array::control::{ArrayError, ArrayErrorKind, Basis, Configuration};
use std::sync::Arc;

const GROUP: &str = "g";

async fn create_group(array: &Array) -> Result<(), ArrayError> {
    let members = vec!["a".to_owned(), "b".to_owned()];
    array
        .create_group(GROUP.to_owned(), members)
        .await
        .map(drop)
}

async fn members(array: &Array) -> usize {
    let group = array.consistency_group(GROUP).await;
    group.map_or(0, |group| group.volumes.len())
}

async fn begin(array: &Array) {
    create(array, "a").await;
    create(array, "b").await;
}

#[test]
fn nothing_changes_when_the_note_cannot_be_written() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        begin(&array).await;
        record.takes(0);
        let error = create_group(&array).await.unwrap_err();
        assert_eq!(error.kind, ArrayErrorKind::Internal);
        assert_eq!(members(&array).await, 0);
        record.takes(9);
        create_group(&array).await.unwrap();
        assert_eq!(members(&array).await, 2);
        assert_eq!(record.kept().unfinished, [], "nothing is unfinished");
    });
}

#[test]
fn a_start_takes_back_what_was_not_acknowledged() {
    let (media, record) = (media(), Record::<Configuration>::new());
    boot_with(&media, 0, Arc::clone(&record) as _, async |array| {
        begin(&array).await;
        record.takes(1);
        let error = create_group(&array).await.unwrap_err();
        assert!(error.context.contains("the change is made, but"), "{error}");
        assert_eq!(members(&array).await, 2);
        assert_eq!(record.kept().unfinished.len(), 2);
    });
    record.takes(9);
    boot_with(&media, 100, Arc::clone(&record) as _, async |array| {
        let found = record.kept();
        let settled = array.settle().await.unwrap();
        settled.take_over(found, Basis::Record).await.unwrap();
        assert_eq!(members(&array).await, 0);
        assert_eq!(record.kept().unfinished, [], "once is enough");
    });
}

#[test]
fn nothing_is_acknowledged_over_a_note_that_is_not_true_any_more() {
    let (media, record) = (media(), Record::<Configuration>::new());
    let add_again = async |array: &Array| {
        let there = vec!["a".to_owned()];
        let again = array.change_group(GROUP.to_owned(), there, Vec::new());
        again.await.map(drop)
    };
    boot_with(&media, 0, Arc::clone(&record) as _, async |array| {
        begin(&array).await;
        record.takes(1);
        create_group(&array).await.unwrap_err();
        // It is in the group, but a restart would take that back.
        let error = add_again(&array).await.unwrap_err();
        assert_eq!(error.kind, ArrayErrorKind::Internal);
        record.takes(1);
        add_again(&array).await.unwrap();
    });
    // The array is complete from then on, and keeps that.
    record.takes(1);
    boot_with(&media, 100, Arc::clone(&record) as _, async |array| {
        let found = record.kept();
        let settled = array.settle().await.unwrap();
        settled.take_over(found, Basis::Record).await.unwrap();
        assert_eq!(members(&array).await, 2, "that was acknowledged");
    });
}
