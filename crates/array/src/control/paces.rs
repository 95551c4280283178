//! Keeps the values of a pool that change in service: rates, thresholds, cache size.
//!
//! Invariant: they are kept before they count, so a restart changes nothing.

use super::{ArrayError, ControlPlane};
use crate::pool::paces::{DAY, HOUR, Paces, time_limit};
use engine::World;
use engine::pool::maintenance::Rates;
use engine::pool::maintenance::fullness::Thresholds;
use site::{Background, RateLimit};
use std::sync::Arc;

impl<W: World> ControlPlane<W> {
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
            if array.runtime.planted("rates count before they are kept") {
                array.pool_of(&pool)?.set_rates(rates).await?;
            }
            array
                .keep_of_pool(&info.name, |kept| keep_rates(kept, rates))
                .await?;
            array.pool_of(&pool)?.set_rates(rates).await
        })
        .await
    }

    /// Changes from which part of a pool's capacity on people are told.
    ///
    /// # Errors
    /// As for [`ControlPlane::change_rates`].
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
            array.keep_of_pool(&info.name, keep).await?;
            array.pool_of(&pool)?.set_thresholds(thresholds).await
        })
        .await
    }

    /// Changes how much RAM a pool has for reads; 0 is none.
    ///
    /// # Errors
    /// As for [`ControlPlane::change_rates`].
    pub async fn change_cache(
        self: &Arc<Self>,
        pool: String,
        capacity_bytes: u64,
    ) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let (_, info) = array.pool(&pool).await?;
            let keep = |kept: &mut site::Pool| kept.cache_bytes = capacity_bytes;
            array.keep_of_pool(&info.name, keep).await?;
            array.pool_of(&pool)?.set_cache(capacity_bytes).await
        })
        .await
    }

    /// Has a pool go by what a site file says of its rates, thresholds and cache.
    ///
    /// # Errors
    /// As for [`ControlPlane::change_rates`].
    pub async fn pace_pool(self: &Arc<Self>, wanted: site::Pool) -> Result<(), ArrayError> {
        self.change(move |array| async move {
            let keep = |kept: &mut site::Pool| {
                kept.cache_bytes = wanted.cache_bytes;
                (kept.rebuild_rate, kept.scrub_rate) = (wanted.rebuild_rate, wanted.scrub_rate);
                (kept.rebuild_hours, kept.scrub_days) = (wanted.rebuild_hours, wanted.scrub_days);
                kept.background = wanted.background;
                (kept.warn_at, kept.alarm_at) = (wanted.warn_at, wanted.alarm_at);
            };
            array.keep_of_pool(&wanted.name, keep).await?;
            // One that is not open begins with them.
            if array.is_closed(&wanted.name) {
                return Ok(());
            }
            let pool = array.pool_of(&wanted.name)?;
            pool.set_paces(Paces::of(&wanted)).await
        })
        .await
    }

    /// Has an open pool go by what the settings say of it now.
    ///
    /// # Errors
    /// A shard has stopped.
    pub(super) async fn follow_settings(self: &Arc<Self>, pool: &str) -> Result<(), ArrayError> {
        let name = pool.to_owned();
        self.change(move |array| async move {
            match array.settings().pool(&name).map(Paces::of) {
                Some(paces) => array.pool_of(&name)?.set_paces(paces).await,
                None => Ok(()),
            }
        })
        .await
    }

    /// Keeps something of what the settings say of a pool.
    async fn keep_of_pool(
        &self,
        name: &str,
        change: impl FnOnce(&mut site::Pool),
    ) -> Result<(), ArrayError> {
        self.check_turn(name)?;
        let mut settings = self.settings().as_ref().clone();
        let mut pools = settings.pools.iter_mut();
        let pool = pools.find(|pool| pool.name == name);
        change(pool.ok_or_else(|| ArrayError::no_pool(name))?);
        self.keep_settings(settings).await
    }
}

fn keep_rates(kept: &mut site::Pool, rates: Rates) {
    let limit = |limit: Option<u64>| Some(limit.map_or(RateLimit::Unlimited, RateLimit::BytesPerS));
    kept.rebuild_rate = limit(rates.rebuild_bytes_per_s);
    kept.scrub_rate = limit(rates.scrub_bytes_per_s);
    kept.rebuild_hours = Some(time_limit(rates.rebuild_within, HOUR));
    kept.scrub_days = Some(time_limit(rates.scrub_within, DAY));
    kept.background = match rates.yields {
        true => Background::Yield,
        false => Background::Full,
    };
}
