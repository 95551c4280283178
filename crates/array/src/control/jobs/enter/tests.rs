//! Jobs on a record that can fail, without an array.

use super::*;
use crate::control::Runtime;
use crate::control::jobs::{Digest, JobStore};
use crate::control::one_thread::tests::in_a_world;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use std::sync::Mutex;

/// A record in memory.
#[derive(Default)]
struct Record {
    kept: Mutex<Vec<Job>>,
    fails: Mutex<bool>,
}

impl JobStore for Record {
    fn keep(&self, jobs: Vec<Job>) -> BoxFuture<'static, Result<(), String>> {
        if *self.fails.lock().unwrap() {
            return ready(Err("it can't be written".to_owned())).boxed();
        }
        *self.kept.lock().unwrap() = jobs;
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
