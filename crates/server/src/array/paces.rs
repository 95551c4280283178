//! Keeps the values of a pool that change in service: rates, thresholds, cache size.
//!
//! Invariant: they are kept before they count, so a restart changes nothing.

use super::{Array, ArrayError};
use engine::pool::maintenance::Rates;
use engine::pool::maintenance::fullness::Thresholds;
use engine::pool::{Lane, PoolInfo};
use site::{Background, RateLimit};
use std::sync::Arc;
use world_real::RealWorld;

impl Array {
    /// Changes the limits of work in the background.
    ///
    /// # Errors
    /// No such pool, a limit that can't be, or it can't be kept.
    pub async fn change_rates(
        self: &Arc<Self>,
        pool: String,
        change: impl FnOnce(Rates) -> Rates + Send + 'static,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            let rates = change(info.rates);
            array
                .keep_of_pool(&info, |kept| keep_rates(kept, rates))
                .await?;
            let visit = move |_, pool: Lane<RealWorld>| async move {
                let lanes = u64::from(pool.info().lanes);
                pool.set_rates(rates.of_each(lanes));
                Ok(())
            };
            array.with_pool(&pool, visit).await
        })
        .await
    }

    /// Changes from which part of a pool's capacity on people are told.
    ///
    /// # Errors
    /// As for [`Array::change_rates`].
    pub async fn change_thresholds(
        self: &Arc<Self>,
        pool: String,
        change: impl FnOnce(Thresholds) -> Result<Thresholds, ArrayError> + Send + 'static,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            let thresholds = change(info.fullness.thresholds)?;
            let keep = |kept: &mut site::Pool| {
                kept.warn_at = Some(thresholds.warn_percent);
                kept.alarm_at = Some(thresholds.alarm_percent);
            };
            array.keep_of_pool(&info, keep).await?;
            let visit = move |_, pool: Lane<RealWorld>| async move {
                pool.set_thresholds(thresholds);
                Ok(())
            };
            // All lanes have them together.
            array.with_lane(&pool, 0, visit).await
        })
        .await
    }

    /// Changes how much RAM a pool has for reads; 0 is none.
    ///
    /// # Errors
    /// As for [`Array::change_rates`].
    pub async fn change_cache(
        self: &Arc<Self>,
        pool: String,
        capacity_bytes: u64,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            let keep = |kept: &mut site::Pool| kept.cache_bytes = capacity_bytes;
            array.keep_of_pool(&info, keep).await?;
            let visit = move |_, pool: Lane<RealWorld>| async move {
                let lanes = u64::from(pool.info().lanes);
                pool.store().cache.set_capacity(capacity_bytes / lanes);
                Ok(())
            };
            array.with_pool(&pool, visit).await
        })
        .await
    }

    /// Has a pool go by what a site file says of its rates, thresholds and cache.
    ///
    /// # Errors
    /// As for [`Array::change_rates`].
    pub(crate) async fn pace_pool(self: &Arc<Self>, wanted: site::Pool) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            array.check_turn(&wanted.name)?;
            let mut settings = array.settings().as_ref().clone();
            let mut pools = settings.pools.iter_mut();
            let kept = pools.find(|pool| pool.name == wanted.name);
            let kept = kept.ok_or_else(|| ArrayError::no_pool(&wanted.name))?;
            kept.cache_bytes = wanted.cache_bytes;
            (kept.rebuild_rate, kept.scrub_rate) = (wanted.rebuild_rate, wanted.scrub_rate);
            kept.background = wanted.background;
            (kept.warn_at, kept.alarm_at) = (wanted.warn_at, wanted.alarm_at);
            array.keep_settings(settings).await?;
            // One that is not open begins with them.
            if array.is_closed(&wanted.name) {
                return Ok(());
            }
            let name = wanted.name.clone();
            let visit = move |_, pool: Lane<RealWorld>| async move {
                settle(&pool, &wanted);
                Ok(())
            };
            array.with_pool(&name, visit).await
        })
        .await
    }

    /// Keeps something of what the settings say of an open pool.
    async fn keep_of_pool(
        &self,
        info: &PoolInfo,
        change: impl FnOnce(&mut site::Pool),
    ) -> Result<(), ArrayError> {
        self.check_turn(&info.name)?;
        let mut settings = self.settings().as_ref().clone();
        let mut pools = settings.pools.iter_mut();
        let pool = pools.find(|pool| pool.name == info.name);
        change(pool.ok_or_else(|| ArrayError::no_pool(&info.name))?);
        self.keep_settings(settings).await
    }
}

fn keep_rates(kept: &mut site::Pool, rates: Rates) {
    let limit = |limit: Option<u64>| Some(limit.map_or(RateLimit::Unlimited, RateLimit::BytesPerS));
    kept.rebuild_rate = limit(rates.rebuild_bytes_per_s);
    kept.scrub_rate = limit(rates.scrub_bytes_per_s);
    kept.background = match rates.yields {
        true => Background::Yield,
        false => Background::Full,
    };
}

/// What the site says of a pool that may differ from start to start; each lane has its
/// share of it.
pub(crate) fn settle(pool: &Lane<RealWorld>, site: &site::Pool) {
    let lanes = u64::from(pool.info().lanes);
    pool.store().cache.set_capacity(site.cache_bytes / lanes);
    let usual = Rates::default();
    let limit = |limit: Option<RateLimit>, usual: Option<u64>| match limit {
        None => usual,
        Some(RateLimit::Unlimited) => None,
        Some(RateLimit::BytesPerS(bytes_per_s)) => Some(bytes_per_s),
    };
    let rates = Rates {
        rebuild_bytes_per_s: limit(site.rebuild_rate, usual.rebuild_bytes_per_s),
        scrub_bytes_per_s: limit(site.scrub_rate, usual.scrub_bytes_per_s),
        yields: site.background == Background::Yield,
    };
    pool.set_rates(rates.of_each(lanes));
    pool.set_thresholds(thresholds(site));
}

/// One of the two may be named alone: the other gives way then.
fn thresholds(site: &site::Pool) -> Thresholds {
    let usual = Thresholds::default();
    let (warn, alarm) = (usual.warn_percent, usual.alarm_percent);
    Thresholds {
        warn_percent: site
            .warn_at
            .unwrap_or(warn.min(site.alarm_at.unwrap_or(warn))),
        alarm_percent: site
            .alarm_at
            .unwrap_or(alarm.max(site.warn_at.unwrap_or(alarm))),
    }
}
