#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
//! Tests of changes that wait for a pool.

use super::*;
use crate::control::one_thread::tests::in_a_world;
use crate::wake::Wake;
use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{join, join3};

#[test]
fn who_waits_for_a_pool_lets_others_go_on_and_keeps_what_it_found() {
    in_a_world(async |runtime| {
        let turns = Turns::new(Arc::clone(&runtime));
        let (answers, answer) = oneshot::channel();
        let (theirs, waits) = (turns.clone(), Arc::new(Wake::default()));
        let began = Arc::clone(&waits);
        let change = runtime.run(async move {
            let made = theirs.take(async |theirs| {
                theirs.check_name("v").unwrap();
                began.notify();
                let answered = theirs.wait("a", answer).await;
                theirs.check_pool("a").unwrap();
                answered
            });
            made.await
        });
        waits.notified().await;
        assert!(turns.check_pool("a").is_ok(), "who only looks may");
        let before = runtime.now();
        let other = turns.take(async |turns| {
            assert!(turns.check_pool("a").is_err());
            assert!(turns.check_name("v").is_err());
            turns.check_pool("b").and(turns.check_name("w"))
        });
        other.await.unwrap();
        assert!(runtime.now().since(before) >= KEPT, "it kept its turn");
        assert!(turns.others_wait_for("a"));
        answers.send(7).unwrap();
        assert_eq!(change.await, Some(Ok(7)));
        let after = turns.take(async |turns| turns.check_pool("a").and(turns.check_name("v")));
        after.await.unwrap();
    });
}

#[test]
fn of_two_waits_the_last_one_takes_the_turn_back() {
    in_a_world(async |runtime| {
        let turns = Turns::new(Arc::clone(&runtime));
        let change = turns.take(async |turns| {
            let wait = |pool, times: u32| turns.wait(pool, runtime.sleep(KEPT * times));
            join3(wait("a", 5), wait("b", 15), wait("c", 0)).await;
            assert!(turns.own().unwrap().state().place.is_some());
            assert!(turns.all.given().is_empty());
        });
        let meanwhile = async {
            runtime.sleep(KEPT * 10).await;
            turns
                .take(async |turns| assert!(turns.others_wait_for("b")))
                .await;
        };
        join(change, meanwhile).await;
    });
}

#[test]
fn a_change_that_fails_an_assertion_holds_nothing_back() {
    in_a_world(async |runtime| {
        let turns = Turns::new(Arc::clone(&runtime));
        let failing = turns.take(async |turns| {
            turns.wait("a", runtime.sleep(KEPT * 2)).await;
            panic!("a number is wrong");
        });
        let failed = std::panic::AssertUnwindSafe(failing).catch_unwind().await;
        let failed: Result<(), _> = failed;
        assert!(failed.is_err());
        assert!(!turns.others_wait_for("a"));
        turns.take(async |_| {}).await;
    });
}

#[test]
fn who_has_the_turns_of_a_change_that_has_ended_has_none() {
    in_a_world(async |runtime| {
        let turns = Turns::new(runtime);
        let left = turns.take(async |turns| turns).await;
        assert!(left.own().is_none());
        left.check_name("v").unwrap();
        left.wait("a", async {}).await;
    });
}
