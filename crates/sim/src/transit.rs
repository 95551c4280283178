//! Volumes that a crash left on their way between two pools, settled as the server does.

use base::Prng;
use engine::pool::{OtherPool, Settling, There};
use engine::{Lane, PoolError};
use world_sim::SimWorld;

/// A pool, as the other one of a move.
pub(crate) fn other(pool: &Lane<SimWorld>) -> OtherPool {
    let info = pool.info();
    OtherPool {
        uuid: info.uuid,
        name: info.name,
    }
}

/// Settles what is on its way between these pools, both of them. Copies are gone on with or
/// dropped.
///
/// # Errors
/// What a pool says.
pub(crate) async fn settle(
    world: &SimWorld,
    pools: &[Lane<SimWorld>],
    prng: &mut Prng,
) -> Result<(), PoolError> {
    for (number, pool) in pools.iter().enumerate() {
        let other = &pools[1 - number];
        for (info, _) in pool.transits() {
            // It may have been settled with the other one's.
            let mut now = pool.transits().into_iter();
            let Some((_, transit)) = now.find(|(one, _)| one.uuid == info.uuid) else {
                continue;
            };
            let mut theirs = other.transits().into_iter();
            let there = match theirs.find(|(one, _)| one.uuid == info.uuid) {
                Some((_, transit)) => There::OnItsWay(transit.stage),
                None if other.volume_of(info.uuid).is_some() => There::Settled,
                None => There::Nothing,
            };
            let what = Settling::of(transit.stage, there);
            world.note(|| format!("{} of {}: {what:?}", info.name, pool.name()));
            match what {
                Settling::CallOffDeparture => pool.call_off_departure(info.uuid).await?,
                Settling::EndDeparture => {
                    pool.end_departure(info.uuid).await?;
                    if matches!(there, There::OnItsWay(_)) {
                        other.end_arrival(info.uuid).await?;
                    }
                }
                Settling::EndArrival => pool.end_arrival(info.uuid).await?,
                Settling::Copy if prng.chance(2, 3) => {}
                Settling::CallOffArrival | Settling::Copy => {
                    pool.call_off_arrival(info.uuid).await?;
                }
                Settling::Nothing => {}
            }
        }
    }
    Ok(())
}
