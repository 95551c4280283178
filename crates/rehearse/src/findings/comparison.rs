//! A comparison of the rule of thumb with the rehearsal: where they differ for a pool, and why.
//!
//! The rule multiplies planned operations by the level's penalty and divides by what a drive
//! does one at a time. The rehearsal has caches, logs that gather writes, queues that drives
//! reorder, and places that are near to each other. Each of the two factors between them is
//! named with its size.

use crate::plan::thumb::PoolThumb;
use crate::run::Outcome;
use crate::run::share::{Part, Share};

/// A factor from here on is worth a word.
const WORTH: f64 = 1.15;

/// One sentence for each pool that the rule can be applied to.
pub fn comparison(pools: &[PoolThumb], outcome: &Outcome) -> Vec<String> {
    let of_pool = |thumb: &PoolThumb| {
        let prefix = format!("{}, ", thumb.pool);
        let mut shares = outcome.shares.iter();
        let share = shares.find(|s| s.part == Part::Drives && s.name.starts_with(&prefix))?;
        sentence(thumb, share)
    };
    pools.iter().filter_map(of_pool).collect()
}

fn sentence(thumb: &PoolThumb, share: &Share) -> Option<String> {
    let drives_per_s = thumb.drives_per_s?;
    if share.per_s <= 0.0 {
        return None;
    }
    let busy = share.utilisation * 100.0;
    // What the drives would do if they were busy all of the time as they were then.
    let able_per_s = share.per_s / share.utilisation.max(0.001);
    let by_drives = able_per_s / drives_per_s;
    let mut text = match (thumb.closed, thumb.utilisation) {
        (false, Some(utilisation)) => format!(
            "Pool {}: the rule of thumb has {:.0} drive I/Os a second and {:.0} % of what the \
             drives do; rehearsed were {:.0} and {busy:.0} %.",
            thumb.pool,
            thumb.back_end_per_s,
            utilisation * 100.0,
            share.per_s
        ),
        _ => format!(
            "Pool {}: by the rule of thumb its drives do {drives_per_s:.0} I/Os a second; \
             rehearsed were {:.0} at {busy:.0} %.",
            thumb.pool, share.per_s
        ),
    };
    if !thumb.closed && thumb.back_end_per_s > 0.0 {
        let fewer = thumb.back_end_per_s / share.per_s;
        if fewer > WORTH {
            text += &format!(
                " Caches, sequential runs and writes that are gathered save {:.0} % of the \
                 I/Os.",
                (1.0 - 1.0 / fewer) * 100.0
            );
        } else if fewer < 1.0 / WORTH {
            text += &format!(
                " The engine's own work (sums, logs, parts of stripes) adds {:.0} %.",
                (1.0 / fewer - 1.0) * 100.0
            );
        }
    }
    if by_drives > WORTH {
        text += &format!(
            " With the queues that it had a drive does {by_drives:.1} times the rule's: it takes \
             what is nearest first."
        );
    } else if by_drives < 1.0 / WORTH {
        text += &format!(
            " A drive does {:.0} % of the rule's: its I/Os are longer than the rule's small ones.",
            by_drives * 100.0
        );
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thumb(back_end_per_s: f64, closed: bool) -> PoolThumb {
        PoolThumb {
            pool: "data".into(),
            line: 1,
            reads_per_s: back_end_per_s,
            writes_per_s: 0.0,
            back_end_per_s,
            large_bytes_per_s: 0.0,
            drives_per_s: Some(1800.0),
            drives_bytes_per_s: 1e9,
            utilisation: Some(back_end_per_s / 1800.0),
            closed,
            sentence: String::new(),
        }
    }

    fn share(per_s: f64, utilisation: f64) -> Share {
        Share {
            part: Part::Drives,
            name: "data, SAS 15k".into(),
            utilisation,
            per_s,
            service_ms: 2.0,
            waiting_ms: 0.0,
            stroke: None,
        }
    }

    #[test]
    fn each_difference_is_named_with_its_size() {
        let said = sentence(&thumb(1200.0, false), &share(600.0, 0.25)).unwrap_or_default();
        assert!(
            said.contains("1200 drive I/Os") && said.contains("67 %"),
            "{said}"
        );
        assert!(
            said.contains("save 50 %") && said.contains("1.3 times"),
            "{said}"
        );
        let said = sentence(&thumb(600.0, false), &share(900.0, 0.5)).unwrap_or_default();
        assert!(
            said.contains("adds 50 %") && !said.contains("times the rule"),
            "{said}"
        );
        let said = sentence(&thumb(600.0, true), &share(900.0, 0.9)).unwrap_or_default();
        assert!(
            said.contains("do 1800 I/Os") && said.contains("A drive does 56 %"),
            "{said}"
        );
        assert_eq!(sentence(&thumb(600.0, false), &share(0.0, 0.0)), None);
    }
}
