//! Says that the volumes of a pool have more space between them than the pool can hold.
//!
//! That is what thin volumes are for, and it is also a mistake that shows when writes fail.

use site::human;
use std::collections::BTreeMap;

/// Sizes of volumes in bytes, by name.
pub type Sizes<'a> = BTreeMap<&'a str, u64>;

/// Warnings about `pool`, whose volumes were `before` and are `after`. Each volume that has grown
/// and is larger than the pool gets one. So does the volume that brings the sum above what the pool
/// can hold. A pool that was overcommitted before is not told of again.
pub fn warnings(
    (pool, capacity_bytes): (&str, u64),
    before: &Sizes<'_>,
    after: &Sizes<'_>,
) -> Vec<String> {
    let holds = format!("pool {pool} holds {}", human(capacity_bytes));
    let was = |name| before.get(name).copied().unwrap_or(0);
    let kept = after.iter().map(|(name, size)| was(name).min(*size));
    let mut sum_bytes = kept.fold(0, u64::saturating_add);
    let mut warnings = Vec::new();
    for (name, size_bytes) in after {
        let more_bytes = size_bytes.saturating_sub(was(name));
        let is_more =
            sum_bytes <= capacity_bytes && sum_bytes.saturating_add(more_bytes) > capacity_bytes;
        sum_bytes = sum_bytes.saturating_add(more_bytes);
        let what = if more_bytes > 0 && *size_bytes > capacity_bytes {
            format!("{holds}, and volume {name} has {}", human(*size_bytes))
        } else if is_more {
            let all_bytes = after.values().copied().fold(0, u64::saturating_add);
            format!("{holds}, and its volumes have {} in all", human(all_bytes))
        } else {
            continue;
        };
        warnings.push(format!(
            "{what}: writes fail when the pool is full; grow the pool in time"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_told_of_when_its_volumes_come_to_be_too_much() {
        let of = |before: &[(&'static str, u64)], after: &[(&'static str, u64)]| {
            let [before, after] = [before, after].map(|all| all.iter().copied().collect());
            warnings(("p", 10), &before, &after)
        };
        assert_eq!(of(&[], &[("a", 5), ("b", 5)]).len(), 0);
        let sum = of(&[], &[("a", 5), ("b", 5), ("c", 1), ("d", 1)]);
        assert_eq!(sum.len(), 1, "{sum:?}");
        assert!(sum[0].contains("12 B in all"), "{sum:?}");
        assert_eq!(of(&[("a", 9), ("b", 9)], &[("a", 9), ("b", 10)]).len(), 0);
        let huge = of(&[("a", 9), ("b", 9)], &[("a", 9), ("b", 11)]);
        assert_eq!(huge.len(), 1, "{huge:?}");
        assert!(huge[0].contains("volume b has 11 B"), "{huge:?}");
        assert_eq!(of(&[("a", 11)], &[("a", 11)]).len(), 0);
        assert_eq!(of(&[("a", 12)], &[("a", 11)]).len(), 0);
    }
}
