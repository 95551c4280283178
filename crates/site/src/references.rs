//! Rules that need more than one value: references, uniqueness, counts, room.

use crate::access;
use crate::api_address::ApiAddress;
use crate::diagnostic::Diagnostic;
use crate::logs;
use crate::read::{PoolRow, Rows};
use crate::size;
use crate::spread;
use crate::table::Row;
use crate::types::{DriveSource, Group, LUNS_MAX, Provisioning};
use crate::volumes;
use engine::pool::{PoolError, PoolErrorKind, PoolSpec, planned_capacity_bytes};
use engine::raid::Protection;
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
        |d| Some(d.drive.name.clone()),
        found,
    );
    unique(
        &rows.pools,
        "pool",
        "name",
        |p| Some(p.pool.name.clone()),
        found,
    );
    unique(
        &rows.volumes,
        "volume",
        "name",
        |v| Some(v.name.clone()),
        found,
    );
    unique(
        &rows.groups,
        "group",
        "name",
        |g| Some(g.name.clone()),
        found,
    );
    unique(
        &rows.exports,
        "export",
        "target",
        |e| Some(e.target.clone()),
        found,
    );
    drive_places(rows, found);
    pool_members(rows, found);
    pool_shapes(rows, found);
    volume_pools(rows, found);
    thick_room(rows, found);
    export_volumes(rows, found);
    volumes::group_volumes(rows, found);
    volumes::scheduled_names(rows, found);
    vms(rows, found);
    access::check(rows, found);
    api_and_portals(rows, found);
}

pub(crate) fn push(
    found: &mut Vec<Diagnostic>,
    line: usize,
    key: &str,
    what: String,
    allowed: String,
) {
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

pub(crate) fn unique<T>(
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
        let (key, path) = match &row.item.drive.source {
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
pub(crate) fn one_of<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let names: Vec<&str> = names.into_iter().take(20).collect();
    if names.is_empty() {
        return format!("the name of a {what}, and the file describes none");
    }
    format!("the name of a {what} (such as {})", names.join(", "))
}

/// A group, and where the file describes it.
struct Described<'a> {
    group: &'a Group,
    /// For messages: the table and key of its drives.
    key: &'static str,
    /// The line of its list of drives, when that was read well.
    line: Option<usize>,
    /// Whether its level was read well, and what says how it is wider than its stripes.
    level_known: bool,
    /// The line of each drive.
    lines: Vec<usize>,
}

/// All groups of a pool.
fn described(pool: &Row<PoolRow>) -> Vec<Described<'_>> {
    let lines = |group: &Group, line_of: &dyn Fn(usize) -> usize| {
        (0..group.drives.len()).map(line_of).collect()
    };
    let groups = &pool.item.pool.groups;
    let level_known = pool.line("level").is_some();
    let mut all = vec![Described {
        group: &groups[0],
        key: "pool.drives",
        line: pool.line("drives"),
        level_known: level_known && spread::is_known(pool, groups[0].spread),
        lines: lines(&groups[0], &|index| pool.element_line("drives", index)),
    }];
    all.extend(pool.item.more.iter().map(|row| Described {
        group: &row.item,
        key: "pool.group.drives",
        line: row.line("drives"),
        level_known: (level_known || row.line("level").is_some())
            && spread::is_known(row, row.item.spread),
        lines: lines(&row.item, &|index| row.element_line("drives", index)),
    }));
    all
}

fn pool_members(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let mut users: BTreeMap<&str, &str> = BTreeMap::new();
    for pool in &rows.pools {
        let name = pool.item.pool.name.as_str();
        for group in described(pool) {
            let listed = group.group.drives.iter().zip(group.lines.iter().copied());
            members(rows, name, group.key, listed, &mut users, found);
        }
        let spares = pool.item.pool.spares.iter().enumerate();
        let listed = spares.map(|(index, spare)| (spare, pool.element_line("spares", index)));
        members(rows, name, "pool.spares", listed, &mut users, found);
    }
    // A pool that takes its groups out of lots lists no drives of a first group.
    let all_read = rows.pools.iter().all(|pool| {
        let mut groups = described(pool).into_iter();
        let first = groups.next();
        let first = first.is_none_or(|group| group.line.is_some() || pool.has("groups"));
        first && groups.all(|group| group.line.is_some())
    });
    for drive in &rows.drives {
        if let Some(line) = drive.line("name").filter(|_| all_read)
            && !users.contains_key(drive.item.drive.name.as_str())
        {
            let what = format!("{:?}, which no pool lists", drive.item.drive.name);
            push(
                found,
                line,
                "drive.name",
                what,
                "a drive that a pool lists in drives or spares".to_owned(),
            );
        }
    }
}

/// Drives that a pool lists: each is described, and nobody else's.
fn members<'a>(
    rows: &Rows,
    pool: &'a str,
    key: &str,
    listed: impl Iterator<Item = (&'a String, usize)>,
    users: &mut BTreeMap<&'a str, &'a str>,
    found: &mut Vec<Diagnostic>,
) {
    let drives = || rows.drives.iter().map(|row| row.item.drive.name.as_str());
    for (name, line) in listed {
        if !drives().any(|drive| drive == name) {
            let what = format!("{name:?}, which no drive has");
            push(found, line, key, what, one_of("drive", drives()));
        } else if let Some(user) = users.get(name.as_str()) {
            let (what, allowed) = match *user == pool {
                true => (
                    format!("{name:?}, which this pool lists already"),
                    "each drive once",
                ),
                false => (
                    format!("{name:?}, which pool {user:?} uses already"),
                    "a drive of no other pool",
                ),
            };
            push(found, line, key, what, allowed.to_owned());
        } else {
            users.insert(name, pool);
        }
    }
}

fn pool_shapes(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for pool in &rows.pools {
        for group in described(pool) {
            let (of, count) = (group.group.protection(), group.group.drives.len());
            if let Some(line) = group.line
                && group.level_known
                && of.data_drives(count).is_none()
            {
                let allowed = of.drives_rule();
                push(found, line, group.key, plural(count, "drive"), allowed);
            }
        }
        let (page_bytes, unit_bytes) =
            (pool.item.pool.page_bytes, pool.item.pool.stripe_unit_bytes);
        if page_bytes < unit_bytes {
            let line = pool.line("page").or(pool.line("stripe_unit"));
            let page = size::human(u64::from(page_bytes));
            let unit = size::human(u64::from(unit_bytes));
            push(
                found,
                line.unwrap_or(pool.header_line()),
                "pool.page",
                format!("a page of {page}, smaller than a stripe unit of {unit}"),
                "a page of one or more stripe units".to_owned(),
            );
        }
        page_numbers(rows, pool, found);
    }
    logs::check(rows, found);
}

/// That there are enough page numbers for a pool, where the file says how large its drives are.
fn page_numbers(rows: &Rows, pool: &Row<PoolRow>, found: &mut Vec<Diagnostic>) {
    let item = &pool.item.pool;
    let Some(Err(error)) = planned(rows, pool, item.log_bytes) else {
        return;
    };
    if error.kind == PoolErrorKind::TooManyPages {
        push(
            found,
            pool.line("page").unwrap_or(pool.header_line()),
            "pool.page",
            format!("a page of {}", size::human(u64::from(item.page_bytes))),
            format!("one that there are page numbers for: {}", error.context),
        );
    }
}

pub(crate) fn plural(count: usize, what: &str) -> String {
    size::counted(count as u64, what)
}

fn volume_pools(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for volume in &rows.volumes {
        let Some(line) = volume.line("pool") else {
            continue;
        };
        let name = &volume.item.pool;
        if !rows.pools.iter().any(|pool| pool.item.pool.name == *name) {
            let allowed = one_of(
                "pool",
                rows.pools.iter().map(|pool| pool.item.pool.name.as_str()),
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

/// Thick volumes reserve: together they can't have more pages than their pool.
fn thick_room(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for pool in &rows.pools {
        let Some(room_bytes) = capacity_bytes(rows, pool) else {
            continue;
        };
        let mut sum_bytes = 0u64;
        for volume in rows
            .volumes
            .iter()
            .filter(|volume| volume.item.pool == pool.item.pool.name)
        {
            let Some(line) = volume.line("size") else {
                continue;
            };
            if volume.item.provisioning == Provisioning::Thin {
                continue;
            }
            let page_bytes = u64::from(pool.item.pool.page_bytes);
            let pages = volume.item.size_bytes.div_ceil(page_bytes);
            sum_bytes = sum_bytes.saturating_add(pages.saturating_mul(page_bytes));
            if sum_bytes > room_bytes {
                let (needed, room) = size::human_pair(sum_bytes, room_bytes);
                push(
                    found,
                    line,
                    "volume.size",
                    format!(
                        "thick volumes of {needed} in pool {:?}",
                        pool.item.pool.name
                    ),
                    format!(
                        "at most {room}, what the pool holds beside copies, parity and metadata"
                    ),
                );
                break;
            }
        }
    }
}

/// What volumes can map in `pool` once it is made, when all sizes are known from the file.
fn capacity_bytes(rows: &Rows, pool: &Row<PoolRow>) -> Option<u64> {
    // What can't be made is said elsewhere.
    planned(rows, pool, pool.item.pool.log_bytes)?.ok()
}

/// As [`capacity_bytes`], with a log of this size, or why the pool can't be made. The file does not
/// say whether the pool was there before its log group. So without a size both defaults are tried,
/// with the group and without, and the one that leaves more room counts.
pub(crate) fn planned(
    rows: &Rows,
    pool: &Row<PoolRow>,
    log_bytes: Option<u64>,
) -> Option<Result<u64, PoolError>> {
    let mut groups = Vec::new();
    for group in described(pool) {
        groups.push(shape(rows, &group)?);
    }
    let item = &pool.item.pool;
    let (first, ..) = *groups.first()?;
    let mut spec = PoolSpec::new(&item.name, first.level);
    spec.stripe_unit_bytes = item.stripe_unit_bytes;
    spec.page_bytes = item.page_bytes;
    spec.log_bytes = log_bytes;
    spec.log_group = item.log_group();
    let planned = planned_capacity_bytes(&spec, item.lanes, &groups);
    let (Ok(bytes), None, Some(log)) = (&planned, log_bytes, spec.log_group.take()) else {
        return Some(planned);
    };
    // A pool that is older than its log group has a smaller log, and more room for data.
    groups.remove(log);
    let before = planned_capacity_bytes(&spec, item.lanes, &groups);
    Some(before.map(|before| before.max(*bytes)).or(planned))
}

/// Protection, number of drives and capacity of the smallest.
fn shape(rows: &Rows, group: &Described<'_>) -> Option<(Protection, usize, u64)> {
    group.line.filter(|_| group.level_known)?;
    let of = group.group.protection();
    let mut smallest = u64::MAX;
    for name in &group.group.drives {
        let drive = rows
            .drives
            .iter()
            .find(|row| row.item.drive.name == *name)?;
        drive.line("size")?;
        match &drive.item.drive.source {
            DriveSource::File { size_bytes, .. } => smallest = smallest.min(*size_bytes),
            DriveSource::Device { .. } => return None,
        }
    }
    Some((of, group.group.drives.len(), smallest))
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
        let luns = export.item.luns.len();
        // A list that is wrong itself was told of when it was read.
        let is_told = export.line("volumes").is_none();
        if let Some(line) = export.line("luns").filter(|_| !is_told && luns != count) {
            let allowed = format!("one for each volume: {}", plural(count, "LUN"));
            push(found, line, "export.luns", plural(luns, "LUN"), allowed);
        }
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
    }
}

fn vms(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let vms = &rows.vms;
    unique(vms, "vm", "name", |v| Some(v.vm.name.clone()), found);
    unique(vms, "vm", "target", |v| Some(v.vm.target.clone()), found);
    for vm in vms {
        let Some(line) = vm.line("target") else {
            continue;
        };
        let target = &vm.item.vm.target;
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
    let Some(ApiAddress::Tcp(listen)) = &rows.api.listen else {
        return;
    };
    for portal in &rows.portals {
        if let Some(line) = portal.line("address")
            && portal.item.address == *listen
            && listen.port() != 0
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
