//! Commands keep to the limits of their volume.

use crate::bench::{Bench, VOLUME_BLOCKS, ten, thin, unit, with_bench};
use engine::World;
use engine::qos::{Account, HOLD_MAX, Limits, Rate};
use futures_util::future::{join, join_all};
use scsi::offload::CancelToken;
use scsi::{Nexus, Response};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const READ: u8 = 0x28;
const WRITE: u8 = 0x2a;
const TASK_SET_FULL: u8 = 0x28;
const TASK_ABORTED: u8 = 0x40;

fn iops(per_s: u64) -> Limits {
    Limits {
        ios: Some(Rate::even(per_s)),
        ..Limits::default()
    }
}

/// The unit gets an account with these limits, and an initiator.
async fn limited(bench: &Bench, limits: Limits) -> (Arc<Account>, Rc<Nexus<world_sim::SimWorld>>) {
    let nexus = bench.settled().await;
    let account = Arc::new(Account::default());
    account.set(limits, bench.world.now());
    bench
        .target
        .unit(0)
        .unwrap()
        .set_account(Arc::clone(&account));
    (account, nexus)
}

/// Runs a command of so many blocks, as a session does.
async fn run(
    bench: &Bench,
    nexus: &Nexus<world_sim::SimWorld>,
    (code, blocks): (u8, u16),
    cancel: &CancelToken,
) -> Response {
    let data = match code {
        WRITE => bench.data(&vec![7; usize::from(blocks) * 512]),
        _ => bench.data(&[]),
    };
    let mut cdb = [0; 16];
    cdb[..10].copy_from_slice(&ten(code, 0, blocks));
    let lun = scsi::lun::encode(0);
    let cancel = cancel.clone();
    nexus
        .execute_making_room(lun, cdb.into(), data, cancel)
        .await
}

/// Reads at once; when each ended, in seconds since the first began, in the order of their issue.
async fn reads(bench: &Bench, nexus: &Nexus<world_sim::SimWorld>, count: usize) -> Vec<f64> {
    let began = bench.world.now();
    let read = async || {
        let token = CancelToken::default();
        let response = run(bench, nexus, (READ, 8), &token).await;
        assert_eq!(response.status, 0);
        bench.world.now().since(began).as_secs_f64()
    };
    join_all((0..count).map(|_| read())).await
}

/// Whether `found` is `wanted`, but for the time of a read and the slack.
fn is_near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 0.02
}

#[test]
fn commands_go_in_their_order_at_even_distances() {
    with_bench(async |bench| {
        let (account, nexus) = limited(&bench, iops(10)).await;
        let ended = reads(&bench, &nexus, 20).await;
        for (index, at) in ended.iter().enumerate() {
            assert!(is_near(*at, index as f64 / 10.0), "{index}: {ended:?}");
        }
        let counts = account.counts();
        assert_eq!((counts.waiting, counts.held, counts.refused), (0, 19, 0));
        // 0.1 to 1.9 s, one after the other.
        let mean = counts.held_time.as_secs_f64() / 19.0;
        assert!(is_near(mean, 1.0), "{mean}");
    });
}

#[test]
fn long_commands_count_by_their_bytes() {
    with_bench(async |bench| {
        let bytes = Limits {
            bytes: Some(Rate::even(64 << 10)),
            ..Limits::default()
        };
        let in_units = Limits {
            io_bytes: Some(4096),
            ..iops(16)
        };
        let (account, nexus) = limited(&bench, bytes).await;
        for limits in [bytes, in_units] {
            account.set(limits, bench.world.now());
            let token = CancelToken::default();
            let began = bench.world.now();
            for _ in 0..3 {
                // 32 KiB: half a second, or eight I/Os.
                let response = run(&bench, &nexus, (WRITE, 64), &token).await;
                assert_eq!(response.status, 0);
            }
            let took = bench.world.now().since(began).as_secs_f64();
            assert!(is_near(took, 1.0), "{limits}: {took}");
        }
    });
}

#[test]
fn commands_that_look_whether_a_path_is_alive_never_wait() {
    with_bench(async |bench| {
        let (_, nexus) = limited(&bench, iops(1)).await;
        let began = bench.world.now();
        let other = async {
            let token = CancelToken::default();
            for code in [0x00, 0x12, 0x25, 0x35] {
                run(&bench, &nexus, (code, 0), &token).await;
            }
            bench.world.now().since(began)
        };
        let (_, took) = join(reads(&bench, &nexus, 3), other).await;
        assert!(took < Duration::from_millis(100), "{took:?}");
    });
}

#[test]
fn another_limit_counts_at_once_also_for_what_waits() {
    with_bench(async |bench| {
        let (account, nexus) = limited(&bench, iops(4)).await;
        let change = async {
            bench.world.sleep(Duration::from_millis(600)).await;
            account.set(iops(10), bench.world.now());
            bench.world.sleep(Duration::from_millis(300)).await;
            account.set(Limits::default(), bench.world.now());
            assert!(account.asks(), "some wait, and go first");
        };
        let (ended, ()) = join(reads(&bench, &nexus, 12), change).await;
        // Every 0.25 s; from 0.6 s on every 0.1 s; at 0.9 s all.
        let wanted = [0.0, 0.25, 0.5, 0.6, 0.7, 0.8];
        for (at, wanted) in ended.iter().zip(wanted) {
            assert!(is_near(*at, wanted), "{ended:?}");
        }
        assert!(ended[6..].iter().all(|at| is_near(*at, 0.9)), "{ended:?}");
        assert!(!account.asks());
    });
}

#[test]
fn nobody_waits_longer_than_the_bound() {
    with_bench(async |bench| {
        let (account, nexus) = limited(&bench, iops(1)).await;
        let statuses = RefCell::new(Vec::new());
        let read = async || {
            let token = CancelToken::default();
            let response = run(&bench, &nexus, (READ, 8), &token).await;
            statuses.borrow_mut().push(response.status);
        };
        let began = bench.world.now();
        join_all((0..20).map(|_| read())).await;
        let went = statuses
            .borrow()
            .iter()
            .filter(|status| **status == 0)
            .count();
        assert_eq!(went, 5, "one at once, four within 4 s");
        let refused = statuses
            .take()
            .into_iter()
            .filter(|status| *status == TASK_SET_FULL);
        assert_eq!(refused.count(), 15);
        assert_eq!(account.counts().refused, 15);
        let took = bench.world.now().since(began);
        assert!(took <= HOLD_MAX + Duration::from_millis(100), "{took:?}");
    });
}

#[test]
fn a_command_that_nobody_waits_for_leaves_and_takes_nothing() {
    with_bench(async |bench| {
        let (account, nexus) = limited(&bench, iops(2)).await;
        let tokens: Vec<CancelToken> = (0..6).map(|_| CancelToken::default()).collect();
        let began = bench.world.now();
        let write = async |token| {
            let response = run(&bench, &nexus, (WRITE, 8), token).await;
            (response.status, bench.world.now().since(began))
        };
        // The first goes at once, the others would at 0.5 to 2.5 s.
        let writes = join_all(tokens.iter().map(write));
        let late = async {
            bench.world.sleep(Duration::from_millis(100)).await;
            let stop = async {
                bench.world.sleep(Duration::from_millis(100)).await;
                tokens.iter().for_each(CancelToken::stop);
            };
            join(reads(&bench, &nexus, 2), stop).await.0
        };
        let (ended, late) = join(writes, late).await;
        assert_eq!(ended[0].0, 0);
        for (status, at) in &ended[1..] {
            assert_eq!(*status, TASK_ABORTED);
            assert!(is_near(at.as_secs_f64(), 0.2), "{ended:?}");
        }
        // The next turns, at 0.5 and 1 s.
        assert!(is_near(late[0], 0.4) && is_near(late[1], 0.9), "{late:?}");
        assert_eq!((account.counts().waiting, account.counts().held), (0, 2));
    });
}

#[test]
fn what_would_wait_too_long_by_a_lower_limit_is_refused() {
    with_bench(async |bench| {
        let (account, nexus) = limited(&bench, iops(10)).await;
        let began = bench.world.now();
        let read = async || {
            let response = run(&bench, &nexus, (READ, 8), &CancelToken::default()).await;
            (
                response.status,
                bench.world.now().since(began).as_secs_f64(),
            )
        };
        let lower = async {
            bench.world.sleep(Duration::from_millis(50)).await;
            account.set(iops(1), bench.world.now());
        };
        let (ended, ()) = join(join_all((0..20).map(|_| read())), lower).await;
        // At 0, 0.05, 1.05, 2.05, 3.05 and 4.05 s.
        for (index, (status, at)) in ended.iter().enumerate() {
            let wanted = match index {
                0 => (0, 0.0),
                1..=5 => (0, 0.05 + (index - 1) as f64),
                _ => (TASK_SET_FULL, 0.05),
            };
            assert_eq!(*status, wanted.0, "{index}: {ended:?}");
            assert!(is_near(*at, wanted.1), "{index}: {ended:?}");
        }
    });
}

#[test]
fn a_command_that_waited_goes_to_no_other_volume_at_its_lun() {
    with_bench(async |bench| {
        let (_, nexus) = limited(&bench, iops(4)).await;
        let write = async || {
            let response = run(&bench, &nexus, (WRITE, 8), &CancelToken::default()).await;
            response.status
        };
        let swap = async {
            bench.world.sleep(Duration::from_millis(50)).await;
            bench.target.unmap(0).unwrap().settled().await;
            let spec = thin("w", u64::from(VOLUME_BLOCKS) * 512);
            let other = bench.pool.create_volume(spec).await.unwrap();
            assert!(bench.target.map(0, unit(other)));
        };
        let (statuses, ()) = join(join_all((0..8).map(|_| write())), swap).await;
        assert_eq!(statuses[0], 0);
        assert!(
            statuses[1..].iter().all(|status| *status == 2),
            "{statuses:?}"
        );
        let other = bench.pool.volume("w").unwrap().info();
        assert_eq!(other.mapped_bytes, 0, "nothing was written there");
    });
}
