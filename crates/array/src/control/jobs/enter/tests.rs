//! Jobs on a record that can fail, without an array.

use super::*;
use crate::control::Runtime;
use crate::control::jobs::{Digest, JobRecord};
use crate::control::one_thread::tests::in_a_world;
use crate::records::Store;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, join, ready, select};
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

/// A record in memory.
#[derive(Default)]
struct Record {
    kept: Mutex<JobRecord>,
    fails: Mutex<bool>,
}

impl Store<JobRecord> for Record {
    fn keep(&self, record: JobRecord) -> BoxFuture<'static, Result<(), String>> {
        if *self.fails.lock().unwrap() {
            return ready(Err("it can't be written".to_owned())).boxed();
        }
        *self.kept.lock().unwrap() = record;
        ready(Ok(())).boxed()
    }
}

fn start(runtime: &Arc<dyn Runtime>, record: &Arc<Record>) -> Jobs {
    let kept = record.kept.lock().unwrap().clone();
    Jobs::new(Arc::clone(runtime), Arc::clone(record) as Arc<_>, kept)
}

fn order(volume: &str) -> Order {
    Order::new(JobKind::Import, "p0".to_owned(), volume.to_owned())
}

#[test]
fn only_jobs_of_before_are_left_to_be_gone_on_with() {
    in_a_world(async |runtime| {
        let record = Arc::<Record>::default();
        let jobs = start(&runtime, &record);
        let ended = jobs.enter(order("a"), 1, None, Vec::new()).await.unwrap();
        jobs.change(ended, |job| job.state = JobState::Failed);
        let before = jobs.enter(order("b"), 1, None, Vec::new()).await.unwrap();
        assert!(jobs.left().is_empty(), "they belong to who entered them");
        let jobs = start(&runtime, &record);
        // Its volume is being made, and it has no task yet.
        jobs.enter(order("c"), 1, None, Vec::new()).await.unwrap();
        let left: Vec<u64> = jobs.left().iter().map(|job| job.id).collect();
        assert_eq!(left, [before]);
        let at_work = jobs.goes_on(before);
        assert!(at_work.is_some());
        assert!(jobs.left().is_empty());
    });
}

#[test]
fn what_is_kept_is_told_once_it_is_on_record() {
    in_a_world(async |runtime| {
        let record = Arc::<Record>::default();
        let jobs = start(&runtime, &record);
        let id = jobs.enter(order("a"), 9, None, Vec::new()).await.unwrap();
        let kept = || jobs.job(id).unwrap().kept_bytes;
        let mut digest = Digest::empty();
        digest.add(&[1; 4096]);
        *record.fails.lock().unwrap() = true;
        let keep = || jobs.keep(id, digest.clone());
        assert!(keep().await.is_err());
        assert_eq!(kept(), 0);
        *record.fails.lock().unwrap() = false;
        keep().await.unwrap();
        assert_eq!(kept(), 4096);
        let jobs = start(&runtime, &record);
        assert_eq!(jobs.job(id).unwrap().kept_bytes, 4096);
    });
}

#[test]
fn a_job_that_is_not_on_record_is_none() {
    in_a_world(async |runtime| {
        let record = Arc::<Record>::default();
        let jobs = start(&runtime, &record);
        *record.fails.lock().unwrap() = true;
        let refused = jobs.enter(order("a"), 1, None, Vec::new()).await;
        assert_eq!(refused.unwrap_err().kind, ArrayErrorKind::Internal);
        assert!(jobs.list().is_empty());
    });
}

#[test]
fn of_those_that_have_ended_a_hundred_are_kept() {
    in_a_world(async |runtime| {
        let record = Arc::<Record>::default();
        let jobs = start(&runtime, &record);
        for _ in 0..102 {
            let id = jobs.enter(order("a"), 1, None, Vec::new()).await.unwrap();
            jobs.change(id, |job| job.state = JobState::Done);
        }
        jobs.save().await.unwrap();
        let ids: Vec<u64> = jobs.list().iter().map(|job| job.id).collect();
        assert_eq!(ids, (3..=102).collect::<Vec<u64>>());
    });
}

#[test]
fn the_number_of_a_job_that_is_forgotten_does_not_come_again() {
    in_a_world(async |runtime| {
        let record = Arc::<Record>::default();
        let jobs = start(&runtime, &record);
        let mut ids = Vec::new();
        for volume in ["a", "b"] {
            let id = jobs.enter(order(volume), 1, None, Vec::new()).await;
            let id = id.unwrap();
            jobs.change(id, |job| job.state = JobState::Done);
            jobs.cancel(id).await.unwrap();
            ids.push(id);
        }
        assert!(jobs.list().is_empty());
        let jobs = start(&runtime, &record);
        let id = jobs.enter(order("c"), 1, None, Vec::new()).await.unwrap();
        assert!(!ids.contains(&id), "{id}");
        // A record of before says only which jobs there are.
        record.kept.lock().unwrap().next = 0;
        let jobs = start(&runtime, &record);
        let next = jobs.enter(order("d"), 1, None, Vec::new()).await.unwrap();
        assert_eq!(next, id + 1);
    });
}

#[test]
fn whoever_cancels_a_job_hears_that_its_end_is_not_on_record() {
    in_a_world(async |runtime| {
        let record = Arc::<Record>::default();
        let jobs = start(&runtime, &record);
        let id = jobs.enter(order("a"), 1, None, Vec::new()).await.unwrap();
        let at_work = jobs.goes_on(id);
        let fails = |fails| *record.fails.lock().unwrap() = fails;
        fails(true);
        let ends = async {
            jobs.cancelled(id).unwrap().wait().await;
            jobs.end(id, JobState::Cancelled, None).await;
            drop(at_work);
        };
        let (cancelled, ()) = join(jobs.cancel(id), ends).await;
        let error = cancelled.unwrap_err();
        assert_eq!(error.kind, ArrayErrorKind::Internal);
        let said = ["job 1 has ended", "it can't be written"];
        assert!(
            said.iter().all(|part| error.context.contains(part)),
            "{error}"
        );
        // Again: it is to be forgotten, and stays as long as that can't be kept.
        assert!(jobs.cancel(id).await.is_err());
        assert_eq!(jobs.list().len(), 1);
        fails(false);
        jobs.cancel(id).await.unwrap();
        assert!(jobs.list().is_empty());
        assert!(record.kept.lock().unwrap().jobs.is_empty());
    });
}

/// What comes of `work`, which is dropped when `end` comes before.
async fn unless<T>(end: BoxFuture<'static, ()>, work: impl Future<Output = T>) -> Option<T> {
    match select(pin!(work), end).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

/// A record whose writes end when the test says so.
#[derive(Default)]
struct SlowRecord {
    kept: Mutex<JobRecord>,
    under_way: Mutex<Vec<oneshot::Sender<()>>>,
}

/// For one that is shared with its writes.
struct Slow(Arc<SlowRecord>);

impl Store<JobRecord> for Slow {
    fn keep(&self, record: JobRecord) -> BoxFuture<'static, Result<(), String>> {
        let (end, ends) = oneshot::channel();
        self.0.under_way.lock().unwrap().push(end);
        let slow = Arc::clone(&self.0);
        let write = async move {
            ends.await.unwrap();
            *slow.kept.lock().unwrap() = record;
            Ok(())
        };
        write.boxed()
    }
}

#[test]
fn a_write_that_nobody_waits_for_any_more_is_not_overtaken() {
    in_a_world(async |runtime| {
        let record = Arc::<SlowRecord>::default();
        let store = Arc::new(Slow(Arc::clone(&record)));
        let jobs = Jobs::new(Arc::clone(&runtime), store, JobRecord::default());
        let under_way = || record.under_way.lock().unwrap().len();
        let first = jobs.enter(order("a"), 1, None, Vec::new());
        let rest = || runtime.sleep(Duration::from_millis(1));
        // It is dropped while it is written, as a checkpoint of a job that is cancelled.
        let first = unless(rest(), first).await;
        assert!(first.is_none(), "nothing was written yet");
        assert_eq!(under_way(), 1);
        let second = pin!(jobs.enter(order("b"), 1, None, Vec::new()));
        let Either::Right((_, second)) = select(second, rest()).await else {
            panic!("nothing was written yet");
        };
        assert_eq!(under_way(), 1, "it waits for the one before");
        let end = |at: usize| record.under_way.lock().unwrap().remove(at).send(());
        end(0).unwrap();
        let Either::Right((_, second)) = select(second, rest()).await else {
            panic!("nothing was written yet");
        };
        end(0).unwrap();
        second.await.unwrap();
        assert_eq!(record.kept.lock().unwrap().jobs.len(), 2);
    });
}
