//! Scrubs that pools begin by themselves, over a restart.

use crate::world::{Array, boot, create, media};
use array::control::ScrubNote;
use array::records::Store;
use base::{BufPool, VolumeOffset};
use engine::pool::maintenance::Rates;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keeps the newest notes.
#[derive(Default)]
struct KeptNotes(Mutex<Vec<ScrubNote>>);

impl Store<Vec<ScrubNote>> for KeptNotes {
    fn keep(&self, notes: Vec<ScrubNote>) -> BoxFuture<'static, Result<(), String>> {
        *self.0.lock().unwrap() = notes;
        ready(Ok(())).boxed()
    }
}

const WITHIN: Duration = Duration::from_secs(20);
const LATER_S: u64 = 100_000;

/// A pool without data has nothing to scrub.
async fn write(array: &Array, volume: &'static str) {
    let written = array.shards()[0].call(async move |state| {
        let volume = state.pool("p").unwrap().volume(volume).unwrap();
        let data = BufPool::new().copy_of(&[7; 4096]).freeze();
        volume.write(VolumeOffset(0), data).await.unwrap();
    });
    written.await.unwrap();
}

#[test]
fn a_pool_is_scrubbed_by_itself_and_the_date_of_that_outlives_a_restart() {
    let (media, kept) = (media(), Arc::new(KeptNotes::default()));
    boot(&media, 0, async |array| {
        create(&array, "v").await;
        write(&array, "v").await;
        array.keep_scrubs((kept.clone(), Vec::new()));
        let change = |rates: Rates| Rates {
            scrub_within: Some(WITHIN),
            ..rates
        };
        array.change_rates("p".to_owned(), change).await.unwrap();
        array.runtime().sleep(WITHIN + WITHIN / 2).await;
        let (_, info) = array.pool("p").await.unwrap();
        assert!(info.scrubs_ended >= 1, "{info:?}");
        array.runtime().sleep(Duration::from_secs(5)).await;
    });
    let notes = kept.0.lock().unwrap().clone();
    assert_eq!(notes.len(), 1);
    let ended = notes[0].last.unwrap().ended_unix_s;
    boot(&media, LATER_S, async |array| {
        array.keep_scrubs((kept.clone(), notes.clone()));
        array.runtime().sleep(Duration::from_secs(1)).await;
        let (_, info) = array.pool("p").await.unwrap();
        let age = info.last_scrub.unwrap().age.as_secs();
        let now = array.runtime().unix_s();
        assert!(age.abs_diff(now - ended) <= 1, "{age} {now} {ended}");
        assert_eq!(info.scrubs_ended, 0, "since the opening");
    });
}
