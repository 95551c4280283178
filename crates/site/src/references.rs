//! Rules that need more than one value: references, uniqueness, counts, room.

use crate::diagnostic::Diagnostic;
use crate::read::Rows;
use crate::size;
use crate::table::Row;
use crate::types::{DriveSource, LUNS_MAX, Level, Provisioning, Site};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the rows against each other. Values that were reported already are
/// left out, so that one mistake gives one diagnostic.
pub(crate) fn check(rows: &Rows, found: &mut Vec<Diagnostic>) {
    unique(
        &rows.portals,
        "portal",
        "address",
        |p| fixed_port(p.address),
        found,
    );
    unique(
        &rows.drives,
        "drive",
        "name",
        |d| Some(d.name.clone()),
        found,
    );
    unique(&rows.pools, "pool", "name", |p| Some(p.name.clone()), found);
    unique(
        &rows.volumes,
        "volume",
        "name",
        |v| Some(v.name.clone()),
        found,
    );
    unique(
        &rows.exports,
        "export",
        "target",
        |e| Some(e.target.clone()),
        found,
    );
    unique(&rows.vms, "vm", "name", |v| Some(v.name.clone()), found);
    unique(&rows.vms, "vm", "target", |v| Some(v.target.clone()), found);
    drive_places(rows, found);
    pool_members(rows, found);
    pool_shapes(rows, found);
    volume_pools(rows, found);
    thick_room(rows, found);
    export_volumes(rows, found);
    vm_targets(rows, found);
    api_and_portals(rows, found);
}

fn push(found: &mut Vec<Diagnostic>, line: usize, key: &str, what: String, allowed: String) {
    found.push(Diagnostic {
        line,
        key: key.to_owned(),
        found: what,
        allowed,
    });
}

/// The address as text, unless the system chooses the port: such never collide.
fn fixed_port(address: std::net::SocketAddr) -> Option<String> {
    (address.port() != 0).then(|| address.to_string())
}

fn unique<T>(
    rows: &[Row<T>],
    table: &str,
    key: &'static str,
    value: impl Fn(&T) -> Option<String>,
    found: &mut Vec<Diagnostic>,
) {
    let mut first = BTreeMap::new();
    for row in rows {
        let (Some(line), Some(value)) = (row.line(key), value(&row.item)) else {
            continue;
        };
        match first.get(&value) {
            None => {
                first.insert(value, line);
            }
            Some(earlier) => push(
                found,
                line,
                &format!("{table}.{key}"),
                format!("{value:?}, as on line {earlier}"),
                format!("one that no other {table} has"),
            ),
        }
    }
}

fn drive_places(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let mut first = BTreeMap::new();
    for row in &rows.drives {
        let (key, path) = match &row.item.source {
            DriveSource::File { path, .. } => ("file", path),
            DriveSource::Device { path } => ("device", path),
        };
        let Some(line) = row.line(key) else { continue };
        match first.get(path) {
            None => {
                first.insert(path, line);
            }
            Some(earlier) => push(
                found,
                line,
                &format!("drive.{key}"),
                format!("{:?}, as on line {earlier}", path.display().to_string()),
                "a place that no other drive has".to_owned(),
            ),
        }
    }
}

/// What may stand where a name is looked up.
fn one_of<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let names: Vec<&str> = names.into_iter().take(20).collect();
    if names.is_empty() {
        return format!("the name of a {what}, and the file describes none");
    }
    format!("the name of a {what} (such as {})", names.join(", "))
}

fn pool_members(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let drives: BTreeSet<&str> = rows
        .drives
        .iter()
        .map(|row| row.item.name.as_str())
        .collect();
    let mut users: BTreeMap<&str, &str> = BTreeMap::new();
    for pool in &rows.pools {
        for (index, name) in pool.item.drives.iter().enumerate() {
            let line = pool.element_line("drives", index);
            if !drives.contains(name.as_str()) {
                let allowed = one_of("drive", drives.iter().copied());
                push(
                    found,
                    line,
                    "pool.drives",
                    format!("{name:?}, which no drive has"),
                    allowed,
                );
            } else if let Some(user) = users.get(name.as_str()) {
                let what = format!("{name:?}, which pool {user:?} uses already");
                push(
                    found,
                    line,
                    "pool.drives",
                    what,
                    "a drive of no other pool".to_owned(),
                );
            } else {
                users.insert(name, &pool.item.name);
            }
        }
    }
    let all_read = rows.pools.iter().all(|pool| pool.line("drives").is_some());
    for drive in &rows.drives {
        if let Some(line) = drive.line("name").filter(|_| all_read)
            && !users.contains_key(drive.item.name.as_str())
        {
            let what = format!("{:?}, which no pool lists", drive.item.name);
            push(
                found,
                line,
                "drive.name",
                what,
                "a drive that a pool lists in drives".to_owned(),
            );
        }
    }
}

fn pool_shapes(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for pool in &rows.pools {
        if let Some(line) = pool.line("drives")
            && pool.line("level").is_some()
        {
            let count = pool.item.drives.len();
            if !is_right_count(pool.item.level, count) {
                let allowed = match pool.item.level {
                    Level::Simple => "exactly 1 drive for level \"simple\"",
                    Level::Raid10 => "an even number of drives, 2 or more, for level \"10\"",
                };
                push(
                    found,
                    line,
                    "pool.drives",
                    plural(count, "drive"),
                    allowed.to_owned(),
                );
            }
        }
        if pool.item.page_bytes < pool.item.stripe_unit_bytes {
            let line = pool.line("page").or(pool.line("stripe_unit"));
            let page = size::human(u64::from(pool.item.page_bytes));
            let unit = size::human(u64::from(pool.item.stripe_unit_bytes));
            push(
                found,
                line.unwrap_or(pool.header_line()),
                "pool.page",
                format!("a page of {page}, smaller than a stripe unit of {unit}"),
                "a page of one or more stripe units".to_owned(),
            );
        }
    }
}

fn is_right_count(level: Level, drives: usize) -> bool {
    match level {
        Level::Simple => drives == 1,
        Level::Raid10 => drives >= 2 && drives.is_multiple_of(2),
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn volume_pools(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for volume in &rows.volumes {
        let Some(line) = volume.line("pool") else {
            continue;
        };
        let name = &volume.item.pool;
        if !rows.pools.iter().any(|pool| pool.item.name == *name) {
            let allowed = one_of(
                "pool",
                rows.pools.iter().map(|pool| pool.item.name.as_str()),
            );
            push(
                found,
                line,
                "volume.pool",
                format!("{name:?}, which no pool has"),
                allowed,
            );
        }
    }
}

/// Thick volumes reserve: they can't be more than their pool's drives hold.
fn thick_room(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for pool in &rows.pools {
        let Some(room_bytes) = raw_room_bytes(rows, pool) else {
            continue;
        };
        let mut sum_bytes = 0u64;
        for volume in rows
            .volumes
            .iter()
            .filter(|volume| volume.item.pool == pool.item.name)
        {
            let Some(line) = volume.line("size") else {
                continue;
            };
            if volume.item.provisioning == Provisioning::Thin {
                continue;
            }
            sum_bytes = sum_bytes.saturating_add(volume.item.size_bytes);
            if sum_bytes > room_bytes {
                push(
                    found,
                    line,
                    "volume.size",
                    format!(
                        "thick volumes of {} in pool {:?}",
                        size::human(sum_bytes),
                        pool.item.name
                    ),
                    format!(
                        "at most the {} that its drives hold",
                        size::human(room_bytes)
                    ),
                );
                break;
            }
        }
    }
}

/// Bytes that the drives of `pool` hold after mirroring, when all sizes are known
/// from the file.
fn raw_room_bytes(rows: &Rows, pool: &Row<crate::types::Pool>) -> Option<u64> {
    pool.line("level").and(pool.line("drives"))?;
    if !is_right_count(pool.item.level, pool.item.drives.len()) {
        return None;
    }
    let mut smallest = u64::MAX;
    for name in &pool.item.drives {
        let drive = rows.drives.iter().find(|drive| drive.item.name == *name)?;
        drive.line("size")?;
        match &drive.item.source {
            DriveSource::File { size_bytes, .. } => smallest = smallest.min(*size_bytes),
            DriveSource::Device { .. } => return None,
        }
    }
    let data_drives = match pool.item.level {
        Level::Simple => 1,
        Level::Raid10 => pool.item.drives.len() as u64 / 2,
    };
    smallest.checked_mul(data_drives)
}

fn export_volumes(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let pool_of: BTreeMap<&str, &str> = rows
        .volumes
        .iter()
        .map(|row| (row.item.name.as_str(), row.item.pool.as_str()))
        .collect();
    let mut users: BTreeMap<&str, &str> = BTreeMap::new();
    for export in &rows.exports {
        for (index, name) in export.item.volumes.iter().enumerate() {
            let line = export.element_line("volumes", index);
            if !pool_of.contains_key(name.as_str()) {
                let allowed = one_of("volume", pool_of.keys().copied());
                push(
                    found,
                    line,
                    "export.volumes",
                    format!("{name:?}, which no volume has"),
                    allowed,
                );
            } else if let Some(user) = users.get(name.as_str()) {
                let what = format!("{name:?}, which target {user:?} exports already");
                push(
                    found,
                    line,
                    "export.volumes",
                    what,
                    "a volume of no other export".to_owned(),
                );
            } else {
                users.insert(name, &export.item.target);
            }
        }
        let count = export.item.volumes.len();
        if count > LUNS_MAX {
            let line = export.line("volumes").unwrap_or(export.header_line());
            let allowed = format!("1 to {LUNS_MAX} volumes (LUN 0 to {})", LUNS_MAX - 1);
            push(
                found,
                line,
                "export.volumes",
                plural(count, "volume"),
                allowed,
            );
        }
        one_shard(rows, export, &pool_of, found);
    }
}

/// All volumes of a target have to be on one shard, because its sessions are.
fn one_shard(
    rows: &Rows,
    export: &Row<crate::types::Export>,
    pool_of: &BTreeMap<&str, &str>,
    found: &mut Vec<Diagnostic>,
) {
    let shard_of = |volume: &str| {
        let pool = pool_of.get(volume)?;
        let index = rows.pools.iter().position(|row| row.item.name == **pool)?;
        Some((*pool, Site::shard_of_pool(index, rows.shards)))
    };
    let mut placed = export
        .item
        .volumes
        .iter()
        .enumerate()
        .filter_map(|(i, name)| Some((i, shard_of(name)?)));
    let Some((_, (first_pool, first_shard))) = placed.next() else {
        return;
    };
    for (index, (pool, shard)) in placed {
        if shard != first_shard {
            push(
                found,
                export.element_line("volumes", index),
                "export.volumes",
                format!(
                    "a volume of pool {pool:?} (shard {shard}) beside one of pool {first_pool:?} \
                     (shard {first_shard})"
                ),
                "volumes of pools on one shard; export them as two targets, or set site.shards = 1"
                    .to_owned(),
            );
            return;
        }
    }
}

fn vm_targets(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for vm in &rows.vms {
        let Some(line) = vm.line("target") else {
            continue;
        };
        let target = &vm.item.target;
        if !rows
            .exports
            .iter()
            .any(|export| export.item.target == *target)
        {
            let allowed = one_of(
                "target",
                rows.exports.iter().map(|row| row.item.target.as_str()),
            );
            push(
                found,
                line,
                "vm.target",
                format!("{target:?}, which no export has"),
                allowed,
            );
        }
    }
}

fn api_and_portals(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for portal in &rows.portals {
        if let Some(line) = portal.line("address")
            && portal.item.address == rows.api.listen
            && rows.api.listen.port() != 0
        {
            push(
                found,
                line,
                "portal.address",
                format!(
                    "{:?}, where the API listens",
                    portal.item.address.to_string()
                ),
                "an address other than api.listen".to_owned(),
            );
        }
    }
}
