//! What administrators ask for: pools that come and go, and volumes in them.

use super::checks::filling;
use super::oracle::Oracle;
use super::shelf::{Bay, Shelf};
use array::control::{ArrayError, ArrayErrorKind, ControlPlane, Deletion};
use array::openings::{NewPool, Openings};
use base::{Prng, VolumeOffset};
use engine::{Lane, Level, Provisioning, VolumeSpec, World};
use site::{Group, Pool};
use std::rc::Rc;
use std::sync::Arc;
use world_sim::SimWorld;

/// Names that pools have.
pub(super) const NAMES: [&str; 3] = ["p", "q", "r"];

/// Of a volume: that much is written.
pub(super) const VOLUME_BYTES: u64 = 64 << 10;

/// Most volumes of a pool.
const VOLUMES_MAX: usize = 6;

/// A pool that is to be made, of these drives.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) pool: Pool,
    pub(super) drives: Vec<site::Drive>,
    /// One of the drives is another's: it has to be refused.
    pub(super) is_barred: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Request {
    Create(Wanted),
    /// Deletes its volumes, then it.
    Destroy {
        pool: String,
    },
    /// Makes a volume and writes it.
    Fill {
        pool: String,
        volume: String,
    },
}

impl Request {
    /// The pool that it is about.
    pub(super) fn pool(&self) -> &str {
        match self {
            Request::Create(wanted) => &wanted.pool.name,
            Request::Destroy { pool } | Request::Fill { pool, .. } => pool,
        }
    }

    /// In a few words.
    pub(super) fn brief(&self) -> String {
        match self {
            Request::Create(Wanted {
                pool, is_barred, ..
            }) => {
                let (name, lanes, drives) = (&pool.name, pool.lanes, self.drives());
                let level = pool.groups[0].level;
                let barred = if *is_barred { ", one of others" } else { "" };
                format!("create {name}: {level}, lanes {lanes}, {drives:?}{barred}")
            }
            other => format!("{other:?}"),
        }
    }

    /// The drives that it is to take.
    pub(super) fn drives(&self) -> Vec<&str> {
        match self {
            Request::Create(wanted) => {
                let drives = wanted.drives.iter();
                drives.map(|drive| drive.name.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A pool of some drives that nobody uses; none where there are too few.
pub(super) fn wanted(
    prng: &mut Prng,
    name: &str,
    mut free: Vec<Rc<Bay>>,
    others: &[Rc<Bay>],
) -> Option<Wanted> {
    let (level, drives) = *prng.pick(&[
        (Level::Simple, 1),
        (Level::Raid10 { copies: 2 }, 2),
        (Level::Raid5, 3),
    ]);
    let mut taken = Vec::new();
    for _ in 0..drives {
        if free.is_empty() {
            return None;
        }
        taken.push(free.swap_remove(prng.below(free.len() as u64) as usize));
    }
    let is_barred = prng.chance(1, 6) && !others.is_empty();
    if is_barred {
        let place = prng.below(drives) as usize;
        taken[place] = Rc::clone(prng.pick(others));
    }
    let names = taken.iter().map(|bay| bay.name.clone()).collect();
    let pool = draw_pool(prng, name, Group::of_data(level, names));
    Some(Wanted {
        pool,
        drives: taken.iter().map(|bay| bay.drive()).collect(),
        is_barred,
    })
}

/// The bays that a new pool may have: those that nobody uses, and that hold nothing.
pub(super) fn free(oracle: &Oracle, shelf: &Shelf) -> Vec<Rc<Bay>> {
    let used = oracle.used();
    let is_free = |bay: &&Rc<Bay>| {
        let name = &bay.name;
        !bay.is_away.get() && !used.contains(name) && !oracle.is_marked(name)
    };
    shelf.own().filter(is_free).cloned().collect()
}

/// Draws a request to an array that is so; none where there is nothing to ask for. `number` is that of
/// the request.
pub(super) fn draw(
    prng: &mut Prng,
    (oracle, shelf): (&Oracle, &Shelf),
    number: u64,
) -> Option<Request> {
    let name = *prng.pick(&NAMES);
    if oracle.unsure.contains(name) {
        return None;
    }
    let Some(pool) = oracle.pools.get(name) else {
        let wanted = wanted(prng, name, free(oracle, shelf), shelf.others())?;
        return Some(Request::Create(wanted));
    };
    let mut drives = pool.drives.iter().filter_map(|name| shelf.called(name));
    if !oracle.open.contains(name) || drives.any(|bay| bay.is_away.get()) {
        return None;
    }
    let pool_name = name.to_owned();
    match prng.chance(2, 5) || pool.volumes.len() >= VOLUMES_MAX {
        true => Some(Request::Destroy { pool: pool_name }),
        false => Some(Request::Fill {
            pool: pool_name,
            volume: format!("v{number}"),
        }),
    }
}

/// Has the array do it.
pub(super) async fn perform(
    (array, openings): (&Arc<ControlPlane<SimWorld>>, &Arc<Openings<SimWorld>>),
    request: Request,
) -> Result<(), ArrayError> {
    match request {
        Request::Create(Wanted { pool, drives, .. }) => {
            openings.create(array, NewPool { pool, drives }).await
        }
        Request::Destroy { pool } => {
            let volumes = array.volumes().await?.into_iter();
            for there in volumes.filter(|there| there.pool == pool) {
                let how = Deletion {
                    by_force: false,
                    at_once: true,
                    only_check: false,
                };
                array.delete_volume(there.info.name, how).await?;
            }
            openings.destroy(array, pool).await
        }
        Request::Fill { pool, volume } => fill(array, pool, volume).await,
    }
}

/// Makes a volume, and writes all of it.
async fn fill(
    array: &Arc<ControlPlane<SimWorld>>,
    pool: String,
    volume: String,
) -> Result<(), ArrayError> {
    let spec = VolumeSpec {
        name: volume.clone(),
        size_bytes: VOLUME_BYTES,
        provisioning: Provisioning::Thin,
    };
    let made = array.create_volume(pool.clone(), spec, Vec::new()).await?;
    let fill = move |_, lane: Lane<SimWorld>| async move {
        let Some(there) = lane.volume(&volume) else {
            return Err(ArrayError::no_volume(&volume));
        };
        let mut buf = lane.world().buffers().data(VOLUME_BYTES as usize);
        if let Some(bytes) = buf.bytes_mut() {
            bytes.copy_from_slice(&filling(&volume));
        }
        let written = there.write(VolumeOffset(0), buf.freeze()).await;
        written.map_err(|error| ArrayError::new(ArrayErrorKind::Unavailable, error.to_string()))
    };
    array.with_lane(&pool, made.lane, fill).await
}

/// A small pool of this group, as a site file says it.
pub(crate) fn draw_pool(prng: &mut Prng, name: &str, group: Group) -> Pool {
    Pool {
        name: name.to_owned(),
        groups: vec![group],
        lanes: prng.between(1, 2) as u16,
        stripe_unit_bytes: 8 << 10,
        page_bytes: 8192 << prng.below(3),
        cache_bytes: 0,
        ..Pool::usual()
    }
}
