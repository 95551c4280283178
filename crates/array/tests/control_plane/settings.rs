//! Settings, and values of a pool that change in service: they are kept before they count.

use crate::record::Record;
use crate::world::{Array, boot_with, media};
use array::control::{ArrayErrorKind, Configuration};
use engine::pool::maintenance::Rates;
use engine::pool::maintenance::fullness::Thresholds;
use site::{RateLimit, Setting};
use std::collections::BTreeMap;
use std::sync::Arc;

const POOL: &str = "p";

async fn change_all(array: &Array) -> Vec<Option<ArrayErrorKind>> {
    let rates = |rates: Rates| Rates {
        scrub_bytes_per_s: Some(1 << 20),
        ..rates
    };
    let thresholds = |_| {
        Ok(Thresholds {
            warn_percent: 50,
            alarm_percent: 60,
        })
    };
    let pool = || POOL.to_owned();
    let changed = [
        array.change_rates(pool(), rates).await,
        array.change_thresholds(pool(), thresholds).await,
        array.change_cache(pool(), 2 << 20).await,
    ];
    changed.map(|one| one.err().map(|error| error.kind)).into()
}

/// Of the pool, as it goes by them.
async fn paces(array: &Array) -> (Option<u64>, u8, u64) {
    let (_, info) = array.pool(POOL).await.unwrap();
    let warn = info.fullness.thresholds.warn_percent;
    (
        info.rates.scrub_bytes_per_s,
        warn,
        info.cache.capacity_bytes,
    )
}

#[test]
fn what_cannot_be_kept_does_not_count() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        let before = (paces(&array).await, array.settings());
        record.takes(0);
        let refused = change_all(&array).await;
        assert_eq!(refused, [Some(ArrayErrorKind::Internal); 3]);
        assert_eq!((paces(&array).await, array.settings()), before);
        record.takes(9);
        assert_eq!(change_all(&array).await, [None; 3]);
        assert_eq!(paces(&array).await, (Some(1 << 20), 50, 2 << 20));
        let kept = record.kept().settings.unwrap();
        let pool = kept.pool(POOL).unwrap();
        assert_eq!(pool.scrub_rate, Some(RateLimit::BytesPerS(1 << 20)));
        assert_eq!((pool.warn_at, pool.alarm_at), (Some(50), Some(60)));
        assert_eq!(pool.cache_bytes, 2 << 20);
    });
}

#[test]
fn a_setting_that_breaks_a_rule_is_refused() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        let edit = |sessions: i64| {
            let keys = BTreeMap::from([("sessions".to_owned(), Some(Setting::from(sessions)))]);
            BTreeMap::from([("limits".to_owned(), keys)])
        };
        let error = array.edit_settings(edit(0)).await.unwrap_err();
        assert_eq!(error.kind, ArrayErrorKind::Invalid);
        assert!(record.kept().settings.is_none(), "nothing is kept");
        array.edit_settings(edit(7)).await.unwrap();
        assert_eq!(array.settings().limits.sessions, 7);
        assert_eq!(record.kept().settings.unwrap().limits.sessions, 7);
    });
}
