//! What requests of settings, and of the rates, thresholds and cache of a pool come to.

use super::super::model::Model;
use super::{Change, Request, changed};
use array::pool::Paces;
use engine::pool::maintenance::fullness::Thresholds;
use site::{Background, RateLimit};

/// What a site file says of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::operations) struct Pace {
    pub(in crate::operations) cache_bytes: u64,
    /// Bytes a second; none is as fast as it goes.
    pub(in crate::operations) scrub_bytes_per_s: Option<u64>,
    pub(in crate::operations) rebuild_bytes_per_s: Option<u64>,
    pub(in crate::operations) yields: bool,
    pub(in crate::operations) warn_percent: u8,
}

impl Pace {
    /// As the file has it.
    pub(in crate::operations) fn of_pool(&self, name: &str) -> site::Pool {
        let limit = |limit: Option<u64>| limit.map_or(RateLimit::Unlimited, RateLimit::BytesPerS);
        site::Pool {
            name: name.to_owned(),
            cache_bytes: self.cache_bytes,
            scrub_rate: Some(limit(self.scrub_bytes_per_s)),
            rebuild_rate: Some(limit(self.rebuild_bytes_per_s)),
            background: match self.yields {
                true => Background::Yield,
                false => Background::Full,
            },
            warn_at: Some(self.warn_percent),
            ..site::Pool::usual()
        }
    }
}

impl Request {
    /// As above.
    pub(super) fn change_settings(&self, model: &mut Model) -> Option<Change> {
        Some(match self {
            Request::LimitScrub { pool, bytes_per_s } => with_pool(model, pool, |paces| {
                paces.rates.scrub_bytes_per_s = *bytes_per_s;
            }),
            Request::LimitRebuild {
                pool,
                bytes_per_s,
                yields,
            } => with_pool(model, pool, |paces| {
                paces.rates.rebuild_bytes_per_s = *bytes_per_s;
                paces.rates.yields = *yields;
            }),
            Request::ChangeThresholds {
                pool,
                warn_percent,
                alarm_percent,
            } => match warn_percent <= alarm_percent {
                true => with_pool(model, pool, |paces| {
                    paces.thresholds = Thresholds {
                        warn_percent: *warn_percent,
                        alarm_percent: *alarm_percent,
                    };
                }),
                false => Change::Refused,
            },
            Request::ChangeCache {
                pool,
                capacity_bytes,
            } => with_pool(model, pool, |paces| paces.cache_bytes = *capacity_bytes),
            Request::Pace { pool, pace } => with_pool(model, pool, |paces| {
                *paces = Paces::of(&pace.of_pool(pool));
            }),
            Request::ChangeDiscovery { account } => {
                model.discovery.clone_from(account);
                Change::Done
            }
            Request::LimitSessions { sessions } => limit(&mut model.limits.sessions, *sessions),
            Request::LimitLogins { logins } => limit(&mut model.limits.logins, *logins),
            _ => return None,
        })
    }
}

fn with_pool(model: &mut Model, pool: &str, change: impl FnOnce(&mut Paces)) -> Change {
    changed(model.paces.get_mut(pool).map(change).is_some())
}

fn limit(limit: &mut u16, value: u16) -> Change {
    if value > 0 {
        *limit = value;
    }
    changed(value > 0)
}
