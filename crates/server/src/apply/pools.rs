//! Applies pools, portals and settings of a site file.

use super::{Action, Difference};
use crate::array::{Array, ArrayError, ArrayErrorKind, differences_from};
use ::array::openings::NewPool;
use engine::pool::PoolInfo;
use site::{Background, Drive, Pool, RateLimit, Site, TimeLimit};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Keys that say where the server reads and writes files.
pub(crate) const OF_FILES: [&str; 3] =
    ["api.listen", "api.drive_directories", "images.directories"];
/// Keys, or tables, that count from the next start on.
const OF_STARTS: [&str; 4] = ["site.name", "site.shards", "api.listen", "limits."];

/// Whether a pool of the file and its drives can be made by the array, or was.
fn absent(pool: &Pool, there: &[(usize, PoolInfo)], array: &Array) -> Difference {
    let user = |drive: &String| {
        let has = |info: &PoolInfo| {
            let mut all = info.members.iter().chain(&info.spares);
            all.any(|member| member.name == *drive)
        };
        there.iter().find(|(_, info)| has(info))
    };
    let what = format!("pool {}", pool.name);
    let used = pool.drives().find_map(|drive| Some((drive, user(drive)?)));
    match used {
        None if array.is_unlisted(&pool.name) => Difference {
            action: Action::Create,
            what,
            how: "was made here: it is opened with what it holds".to_owned(),
        },
        None => Difference {
            action: Action::Create,
            what,
            how: format!(
                "level {}; drives {}",
                pool.groups.first().map_or("", |group| group.level.as_str()),
                pool.drives().cloned().collect::<Vec<_>>().join(", ")
            ),
        },
        Some((drive, (_, other))) => Difference {
            action: Action::Create,
            what,
            how: format!("can't be made: drive {drive} is of pool {}", other.name),
        },
    }
}

/// Where pools are not what the file says.
///
/// # Errors
/// A shard has stopped.
pub(super) async fn pools(site: &Site, array: &Array) -> Result<Vec<Difference>, ArrayError> {
    let there = array.pools().await?;
    let settings = array.settings();
    let mut found = Vec::new();
    for pool in &site.pools {
        let what = format!("pool {}", pool.name);
        let kept = |how: String| Difference {
            action: Action::Keep,
            what: what.clone(),
            how,
        };
        let open = there.iter().find(|(_, info)| info.name == pool.name);
        match open {
            Some((_, info)) => found.extend(differences_from(pool, info).into_iter().map(kept)),
            None if array.is_closed(&pool.name) => {
                found.push(kept("is not open; see ashlar status".to_owned()));
                found.extend(other_drives(site, &settings, array, &pool.name));
                continue;
            }
            None => found.push(absent(pool, &there, array)),
        }
        let Some(now) = settings.pool(&pool.name) else {
            continue;
        };
        let how = changes(now, pool);
        found.extend((!how.is_empty()).then(|| Difference {
            action: Action::Change,
            what: what.clone(),
            how: how.join("; "),
        }));
        let drives = pool.drives().filter_map(|name| site.drive(name));
        for drive in drives.filter(|drive| is_elsewhere(drive, &settings, array, &pool.name)) {
            found.push(Difference {
                action: Action::Change,
                what: format!("drive {}", drive.name),
                how: format!(
                    "is looked for at {} from then on",
                    drive.source.path().display()
                ),
            });
        }
    }
    let described = |name: &str| site.pool(name).is_some();
    let others = there.iter().filter(|(_, info)| !described(&info.name));
    found.extend(others.map(|(_, info)| Difference {
        action: Action::Keep,
        what: format!("pool {}", info.name),
        how: "is not in the site file".to_owned(),
    }));
    Ok(found)
}

/// What of a pool can be changed at any time, and differs.
fn changes(now: &Pool, wanted: &Pool) -> Vec<String> {
    let values = |pool: &Pool| {
        [
            ("cache", size(pool.cache_bytes)),
            ("rebuild_rate", rate(pool.rebuild_rate)),
            ("scrub_rate", rate(pool.scrub_rate)),
            ("rebuild_hours", time_limit(pool.rebuild_hours, "h")),
            ("scrub_days", time_limit(pool.scrub_days, "d")),
            ("background", background(pool.background)),
            ("warn_at", percent(pool.warn_at)),
            ("alarm_at", percent(pool.alarm_at)),
        ]
    };
    let pairs = values(now).into_iter().zip(values(wanted));
    let differing = pairs.filter(|((_, now), (_, wanted))| now != wanted);
    differing
        .map(|((key, now), (_, wanted))| format!("{key} {now} becomes {wanted}"))
        .collect()
}

/// What a key is that the file does not have.
const USUAL: &str = "its default";

/// Exact where a rounded size would hide a difference.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "none".to_owned(),
        _ if site::parse_size(&site::human(bytes)) == Some(bytes) => site::human(bytes),
        _ => format!("{bytes} B"),
    }
}

fn rate(limit: Option<RateLimit>) -> String {
    match limit {
        None => USUAL.to_owned(),
        Some(RateLimit::Unlimited) => "unlimited".to_owned(),
        Some(RateLimit::BytesPerS(bytes_per_s)) => format!("{}/s", size(bytes_per_s)),
    }
}

fn time_limit(limit: Option<TimeLimit>, unit: &str) -> String {
    match limit {
        None => USUAL.to_owned(),
        Some(TimeLimit::Off) => "off".to_owned(),
        Some(TimeLimit::Of(count)) => format!("{count} {unit}"),
    }
}

fn background(background: Background) -> String {
    match background {
        Background::Yield => "yield".to_owned(),
        Background::Full => "full".to_owned(),
    }
}

fn percent(percent: Option<u8>) -> String {
    percent.map_or_else(|| USUAL.to_owned(), |percent| format!("{percent} %"))
}

/// Whether the settings look for a drive of this pool somewhere else.
fn is_elsewhere(drive: &Drive, settings: &Site, array: &Array, pool: &str) -> bool {
    let of_pool = settings.pool(pool).into_iter().flat_map(Pool::drives);
    let now = of_pool.filter(|name| **name == drive.name);
    let mut now = now.filter_map(|name| settings.drive(name));
    let path_of = |drive: &Drive| array.places().path_of(drive);
    now.any(|now| path_of(now) != path_of(drive))
}

/// That a pool which is not open is looked for at other drives than the file names.
fn other_drives(site: &Site, settings: &Site, array: &Array, pool: &str) -> Option<Difference> {
    let places = |of: &Site| {
        let drives = of.pool(pool).into_iter().flat_map(Pool::drives);
        let drives = drives.filter_map(|name| of.drive(name));
        let mut places: Vec<(String, PathBuf)> = drives
            .map(|drive| (drive.name.clone(), array.places().path_of(drive)))
            .collect();
        places.sort();
        places
    };
    let (now, wanted) = (places(settings), places(site));
    let listed = wanted
        .iter()
        .map(|(name, at)| format!("{name} at {}", at.display()));
    (now != wanted).then(|| Difference {
        action: Action::Change,
        what: format!("drives of pool {pool}"),
        how: format!("are looked for: {}", listed.collect::<Vec<_>>().join(", ")),
    })
}

/// That only the owner may say where the drives of a pool are that is there.
fn refused() -> ArrayError {
    let context = "root may say where drives are, and the server's user".to_owned();
    ArrayError::new(ArrayErrorKind::Invalid, context)
}

/// Adds a pool that the settings do not name: makes it, unless it was made here before.
async fn add(
    site: &Site,
    array: &Arc<Array>,
    pool: &Pool,
    is_owner: bool,
) -> Result<(), ArrayError> {
    let drives = pool.drives().filter_map(|name| site.drive(name)).cloned();
    let new = NewPool {
        pool: pool.clone(),
        drives: drives.collect(),
    };
    match (array.is_unlisted(&pool.name), is_owner) {
        (false, _) => array.openings().create(array.control(), new).await,
        (true, true) => array.openings().take_in(array.control(), new).await,
        (true, false) => Err(refused()),
    }
}

/// Looks for a pool that is not open at these drives.
async fn look_for(
    array: &Array,
    pool: Pool,
    drives: Vec<Drive>,
    is_owner: bool,
) -> Result<(), ArrayError> {
    let openings = array.openings();
    match is_owner {
        true => openings.look_for(array.control(), pool, drives).await,
        false => Err(refused()),
    }
}

/// Looks for a drive of a pool where the file says.
async fn look_for_drive(
    array: &Array,
    pool: String,
    drive: Drive,
    is_owner: bool,
) -> Result<(), ArrayError> {
    let openings = array.openings();
    match is_owner {
        true => openings.look_for_drive(array.control(), pool, drive).await,
        false => Err(refused()),
    }
}

/// Has pools be what the file says, as far as that loses nothing. Gives what could not be done. Only
/// the owner may say where drives are.
pub(super) async fn apply_pools(
    site: &Site,
    array: &Arc<Array>,
    is_owner: bool,
) -> Vec<(String, String)> {
    let mut failed = Vec::new();
    let mut note = |what: String, done: Result<(), ArrayError>| {
        failed.extend(done.err().map(|error| (what, error.context)));
    };
    for pool in &site.pools {
        let what = format!("pool {}", pool.name);
        let settings = array.settings();
        let is_there = settings.pool(&pool.name).is_some() || array.is_closed(&pool.name);
        if !is_there {
            note(what, add(site, array, pool, is_owner).await);
            continue;
        }
        if array.is_closed(&pool.name) {
            if other_drives(site, &settings, array, &pool.name).is_some() {
                let drives = pool.drives().filter_map(|name| site.drive(name)).cloned();
                let looked_for = look_for(array, pool.clone(), drives.collect(), is_owner).await;
                note(format!("drives of {what}"), looked_for);
            }
            continue;
        }
        let drives = pool.drives().filter_map(|name| site.drive(name)).cloned();
        for drive in drives.filter(|drive| is_elsewhere(drive, &settings, array, &pool.name)) {
            let (what, pool) = (format!("drive {}", drive.name), pool.name.clone());
            let moved = look_for_drive(array, pool, drive, is_owner).await;
            note(what, moved);
        }
        if settings
            .pool(&pool.name)
            .is_some_and(|now| !changes(now, pool).is_empty())
        {
            note(what, array.pace_pool(pool.clone()).await);
        }
    }
    failed
}

/// Portals that differ. Those that the file does not name stay.
pub(super) fn portals(site: &Site, array: &Array) -> Vec<Difference> {
    let settings = array.settings();
    let has =
        |portals: &[site::Portal], at: SocketAddr| portals.iter().any(|one| one.address == at);
    let new = site.portals.iter().map(|portal| portal.address);
    let new = new
        .filter(|at| !has(&settings.portals, *at))
        .map(|at| Difference {
            action: Action::Create,
            what: format!("portal {at}"),
            how: "is opened".to_owned(),
        });
    let other = regrouped(site, &settings).map(|(is, says)| Difference {
        action: Action::Change,
        what: format!("portal {}", is.address),
        how: format!(
            "group {} becomes {}; its sessions end",
            is.group, says.group
        ),
    });
    let old = settings.portals.iter().map(|portal| portal.address);
    let old = old
        .filter(|at| !has(&site.portals, *at))
        .map(|at| Difference {
            action: Action::Keep,
            what: format!("portal {at}"),
            how: "is not in the site file: `ashlar portal remove` closes it".to_owned(),
        });
    new.chain(other).chain(old).collect()
}

/// Portals that are in another group than the file says: as they are, and as they are to be.
fn regrouped<'a>(
    site: &'a Site,
    settings: &'a Site,
) -> impl Iterator<Item = (&'a site::Portal, &'a site::Portal)> {
    settings.portals.iter().filter_map(|is| {
        let is_other = |says: &&site::Portal| says.address == is.address && says.group != is.group;
        Some((is, site.portals.iter().find(is_other)?))
    })
}

/// Opens the portals that the file has and the array has not, and has the others in their groups.
pub(super) async fn apply_portals(site: &Site, array: &Arc<Array>) -> Vec<(String, String)> {
    let settings = array.settings();
    let is_there = |portal: &&site::Portal| {
        let mut there = settings.portals.iter();
        there.any(|one| one.address == portal.address)
    };
    let mut failed = Vec::new();
    for portal in site.portals.iter().filter(|portal| !is_there(portal)) {
        let added = array.add_portal(portal.clone()).await;
        let what = format!("portal {}", portal.address);
        failed.extend(added.err().map(|error| (what, error.context)));
    }
    for (_, says) in regrouped(site, &settings) {
        let changed = array.change_portal(says.clone()).await;
        let what = format!("portal {}", says.address);
        failed.extend(changed.err().map(|error| (what, error.context)));
    }
    failed
}

/// Settings by `table.key`, as they are written.
fn flat(site: &Site) -> BTreeMap<String, String> {
    let tables = site::settings(site).into_iter();
    let keys = tables.flat_map(|(table, keys)| {
        let keys = keys.into_iter();
        keys.map(move |(key, value)| (format!("{table}.{key}"), value.to_string()))
            .collect::<Vec<_>>()
    });
    keys.collect()
}

/// Settings that differ.
pub(super) fn settings(site: &Site, array: &Array) -> Vec<Difference> {
    let (now, wanted) = (flat(&array.settings()), flat(site));
    let mut keys: Vec<&String> = now.keys().chain(wanted.keys()).collect();
    keys.sort();
    keys.dedup();
    let differing = keys
        .into_iter()
        .filter(|key| now.get(*key) != wanted.get(*key));
    let differences = differing.map(|key| {
        let said = |of: &BTreeMap<String, String>| {
            of.get(key)
                .cloned()
                .unwrap_or_else(|| "its default".to_owned())
        };
        let is_of_starts = OF_STARTS.iter().any(|start| key.starts_with(start));
        let from = match is_of_starts {
            true => ", from the next start on",
            false => "",
        };
        Difference {
            action: Action::Change,
            what: format!("setting {key}"),
            how: format!("{} becomes {}{from}", said(&now), said(&wanted)),
        }
    });
    differences.collect()
}

/// Has settings be what the file says. Only the owner may say where files are.
pub(super) async fn apply_settings(
    site: &Site,
    array: &Arc<Array>,
    is_owner: bool,
) -> Vec<(String, String)> {
    let differing = settings(site, array);
    if differing.is_empty() {
        return Vec::new();
    }
    let wanted = site.settings();
    let changed = array.change_settings(move |now| {
        now.name = wanted.name;
        now.shards = wanted.shards;
        now.trash = wanted.trash;
        now.limits = wanted.limits;
        now.chap = wanted.chap;
        if is_owner {
            now.api = wanted.api;
            now.images = wanted.images;
        }
        Ok(())
    });
    let error = changed.await.err().map(|error| error.context);
    let mut failed = Vec::new();
    for difference in differing {
        let key = difference.what.trim_start_matches("setting ");
        let refused = !is_owner && OF_FILES.contains(&key);
        let why = match refused {
            true => Some("root may change it, and the server's user".to_owned()),
            false => error.clone(),
        };
        failed.extend(why.map(|why| (difference.what.clone(), why)));
    }
    failed
}
