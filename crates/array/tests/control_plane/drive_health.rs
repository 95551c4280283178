//! Drives that are asked for their health, and tell of it.

use crate::world::{Array, boot, media};
use array::control::{HealthReader, PoolEvent};
use array::drive_health::Reading;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A drive that answers so, and where it was asked.
#[derive(Default)]
struct Answers {
    pending: Mutex<Option<u64>>,
    asked: Mutex<Vec<PathBuf>>,
}

impl HealthReader for Answers {
    fn read(&self, path: &Path) -> BoxFuture<'static, Result<Reading, String>> {
        self.asked.lock().unwrap().push(path.to_owned());
        let pending = *self.pending.lock().unwrap();
        let answer = pending.map(|sectors| Reading {
            pending_sectors: Some(sectors),
            ..Reading::default()
        });
        ready(answer.ok_or("it sleeps".to_owned())).boxed()
    }
}

impl Answers {
    fn are(&self, pending: Option<u64>) {
        *self.pending.lock().unwrap() = pending;
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

const HOUR: Duration = Duration::from_secs(3600);

async fn told(array: &Array) -> Vec<(String, String)> {
    let events = array.events().await.unwrap();
    let is_it = |event: &PoolEvent| event.kind.starts_with("drive_warning");
    let of_health = events.into_iter().filter(is_it);
    of_health.map(|event| (event.kind, event.text)).collect()
}

#[test]
fn a_drive_that_warns_is_told_of_once_and_when_that_ends() {
    boot(&media(), 0, async |array| {
        let answers = Arc::new(Answers::default());
        answers.are(Some(0));
        array.record_events(false).await.unwrap();
        array.keep_drive_health(answers.clone());
        array.runtime().sleep(Duration::from_secs(30)).await;
        assert_eq!(*answers.asked.lock().unwrap(), [Path::new("/dev/sdx")]);
        let uuid = array.known_drives()[0].uuid.clone();
        let warnings = || array.health_of(&uuid).unwrap().warnings().count();
        assert_eq!(warnings(), 0);
        assert_eq!(array.health_of("another"), None);

        answers.are(Some(3));
        array.runtime().sleep(HOUR + HOUR / 12).await;
        assert_eq!(warnings(), 1, "it is asked again soon");
        let warned = told(&array).await;
        assert_eq!(warned.len(), 1, "{warned:?}");
        assert_eq!(warned[0].0, "drive_warning");
        assert!(
            warned[0].1.starts_with("drive 'd' warns: 3 sectors"),
            "{warned:?}"
        );

        answers.are(None);
        array.runtime().sleep(4 * HOUR).await;
        assert_eq!((warnings(), told(&array).await.len()), (1, 1));
        let unread = array.health_of(&uuid).unwrap().unread;
        assert_eq!(unread.as_deref(), Some("it sleeps"));

        answers.are(Some(0));
        array.runtime().sleep(4 * HOUR).await;
        let over = told(&array).await;
        assert_eq!((warnings(), over.len()), (0, 2));
        assert_eq!(over[1].0, "drive_warning_over");
        assert!(answers.count() < 16, "{}", answers.count());
    });
}

#[test]
fn a_drive_of_a_closed_pool_is_not_asked() {
    boot(&media(), 0, async |array| {
        let answers = Arc::new(Answers::default());
        array.record_events(false).await.unwrap();
        array.pool_is_closed("p", vec!["its drives are away".to_owned()], None);
        array.keep_drive_health(answers.clone());
        array.runtime().sleep(HOUR).await;
        assert_eq!(answers.count(), 0);
    });
}
