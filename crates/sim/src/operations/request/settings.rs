//! What requests of settings, and of the rates, thresholds and cache of a pool come to.

use super::super::model::Model;
use super::{Change, Request, changed};
use array::pool::Paces;
use engine::pool::maintenance::fullness::Thresholds;

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
