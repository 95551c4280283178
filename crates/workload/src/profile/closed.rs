//! Planned loads as closed networks: the rule that gives a VM of a planned rate its threads.
//!
//! A planned rate says what a server is to do, and not how it asks: its threads wait for their
//! operations, so it does less on slow storage and more on fast storage. The rule:
//!
//! - At [`MEAN_LATENCY_LIMIT`] for each operation, which storage is planned for, the VM does its
//!   planned rate.
//! - Without any latency it does [`HEADROOM`] times that. Published practice plans to 66 % of what
//!   drives can do, so drives have half as much again to give, and only a VM that asks for more
//!   than its plan gets it. Assumed; 1.25 to 3 is plausible. The nearer to 1, the more threads there
//!   are, and the more they are like an open loop.
//!
//! With `λ` transactions a second planned, `k` operations in each, limit `L` and headroom `h`, both
//! say of think time `Z`, work `S` and threads `N`:
//!
//! ```text
//! Z + S = k L / (h - 1)        N = h λ (Z + S), rounded up, and Z + S = N / (h λ) again
//! ```
//!
//! - **Operations of a transaction**: a log's operations are commits, one at the end of each
//!   transaction, so a VM with one has as many as the planned rates say (OLTP: 1200 to 300). Others
//!   have [`OPERATIONS`], as OLTP has. Assumed; 1 to 10 is plausible, and the rates are the same.
//! - **Work**: what keeps [`BUSY_SHARE`] of the VM's processors busy at the planned rate, as published
//!   of the ten-VM mix. Assumed of others; 5 to 60 % is plausible, and only a VM with more than that
//!   waits for its processors.
//!
//! No figure of a site that is predicted is in here.

use super::{MEAN_LATENCY_LIMIT, Pacing, Profile, VmProfile};
use crate::threads::Threads;
use std::time::Duration;

/// What a VM does without any latency, in times of what it is planned for.
const HEADROOM: f64 = 1.5;

/// Operations of a transaction, of a VM without a log.
const OPERATIONS: f64 = 4.0;

/// Share of a VM's processors that its transactions keep busy at the planned rate.
const BUSY_SHARE: f64 = 0.30;

/// `open`, whose VMs have one open loop or two, the second of which is a log, as closed networks.
pub(super) fn closed(name: &str, open: Profile) -> Profile {
    Profile {
        name: name.into(),
        vms: open.vms.into_iter().map(closed_vm).collect(),
        limits: open.limits,
    }
}

fn closed_vm(mut vm: VmProfile) -> VmProfile {
    let rate = |stream: usize| vm.streams.get(stream)?.pacing.per_second();
    let Some(data_per_s) = rate(0) else {
        unreachable!("{}: a planned load has a rate", vm.name)
    };
    let operations = rate(1).map_or(OPERATIONS, |log_per_s| data_per_s / log_per_s);
    let has_log = vm.streams.len() > 1;
    let threads = threads(
        (data_per_s / operations, operations),
        has_log,
        f64::from(vm.compute.vcpus),
    );
    vm.streams[0].set_threads(threads);
    if has_log {
        vm.streams[1].pacing = Pacing::Commits { of: 0 };
    }
    vm.settle();
    vm
}

fn threads((planned_per_s, operations): (f64, f64), has_log: bool, vcpus: f64) -> Threads {
    let all = operations + f64::from(u8::from(has_log));
    let cycle_s = all * MEAN_LATENCY_LIMIT.as_secs_f64() / (HEADROOM - 1.0);
    // Less what comes of rounding.
    let count = (HEADROOM * planned_per_s * cycle_s - 1e-6).ceil();
    let cycle_s = count / (HEADROOM * planned_per_s);
    let work_s = BUSY_SHARE * vcpus / planned_per_s;
    Threads::connected(
        count as usize,
        Duration::from_secs_f64((cycle_s - work_s).max(0.0)),
        Duration::from_secs_f64(work_s),
        operations,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vm_does_its_planned_rate_at_the_limit_and_the_headroom_without_latency() {
        for name in ["hetero10", "ecommerce20"] {
            let open = Profile::named(name).unwrap();
            let closed = Profile::named(&format!("{name}-closed")).unwrap();
            assert_eq!(closed.limits, open.limits);
            for (planned, vm) in open.vms.iter().zip(&closed.vms) {
                assert_eq!((&planned.name, &planned.disks), (&vm.name, &vm.disks));
                let threads = vm.streams[0].threads().unwrap();
                let rate = |latency| {
                    let streams = 0..vm.streams.len();
                    let each = streams.filter_map(|stream| vm.threads_per_s(stream, latency));
                    each.sum::<f64>()
                };
                let ratio = rate(Duration::ZERO) / planned.per_second();
                assert!((ratio - HEADROOM).abs() < 0.001, "{}: {ratio}", vm.name);
                // Threads are whole, so that a VM of two has up to that much more.
                let ratio = rate(MEAN_LATENCY_LIMIT) / planned.per_second();
                assert!((0.999..1.08).contains(&ratio), "{}: {ratio}", vm.name);
                assert!(!threads.think.is_zero(), "{}", vm.name);
            }
        }
    }

    #[test]
    fn a_log_is_written_once_at_the_end_of_a_transaction() {
        let shop = Profile::named("ecommerce20-closed").unwrap();
        let oltp = shop.role("OLTP01").unwrap();
        let threads = oltp.streams[0].threads().unwrap();
        assert_eq!((threads.operations, threads.count), (4.0, 90));
        assert_eq!(oltp.streams[1].pacing, Pacing::Commits { of: 0 });
        assert_eq!(oltp.streams[1].outstanding_max, 90);
        assert_eq!(oltp.outstanding_max(), 90);
        assert_eq!((oltp.commits_of(0), oltp.commits_of(1)), (Some(1), None));
        // Commits of nobody's are refused.
        let mut broken = shop.clone();
        for vm in &mut broken.vms {
            vm.streams.reverse();
        }
        assert!(broken.check().unwrap_err().contains("commits"));
    }
}
