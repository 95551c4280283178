//! Applies pools of a site file: makes them, takes in those that were made here, and looks for their
//! drives where the file says.

use super::{Action, Difference};
use crate::control::{ArrayError, ArrayErrorKind, ControlPlane};
use crate::openings::{NewPool, Openings};
use engine::World;
use engine::pool::{MemberInfo, PoolInfo};
use site::{Background, Drive, DriveSource, Pool, RateLimit, Site, TimeLimit};
use std::path::PathBuf;
use std::sync::Arc;

/// Whether a pool of the file and its drives can be made by the array, or was.
fn absent<W: World>(
    pool: &Pool,
    there: &[(usize, PoolInfo)],
    array: &ControlPlane<W>,
) -> Difference {
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
                pool.groups
                    .first()
                    .map_or_else(String::new, |group| group.protection().to_string()),
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
pub(super) async fn pools<W: World>(
    site: &Site,
    array: &ControlPlane<W>,
) -> Result<Vec<Difference>, ArrayError> {
    let there = array.pools().await?;
    let settings = array.settings();
    let mut found = Vec::new();
    for pool in &site.pools {
        found.extend(of_pool((site, pool), &there, (array, &settings)));
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

/// Where a pool is not what the file says.
fn of_pool<W: World>(
    (site, pool): (&Site, &Pool),
    there: &[(usize, PoolInfo)],
    (array, settings): (&ControlPlane<W>, &Site),
) -> Vec<Difference> {
    let (mut found, what) = (Vec::new(), format!("pool {}", pool.name));
    let of_it = |action, how: String| Difference {
        action,
        what: what.clone(),
        how,
    };
    let kept = |how| of_it(Action::Keep, how);
    let open = there.iter().find(|(_, info)| info.name == pool.name);
    match open {
        Some((_, info)) => found.extend(differences_from(pool, info).into_iter().map(kept)),
        None if array.is_closed(&pool.name) => {
            found.push(kept("is not open; see ashlar status".to_owned()));
            found.extend(other_drives(site, settings, array, &pool.name));
            return found;
        }
        None => found.push(absent(pool, there, array)),
    }
    let Some(now) = settings.pool(&pool.name) else {
        return found;
    };
    found.extend(
        made_otherwise((settings, now), (site, pool))
            .into_iter()
            .map(kept),
    );
    let how = changes(now, pool);
    found.extend((!how.is_empty()).then(|| of_it(Action::Change, how.join("; "))));
    let drives = pool.drives().filter_map(|name| site.drive(name));
    let elsewhere = drives.filter(|drive| is_elsewhere(drive, settings, array, &pool.name));
    found.extend(elsewhere.map(is_looked_for));
    found
}

/// That a drive is looked for where the file says.
fn is_looked_for(drive: &Drive) -> Difference {
    let path = drive.source.path().display();
    Difference {
        action: Action::Change,
        what: format!("drive {}", drive.name),
        how: format!("is looked for at {path} from then on"),
    }
}

/// What a pool was made with, and has for good, where the file says otherwise.
fn made_otherwise((settings, now): (&Site, &Pool), (site, wanted): (&Site, &Pool)) -> Vec<String> {
    let log = |pool: &Pool| pool.log_bytes.map_or_else(|| USUAL.to_owned(), size);
    let values = |pool: &Pool| {
        [
            ("lanes", pool.lanes.to_string()),
            ("page", size(u64::from(pool.page_bytes))),
            ("stripe_unit", size(u64::from(pool.stripe_unit_bytes))),
            ("log", log(pool)),
        ]
    };
    let pairs = values(now).into_iter().zip(values(wanted));
    let mut lines: Vec<String> = pairs
        .filter(|((_, now), (_, wanted))| now != wanted)
        .map(|((key, now), (_, wanted))| format!("{key} is {now} since it was made, not {wanted}"))
        .collect();
    let bytes = |of: &Site, name: &str| match of.drive(name)?.source {
        DriveSource::File { size_bytes, .. } => Some(size_bytes),
        DriveSource::Device { .. } => None,
    };
    lines.extend(wanted.drives().filter_map(|name| {
        let (now, wanted) = (bytes(settings, name)?, bytes(site, name)?);
        let (now, wanted) = (size(now), size(wanted));
        (now != wanted).then(|| format!("the file of drive {name} has {now}, not {wanted}"))
    }));
    lines
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
fn is_elsewhere<W: World>(
    drive: &Drive,
    settings: &Site,
    array: &ControlPlane<W>,
    pool: &str,
) -> bool {
    let of_pool = settings.pool(pool).into_iter().flat_map(Pool::drives);
    let now = of_pool.filter(|name| **name == drive.name);
    let mut now = now.filter_map(|name| settings.drive(name));
    let path_of = |drive: &Drive| array.places().path_of(drive);
    now.any(|now| path_of(now) != path_of(drive))
}

/// That a pool which is not open is looked for at other drives than the file names.
fn other_drives<W: World>(
    site: &Site,
    settings: &Site,
    array: &ControlPlane<W>,
    pool: &str,
) -> Option<Difference> {
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
async fn add<W: World>(
    site: &Site,
    (array, openings): (&Arc<ControlPlane<W>>, &Arc<Openings<W>>),
    pool: &Pool,
    is_owner: bool,
) -> Result<(), ArrayError> {
    let drives = pool.drives().filter_map(|name| site.drive(name)).cloned();
    let new = NewPool {
        pool: pool.clone(),
        drives: drives.collect(),
    };
    match (array.is_unlisted(&pool.name), is_owner) {
        (false, _) => openings.create(array, new).await,
        (true, true) => openings.take_in(array, new).await,
        (true, false) => Err(refused()),
    }
}

/// Looks for a pool that is not open at these drives.
async fn look_for<W: World>(
    (array, openings): (&Arc<ControlPlane<W>>, &Arc<Openings<W>>),
    pool: Pool,
    drives: Vec<Drive>,
    is_owner: bool,
) -> Result<(), ArrayError> {
    match is_owner {
        true => openings.look_for(array, pool, drives).await,
        false => Err(refused()),
    }
}

/// Looks for a drive of a pool where the file says.
async fn look_for_drive<W: World>(
    (array, openings): (&Arc<ControlPlane<W>>, &Arc<Openings<W>>),
    pool: String,
    drive: Drive,
    is_owner: bool,
) -> Result<(), ArrayError> {
    match is_owner {
        true => openings.look_for_drive(array, pool, drive).await,
        false => Err(refused()),
    }
}

/// Has pools be what the file says, as far as that loses nothing. Gives what could not be done. Only
/// the owner may say where drives are.
pub(super) async fn apply_pools<W: World>(
    site: &Site,
    (array, openings): (&Arc<ControlPlane<W>>, &Arc<Openings<W>>),
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
            note(what, add(site, (array, openings), pool, is_owner).await);
            continue;
        }
        if array.is_closed(&pool.name) {
            if other_drives(site, &settings, array, &pool.name).is_some() {
                let drives = pool.drives().filter_map(|name| site.drive(name)).cloned();
                let looked_for =
                    look_for((array, openings), pool.clone(), drives.collect(), is_owner).await;
                note(format!("drives of {what}"), looked_for);
            }
            continue;
        }
        let drives = pool.drives().filter_map(|name| site.drive(name)).cloned();
        for drive in drives.filter(|drive| is_elsewhere(drive, &settings, array, &pool.name)) {
            let (what, pool) = (format!("drive {}", drive.name), pool.name.clone());
            let moved = look_for_drive((array, openings), pool, drive, is_owner).await;
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

/// Where a description is not what a pool is by now; for people, one line each.
fn differences_from(site: &site::Pool, info: &PoolInfo) -> Vec<String> {
    let names = |members: &[MemberInfo]| -> Vec<String> {
        members.iter().map(|member| member.name.clone()).collect()
    };
    let groups = info.groups.iter().map(|group| site::diff::ExistingGroup {
        index: group.index,
        level: group.level,
        spread: group.spread,
        role: group.role,
        drives: names(&group.members),
        leaves: group.leaving,
    });
    let groups: Vec<_> = groups.collect();
    site::diff::pool(site, &groups, &names(&info.spares))
}
