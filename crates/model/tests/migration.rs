//! Live migration against closed forms and published figures.

use model::link::{Ethernet, Link};
use model::migration::{
    Activity, MEMORY_GB, Method, Migrated, Outcome, Path, Spread, Vm, WritableSet, migrate,
};
use std::time::Duration;

fn near(is: f64, should: f64, share: f64) {
    assert!((is / should - 1.0).abs() <= share, "{is} is not {should}");
}

fn gigabit(links: usize) -> Path {
    Path {
        links,
        link: Link::ethernet(1_000_000_000, Ethernet::STANDARD),
        free_cores: 8.0,
        at_once: 2,
    }
}

fn payload() -> f64 {
    gigabit(1).link.payload_bytes_per_second()
}

fn one(method: &Method, path: &Path, vm: Vm) -> Migrated {
    let mut outcome = migrate(method, path, &[vm]);
    outcome.migrations.remove(0)
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

const BUILD_AND_TEAR_DOWN: f64 = 3.0;

#[test]
fn an_idle_machine_is_copied_once() {
    let moved = one(&Method::HYPER_V_TCP, &gigabit(1), Vm::idle(8 * MEMORY_GB));
    let copy = 8.0 * 1_073_741_824.0 / payload();
    near(
        seconds(moved.duration()),
        BUILD_AND_TEAR_DOWN + 0.06 + copy,
        1e-6,
    );
    near(seconds(moved.blackout()), 0.06, 1e-6);
    assert_eq!(
        moved.rounds.len(),
        2,
        "one that copies and an empty last one"
    );
}

#[test]
fn what_was_never_touched_is_not_sent() {
    let part = Vm {
        untouched_bytes: 6 * MEMORY_GB,
        ..Vm::idle(8 * MEMORY_GB)
    };
    let moved = one(&Method::HYPER_V_TCP, &gigabit(1), part);
    near(moved.memory_bytes(), 2.0 * 1_073_741_824.0, 1e-6);
}

#[test]
fn rounds_shrink_by_the_ratio_of_dirtying_to_copying() {
    // A cache so large that hardly a page is written twice: a geometric series.
    let vm = Vm {
        activity: Activity::io(1 << 50, 5_000.0, 8192),
        ..Vm::idle(8 * MEMORY_GB)
    };
    let moved = one(&Method::VSPHERE_5, &gigabit(1), vm);
    let ratio = 5_000.0 * 8192.0 / payload();
    for pair in moved.rounds.windows(2) {
        near(pair[1].memory_bytes / pair[0].memory_bytes, ratio, 1e-3);
    }
    let last = moved.rounds.last().map_or(0.0, |round| round.memory_bytes);
    assert!(last <= payload() * 0.5, "what is left fits the goal");
    near(seconds(moved.blackout()), 0.06 + last / payload(), 1e-6);
    assert_eq!(moved.speed, 1.0);
}

#[test]
fn pages_written_twice_are_dirty_once() {
    let set = WritableSet {
        bytes: 1_000_000,
        written_bytes_per_second: 1e6,
    };
    let activity = Activity {
        hot: set,
        ..Activity::IDLE
    };
    let dirty = |secs| activity.dirty_bytes(Duration::from_secs(secs), 1.0);
    near(dirty(1), 1e6 * (1.0 - (-1.0f64).exp()), 1e-9);
    near(dirty(100), 1e6, 1e-9);
    near(
        activity.dirty_bytes(Duration::from_secs(2), 0.5),
        dirty(1),
        1e-9,
    );
}

#[test]
fn hyper_v_stops_a_hot_machine_after_ten_rounds() {
    let hot = Vm {
        activity: Activity {
            hot: WritableSet {
                bytes: MEMORY_GB,
                written_bytes_per_second: 1e9,
            },
            ..Activity::IDLE
        },
        ..Vm::idle(8 * MEMORY_GB)
    };
    let moved = one(&Method::HYPER_V_TCP, &gigabit(1), hot.clone());
    assert_eq!(moved.rounds.len(), 11, "ten and the one that is dark");
    // The hot set is dirty again by the end of every round: it goes in the dark.
    near(
        seconds(moved.blackout()),
        0.06 + MEMORY_GB as f64 / payload(),
        0.01,
    );
    // vSphere slows the same machine down, and the blackout stays at its goal.
    let slowed = one(&Method::VSPHERE_5, &gigabit(1), hot);
    assert!(slowed.speed < 0.2, "{}", slowed.speed);
    assert!(seconds(slowed.blackout()) <= 0.56);
}

#[test]
fn a_migration_under_hyper_v_tcp_never_fills_more_than_one_link() {
    for links in 1..=4 {
        let outcome = migrate(
            &Method::HYPER_V_TCP,
            &gigabit(links),
            &[Vm::idle(8 * MEMORY_GB)],
        );
        let most = |i: &model::migration::Interval| i.links.iter().sum::<f64>();
        assert!(outcome.intervals.iter().all(|i| most(i) <= 1.0 + 1e-9));
    }
    let four = one(&Method::VSPHERE_5, &gigabit(4), Vm::idle(8 * MEMORY_GB));
    let one_link = one(&Method::VSPHERE_5, &gigabit(1), Vm::idle(8 * MEMORY_GB));
    let copied = |moved: &Migrated| seconds(moved.stopped) - 1.5;
    near(copied(&one_link) / copied(&four), 4.0, 1e-6);
}

#[test]
fn no_more_move_at_once_than_are_let() {
    let vms: Vec<Vm> = (0..7).map(|_| Vm::idle(4 * MEMORY_GB)).collect();
    for at_once in 1..=8 {
        let path = Path {
            at_once,
            ..gigabit(1)
        };
        let outcome = migrate(&Method::HYPER_V_TCP, &path, &vms);
        for instant in &outcome.intervals {
            let under_way =
                |moved: &&Migrated| moved.begun <= instant.from && instant.from < moved.ended;
            let under_way = outcome.migrations.iter().filter(under_way).count();
            assert!((1..=at_once).contains(&under_way), "{under_way}");
        }
        let begun: Vec<Duration> = outcome.migrations.iter().map(|m| m.begun).collect();
        assert!(begun.is_sorted(), "in the order of the queue");
    }
}

/// Everything that a run must keep, whatever the method and the machines.
fn keeps_its_invariants(outcome: &Outcome, path: &Path, vms: &[Vm]) {
    let mut end = Duration::ZERO;
    for interval in &outcome.intervals {
        assert_eq!(interval.from, end, "without gaps");
        end = interval.to;
        assert!(interval.links.iter().all(|&link| link <= 1.0 + 1e-9));
        assert!(interval.source_cores <= path.free_cores + 1e-9);
        assert!(interval.destination_cores <= path.free_cores + 1e-9);
    }
    assert_eq!(end, outcome.duration());
    let wire: f64 = outcome
        .migrations
        .iter()
        .flat_map(|m| &m.rounds)
        .map(|r| r.wire_bytes)
        .sum();
    let on_links = outcome.mean_links_used() * seconds(outcome.duration()) * outcome.link_payload;
    near(wire, on_links, 1e-6);
    for (moved, vm) in outcome.migrations.iter().zip(vms) {
        let order = [moved.begun, moved.stopped, moved.resumed, moved.ended];
        assert!(order.is_sorted(), "{order:?}");
        near(moved.rounds[0].memory_bytes, vm.memory_bytes as f64, 1e-6);
    }
}

#[test]
fn every_method_keeps_the_invariants_with_unlike_machines() {
    let busy = [4u64, 48, 8, 16, 24].map(|gb| Vm {
        activity: Activity::io(gb * MEMORY_GB, 300.0 * gb as f64, 8192),
        ..Vm::idle(gb * MEMORY_GB)
    });
    let idle = [8, 32, 4].map(|gb| Vm::idle(gb * MEMORY_GB));
    let vms: Vec<Vm> = idle.into_iter().chain(busy).collect();
    for method in [
        Method::HYPER_V_TCP,
        Method::HYPER_V_COMPRESSED,
        Method::HYPER_V_SMB,
        Method::HYPER_V_SMB_DIRECT,
        Method::VSPHERE_5,
    ] {
        for (links, free_cores, at_once) in [(1, 0.4, 1), (2, 2.0, 3), (4, 16.0, 10)] {
            let path = Path {
                links,
                free_cores,
                at_once,
                ..gigabit(1)
            };
            let outcome = migrate(&method, &path, &vms);
            keeps_its_invariants(&outcome, &path, &vms);
            assert_eq!(outcome, migrate(&method, &path, &vms), "the same twice");
        }
    }
}

#[test]
fn more_cores_compress_more_until_the_link_is_full_of_it() {
    let took = |free_cores: f64| {
        let path = Path {
            free_cores,
            ..gigabit(1)
        };
        seconds(one(&Method::HYPER_V_COMPRESSED, &path, Vm::idle(8 * MEMORY_GB)).duration())
    };
    let tcp = seconds(one(&Method::HYPER_V_TCP, &gigabit(1), Vm::idle(8 * MEMORY_GB)).duration());
    // The cores that TCP itself takes, and none beside.
    near(took(payload() * 2e-9), tcp, 1e-6);
    assert!(took(0.5) < tcp && took(0.7) < took(0.5));
    near(took(4.0), took(8.0), 1e-9);
}

#[test]
fn a_hash_may_put_all_on_one_link() {
    let vms = |links: [usize; 3]| {
        links.map(|link| Vm {
            link: Some(link),
            ..Vm::idle(8 * MEMORY_GB)
        })
    };
    let path = Path {
        at_once: 3,
        ..gigabit(2)
    };
    let used = |links| migrate(&Method::HYPER_V_TCP, &path, &vms(links)).mean_links_used();
    assert!(used([0, 0, 0]) < 1.0);
    assert!(used([0, 1, 0]) > 1.4 && used([0, 1, 0]) < 1.5);
    assert_eq!(Method::HYPER_V_TCP.spread, Spread::OneLink);
}

#[test]
fn published_durations_are_as_near_as_the_document_says() {
    let took =
        |method, path, gb| seconds(migrate(&method, &path, &[Vm::idle(gb * MEMORY_GB)]).duration());
    near(took(Method::HYPER_V_TCP, gigabit(1), 8), 78.0, 0.03);
    near(took(Method::VSPHERE_5, gigabit(1), 61), 579.0, 0.04);
    let share = Path {
        link: Link::ethernet(6_000_000_000, Ethernet::STANDARD),
        ..gigabit(1)
    };
    near(took(Method::HYPER_V_TCP, share, 35), 68.0, 0.16);
}

#[test]
#[should_panic(expected = "no core or link")]
fn without_a_core_tcp_moves_nothing() {
    let path = Path {
        free_cores: 0.0,
        ..gigabit(1)
    };
    migrate(&Method::HYPER_V_TCP, &path, &[Vm::idle(MEMORY_GB)]);
}
