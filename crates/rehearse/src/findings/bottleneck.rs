//! The bottleneck of a site, the next bottleneck after it, and the headroom.

use crate::parts::disk::Stage;
use crate::run::Outcome;
use crate::run::share::{Part, Share};

/// Above this, whatever is behind a part waits most of its time there: in an M/M/1 queue
/// three times the service.
const BUSY: f64 = 0.75;

/// From here on a job waits in an M/M/1 queue as long as it is worked on. Where jobs wait so long at
/// parts that are less busy, they came in bursts, and the part is no bottleneck.
const WAITING: f64 = 0.5;

/// What a run says of its site.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The part that is busiest.
    pub first: Option<Share>,
    /// The busiest of another kind.
    pub next: Option<Share>,
    /// Most of the time of an operation goes by here.
    pub slowest: Stage,
    /// Its share of that time, from 0 to 1.
    pub slowest_share: f64,
    /// By how much the load could grow until the first is busy all of the time; none when
    /// nothing is busy, a write log is full, or the run has not settled.
    pub headroom: Option<f64>,
    /// The bottleneck in one sentence, for reports.
    pub sentence: String,
    /// And the next one.
    pub next_sentence: String,
}

/// Reads the bottleneck from an outcome.
pub fn finding(outcome: &Outcome) -> Finding {
    let mut ranked: Vec<&Share> = outcome
        .shares
        .iter()
        .filter(|share| share.part != Part::Drive && share.utilisation > 0.0)
        .collect();
    // Stable: of equal ones the first in the order of an I/O.
    ranked.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    let first = ranked.first().copied();
    let next = first.and_then(|first| {
        let other = |share: &&&Share| share.part != first.part;
        ranked.iter().find(other).copied()
    });
    let (slowest, slowest_share) = slowest(outcome);
    let held_back = held_back(outcome);
    let headroom = first.map(|first| 1.0 / first.utilisation);
    Finding {
        sentence: held_back
            .clone()
            .unwrap_or_else(|| sentence(first, slowest, slowest_share)),
        next_sentence: next_sentence(first, next),
        first: first.cloned(),
        next: next.cloned(),
        slowest,
        slowest_share,
        headroom: headroom.filter(|_| held_back.is_none() && outcome.settling.is_settled),
    }
}

/// Where a full write log holds writes back, the sentence of that.
fn held_back(outcome: &Outcome) -> Option<String> {
    let mut pools = outcome.settling.pools.iter();
    let pool = pools.find(|pool| pool.is_held_back())?;
    let of_pool = |share: &&Share| share.part == Part::Drives && share.name == pool.pool;
    let drives = outcome.shares.iter().find(of_pool);
    let busy = drives.map_or(String::new(), |drives| {
        format!(", busy {} of the time,", percent(drives.utilisation))
    });
    Some(format!(
        "The bottleneck is the way from the write log of pool {} to its drives: the log is full, and a write waits until \
         the drives{busy} have taken others.",
        pool.pool
    ))
}

fn slowest(outcome: &Outcome) -> (Stage, f64) {
    let all: u128 = outcome.stages.ns.iter().sum();
    let mut slowest = Stage::Array;
    for stage in Stage::ALL {
        if outcome.stages.ns[stage as usize] > outcome.stages.ns[slowest as usize] {
            slowest = stage;
        }
    }
    let share = match all {
        0 => 0.0,
        all => outcome.stages.ns[slowest as usize] as f64 / all as f64,
    };
    (slowest, share)
}

fn named(share: &Share) -> String {
    format!("the {} {}", share.part.as_str(), share.name)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn sentence(first: Option<&Share>, slowest: Stage, slowest_share: f64) -> String {
    let Some(first) = first else {
        return "Nothing is busy: the VMs ask for nothing.".to_owned();
    };
    let (who, busy) = (named(first), percent(first.utilisation));
    let waits = first.utilisation >= WAITING && first.waiting_ms > first.service_ms;
    if first.utilisation >= BUSY || waits {
        let waits = match first.waiting_ms > 0.0 {
            true => format!(
                ", and a command waits {:.2} ms there for {:.2} ms of work",
                first.waiting_ms, first.service_ms
            ),
            false => String::new(),
        };
        return format!("The bottleneck is {who}: busy {busy} of the time{waits}.");
    }
    let share = percent(slowest_share);
    match slowest {
        Stage::Queue => format!(
            "The bottleneck is the depth of the queues of adapters and LUNs, where {share} of an \
             operation's time goes by; the busiest part is {who}, at {busy}."
        ),
        _ => format!(
            "Nothing is at its limit: the VMs ask for no more. The busiest part is {who}, at \
             {busy}; {share} of an operation's time goes by in the {}.",
            slowest.as_str()
        ),
    }
}

fn next_sentence(first: Option<&Share>, next: Option<&Share>) -> String {
    let (Some(first), Some(next)) = (first, next) else {
        return String::new();
    };
    // At the load at which the first is at its limit.
    let then = next.utilisation / first.utilisation;
    format!(
        "After it comes {}, at {} now and {} when the first is at its limit.",
        named(next),
        percent(next.utilisation),
        percent(then)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(part: Part, name: &str, utilisation: f64) -> Share {
        Share {
            part,
            name: name.into(),
            utilisation,
            per_s: 100.0,
            service_ms: 2.0,
            waiting_ms: 6.0,
            stroke: None,
        }
    }

    #[test]
    fn a_busy_part_is_named_with_its_wait_and_a_shallow_queue_as_such() {
        let drives = share(Part::Drives, "data", 0.9);
        let said = sentence(Some(&drives), Stage::Array, 0.8);
        assert_eq!(
            said,
            "The bottleneck is the drives of pool data: busy 90 % of the time, and a command \
             waits 6.00 ms there for 2.00 ms of work."
        );
        let idle = share(Part::Drives, "data", 0.3);
        let said = sentence(Some(&idle), Stage::Queue, 0.6);
        assert!(
            said.contains("of the queues") && said.contains("60 %"),
            "{said}"
        );
        assert!(sentence(Some(&idle), Stage::Array, 0.6).starts_with("Nothing is at its limit"));
        let host = share(Part::Host, "esx1", 0.45);
        let said = next_sentence(Some(&drives), Some(&host));
        assert_eq!(
            said,
            "After it comes the host processor esx1, at 45 % now and 50 % when the first is at \
             its limit."
        );
    }
}
