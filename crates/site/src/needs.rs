//! What serving and rehearsing need beside what each table needs for itself.
//!
//! A file may have more than either needs: what is only modelled is ignored by who serves.

use crate::access::INITIATOR_RULE;
use crate::diagnostic::Diagnostic;
use crate::hardware::MACHINE_KEYS;
use crate::read::{HostRow, LEVEL_RULE, PoolRow, Rows, drives_rule};
use crate::references::push;
use crate::table::Row;

/// What is missing to serve the array of `rows`.
pub(crate) fn to_serve(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for (table, count) in [
        ("portal", rows.portals.len()),
        ("drive", rows.drives.len()),
        ("pool", rows.pools.len()),
    ] {
        if count == 0 && !rows.file.has(table) {
            missing(found, 1, table, format!("one or more tables [[{table}]]"));
        }
    }
    for pool in &rows.pools {
        names_drives(pool, found);
        names_spares(pool, found);
    }
    for host in &rows.hosts {
        has_initiators(rows, host, found);
    }
}

/// What is missing to rehearse the site of `rows`.
pub(crate) fn to_rehearse(rows: &Rows, found: &mut Vec<Diagnostic>) {
    to_model(rows, found);
    let load = rows.hardware.vm_groups.len() + rows.vms.len();
    if load == 0 && !is_told(found, &["vm_group", "vm", "block"]) {
        let rule = "the load: one or more tables [[vm_group]] with a profile, or [[vm]] with the \
                    profile and role of a VM";
        missing(found, 1, "vm_group", rule.to_owned());
    }
}

/// What is missing to model its hardware. What it does not say is assumed.
pub(crate) fn to_model(rows: &Rows, found: &mut Vec<Diagnostic>) {
    // An empty list is none. What is no list of tables was told of when it was read.
    if rows.pools.is_empty() && !is_told(found, &["pool"]) {
        missing(found, 1, "pool", "one or more tables [[pool]]".to_owned());
    }
    let drives = rows.drives.len() + rows.hardware.lots.len();
    if drives == 0 && !is_told(found, &["drive", "drives"]) {
        let rule = "one or more tables [[drive]], or lots of drives [[drives]]";
        missing(found, 1, "drive", rule.to_owned());
    }
}

/// Whether one of `keys` was told of already.
fn is_told(found: &[Diagnostic], keys: &[&str]) -> bool {
    found.iter().any(|one| keys.contains(&one.key.as_str()))
}

fn missing(found: &mut Vec<Diagnostic>, line: usize, key: &str, allowed: String) {
    push(found, line, key, "nothing".to_owned(), allowed);
}

/// A pool that is served names its drives.
fn names_drives(pool: &Row<PoolRow>, found: &mut Vec<Diagnostic>) {
    if !pool.has("groups") || pool.has("drives") {
        return;
    }
    let line = pool.header_line();
    if !pool.has("level") {
        missing(found, line, "pool.level", LEVEL_RULE.to_owned());
    }
    let rule = format!("a list of: {} (groups are rehearsed only)", drives_rule());
    missing(found, line, "pool.drives", rule);
}

/// And its spares.
fn names_spares(pool: &Row<PoolRow>, found: &mut Vec<Diagnostic>) {
    if pool.has("drives") && !pool.item.modelled.spares.is_empty() {
        let rule = format!("a list of: {}", drives_rule());
        let what = "spares out of a lot, which are rehearsed only".to_owned();
        push(found, pool.header_line(), "pool.spares", what, rule);
    }
}

/// A host that exports and groups admit has initiators; another may only be modelled.
fn has_initiators(rows: &Rows, host: &Row<HostRow>, found: &mut Vec<Diagnostic>) {
    let name = &host.item.host.name;
    let of_exports = rows.exports.iter().map(|row| &row.item.hosts);
    let of_groups = rows.host_groups.iter().map(|row| &row.item.hosts);
    let is_admitted = of_exports
        .chain(of_groups)
        .any(|hosts| hosts.contains(name));
    // A host that is only modelled is not served, and its account would be lost.
    let is_modelled = host.has_any(&MACHINE_KEYS) && !host.has("chap");
    if !host.has("initiators") && (is_admitted || !is_modelled) {
        let rule = format!("a list of: {INITIATOR_RULE}");
        missing(found, host.header_line(), "host.initiators", rule);
    }
}
