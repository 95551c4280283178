//! The records of the configuration, of jobs, of drives and of events, which survive power cuts: the
//! old one or the new one, and nothing between.

use array::control::{EventRecord, PoolEvent, Runtime};
use array::records::Store;
use base::Prng;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that writing takes, nanoseconds.
const SLOW_NS_MAX: u64 = 3_000_000;

/// A write is polled so often at the most: the power goes between two polls, in writes, too.
const PARTS_MAX: u64 = 100;

/// What a write says that fails.
pub(crate) const UNWRITTEN: &str = "the record can't be written";

/// What is on media. It outlives boots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record<T>(Arc<Mutex<Media<T>>>);

#[derive(Debug, Default)]
struct Media<T> {
    kept: Option<T>,
    /// Being written: a power cut leaves this, or what is kept.
    coming: Option<T>,
    /// Writes that failed since somebody asked.
    failures: u64,
    /// When the last one failed, in seconds since 1970.
    failed_unix_s: u64,
}

impl<T: Clone + Default> Record<T> {
    fn media(&self) -> MutexGuard<'_, Media<T>> {
        // Whole after each step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a start finds.
    pub(crate) fn read(&self, prng: &mut Prng) -> T {
        let mut media = self.media();
        let coming = media.coming.take().filter(|_| prng.chance(1, 2));
        media.failures = 0;
        if coming.is_some() {
            media.kept = coming;
        }
        media.kept.clone().unwrap_or_default()
    }

    /// Something else is on media from now on: not in a boot.
    pub(crate) fn put(&self, content: T) {
        self.media().kept = Some(content);
    }

    /// What is on media now.
    pub(crate) fn kept(&self) -> T {
        self.media().kept.clone().unwrap_or_default()
    }

    /// When a write failed last, in seconds since 1970; 0 for never.
    pub(crate) fn failed_unix_s(&self) -> u64 {
        self.media().failed_unix_s
    }

    /// How many writes have failed since this was asked last.
    pub(crate) fn take_failures(&self) -> u64 {
        std::mem::take(&mut self.media().failures)
    }
}

/// Writes the record, in one boot. Now and then it fails.
pub(crate) struct Writer<T> {
    record: Record<T>,
    runtime: Arc<dyn Runtime>,
    prng: Mutex<Prng>,
    /// One write in so many fails; none for 0.
    fails_one_of: u64,
}

impl<T: Clone + Default + Send + 'static> Store<T> for Writer<T> {
    fn keep(&self, record: T) -> BoxFuture<'static, Result<(), String>> {
        self.write(record)
    }
}

/// Events that a record keeps: the newest.
const EVENTS_KEPT: usize = 200;

/// Adds to the record of events, in one boot.
pub(crate) struct EventWriter {
    record: Writer<Vec<PoolEvent>>,
    all: Mutex<Vec<PoolEvent>>,
}

impl EventWriter {
    /// Adds to the events that the record has.
    pub(crate) fn new(record: Writer<Vec<PoolEvent>>, kept: Vec<PoolEvent>) -> Self {
        let all = Mutex::new(kept);
        EventWriter { record, all }
    }
}

impl EventRecord for EventWriter {
    fn add(&self, events: Vec<PoolEvent>) -> BoxFuture<'static, Result<(), String>> {
        let all = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(events);
            let old = all.len().saturating_sub(EVENTS_KEPT);
            all.drain(..old);
            all.clone()
        };
        self.record.write(all)
    }
}

impl<T: Clone + Default + Send + 'static> Writer<T> {
    /// Writes `record`; one write in `fails_one_of` fails, and none for 0.
    pub(crate) fn new(
        record: &Record<T>,
        runtime: &Arc<dyn Runtime>,
        prng: Prng,
        fails_one_of: u64,
    ) -> Self {
        Writer {
            record: record.clone(),
            runtime: Arc::clone(runtime),
            prng: Mutex::new(prng),
            fails_one_of,
        }
    }

    fn write(&self, content: T) -> BoxFuture<'static, Result<(), String>> {
        let (parts, takes, fails, is_written) = {
            let mut prng = self.prng.lock().unwrap_or_else(PoisonError::into_inner);
            let parts = prng.between(1, PARTS_MAX);
            let takes = Duration::from_nanos(prng.below(SLOW_NS_MAX) / parts);
            let fails = self.fails_one_of > 0 && prng.chance(1, self.fails_one_of);
            // The last sync alone may have failed.
            (parts, takes, fails, !fails || prng.chance(1, 3))
        };
        let record = self.record.clone();
        let clock = Arc::clone(&self.runtime);
        record.media().coming = Some(content.clone());
        let written = async move {
            for _ in 0..parts {
                clock.sleep(takes).await;
            }
            let mut media = record.media();
            media.coming = None;
            if is_written {
                media.kept = Some(content);
            }
            match fails {
                true => {
                    media.failures += 1;
                    media.failed_unix_s = clock.unix_s();
                    Err(UNWRITTEN.to_owned())
                }
                false => Ok(()),
            }
        };
        // It is written to its end, whoever waits.
        let (answer, answered) = futures_channel::oneshot::channel();
        self.runtime.spawn(
            async move {
                let _ = answer.send(written.await);
            }
            .boxed(),
        );
        answered
            .map(|ended| ended.unwrap_or_else(|_| Err("the power is gone".to_owned())))
            .boxed()
    }
}
