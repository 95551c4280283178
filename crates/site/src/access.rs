//! Reads hosts, host groups, CHAP accounts, and the access rules of exports.

use crate::diagnostic::{Diagnostic, Lines};
use crate::hardware;
use crate::names::{NAME_RULE, is_initiator_name, is_name};
use crate::read::{HostRow, Rows, name};
use crate::references::{one_of, push, unique};
use crate::secret::{CHAP_NAME_RULE, ChapAccount, Credential, SECRET_RULE, Secret, is_chap_name};
use crate::table::{Row, TableReader};
use crate::types::{Chap, ChapAlgorithm, Host, HostGroup};
use std::collections::BTreeMap;

/// What names an initiator, for messages.
pub(crate) const INITIATOR_RULE: &str = "an iSCSI name (iqn., eui. or naa.), in lower case";

/// Reads `[[host]]`.
pub(crate) fn host(mut reader: TableReader<'_, '_>) -> Row<HostRow> {
    let name = name(&mut reader, "name");
    let initiators = reader.list_if_there("initiators", INITIATOR_RULE, is_initiator_name);
    let chap = account(&mut reader, "chap", "host.chap");
    let machine = hardware::machine(&mut reader);
    let host = Host {
        name,
        initiators: initiators.unwrap_or_default(),
        chap,
    };
    reader.finish(HostRow { host, machine })
}

/// Reads `[[host_group]]`.
pub(crate) fn host_group(mut reader: TableReader<'_, '_>) -> Row<HostGroup> {
    let name = name(&mut reader, "name");
    let hosts = reader.list("hosts", &format!("a host's name, {NAME_RULE}"), is_name);
    reader.finish(HostGroup {
        name,
        hosts: hosts.unwrap_or_default(),
    })
}

/// Names under `key` that may be absent.
pub(crate) fn names(
    reader: &mut TableReader<'_, '_>,
    key: &'static str,
    what: &str,
) -> Vec<String> {
    match reader.line_of(key) {
        Some(_) => reader.list(key, &format!("{what}, {NAME_RULE}"), is_name),
        None => reader.optional(key, "", |_| None),
    }
    .unwrap_or_default()
}

/// Reads `[chap]`.
///
/// Beside it the line of its account, for messages.
pub(crate) fn chap(file: &mut TableReader<'_, '_>, lines: &Lines) -> (Chap, usize) {
    let Some((line, table)) = file.table_of_secrets("chap") else {
        return (Chap::default(), 1);
    };
    let mut reader = TableReader::new("chap", line, table, lines, file.found());
    let known = |text: &str| {
        ChapAlgorithm::ALL
            .into_iter()
            .find(|one| one.as_str() == text)
    };
    let algorithms = match reader.line_of("algorithms") {
        Some(_) => {
            let rule = "\"SHA3-256\", \"SHA-256\", \"SHA-1\" or \"MD5\"";
            reader.list("algorithms", rule, |text| known(text).is_some())
        }
        None => reader.optional("algorithms", "", |_| None),
    };
    let discovery = account(&mut reader, "discovery", "chap.discovery");
    let algorithms = algorithms.map(|names| names.iter().filter_map(|name| known(name)).collect());
    let row = reader.finish(Chap {
        algorithms: algorithms.unwrap_or_else(|| ChapAlgorithm::ALL.to_vec()),
        discovery,
    });
    let line = row.line_of_table("discovery");
    (row.item, line)
}

/// Reads `key = { name, secret, mutual_name, mutual_secret }`.
pub(crate) fn account(
    reader: &mut TableReader<'_, '_>,
    key: &'static str,
    table: &'static str,
) -> Option<ChapAccount> {
    let found = reader.table_of_secrets(key)?;
    let mut reader = reader.nested(table, found);
    let text = |reader: &mut TableReader<'_, '_>, key| {
        reader.optional(key, CHAP_NAME_RULE, |value| {
            value
                .as_str()
                .filter(|name| is_chap_name(name))
                .map(str::to_owned)
        })
    };
    let is_mutual = ["mutual_name", "mutual_secret"].map(|key| reader.line_of(key).is_some());
    let header = reader.header_line();
    for (key, rule, needed) in [
        ("name", CHAP_NAME_RULE, true),
        ("secret", SECRET_RULE, true),
        ("mutual_name", CHAP_NAME_RULE, is_mutual[1]),
        ("mutual_secret", SECRET_RULE, is_mutual[0]),
    ] {
        if needed && reader.line_of(key).is_none() {
            reader.report(header, key, "nothing".to_owned(), rule);
        }
    }
    let name = text(&mut reader, "name");
    let secret = reader.secret("secret", SECRET_RULE);
    let mutual_name = text(&mut reader, "mutual_name");
    let mutual_secret = reader.secret("mutual_secret", SECRET_RULE);
    if let (Some(one), Some(other), Some(line)) =
        (&secret, &mutual_secret, reader.line_of("mutual_secret"))
        && one == other
    {
        let found = "the same as secret".to_owned();
        reader.report(
            line,
            "mutual_secret",
            found,
            "another secret: who knows it could \
            answer its own challenges",
        );
    }
    let credential = |name: Option<String>, secret: Option<Secret>| {
        let (name, secret) = (name?, secret?);
        Some(Credential { name, secret })
    };
    let account = credential(name, secret).map(|initiator| ChapAccount {
        initiator,
        mutual: credential(mutual_name, mutual_secret),
    });
    reader.finish(account).item
}

/// Checks what hosts, groups and exports say of each other.
pub(crate) fn check(rows: &Rows, found: &mut Vec<Diagnostic>) {
    unique(
        &rows.hosts,
        "host",
        "name",
        |row| Some(row.host.name.clone()),
        found,
    );
    unique(
        &rows.host_groups,
        "host_group",
        "name",
        |group| Some(group.name.clone()),
        found,
    );
    host_initiators(rows, found);
    let hosts = || rows.hosts.iter().map(|row| row.item.host.name.as_str());
    let groups = || rows.host_groups.iter().map(|row| row.item.name.as_str());
    for row in &rows.host_groups {
        named(
            row,
            "hosts",
            ("host_group.hosts", "host"),
            &row.item.hosts,
            &hosts,
            found,
        );
    }
    for row in &rows.exports {
        named(
            row,
            "hosts",
            ("export.hosts", "host"),
            &row.item.hosts,
            &hosts,
            found,
        );
        let key = ("export.host_groups", "host_group");
        named(
            row,
            "host_groups",
            key,
            &row.item.host_groups,
            &groups,
            found,
        );
    }
    export_portals(rows, found);
    shared_secrets(rows, found);
}

/// Names that a list has, and nothing is called by.
fn named<'a, T, N: Iterator<Item = &'a str>>(
    row: &Row<T>,
    list: &'static str,
    (key, what): (&str, &str),
    names: &[String],
    there: &impl Fn() -> N,
    found: &mut Vec<Diagnostic>,
) {
    for (index, name) in names.iter().enumerate() {
        if !there().any(|one| one == name) {
            let line = row.element_line(list, index);
            let which = format!("{name:?}, which no {what} has");
            push(found, line, key, which, one_of(what, there()));
        }
    }
}

/// Of two hosts with the same initiator, which one would it be?
fn host_initiators(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let mut hosts: BTreeMap<&str, &str> = BTreeMap::new();
    for row in &rows.hosts {
        for (index, initiator) in row.item.host.initiators.iter().enumerate() {
            if let Some(other) = hosts.insert(initiator, &row.item.host.name) {
                let line = row.element_line("initiators", index);
                let what = format!("{initiator:?}, which host {other:?} has already");
                let allowed = "an initiator of no other host".to_owned();
                push(found, line, "host.initiators", what, allowed);
            }
        }
    }
}

fn export_portals(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let portals = || rows.portals.iter().map(|row| row.item.address);
    for row in &rows.exports {
        for (index, address) in row.item.portals.iter().enumerate() {
            if !portals().any(|portal| portal == *address) {
                let line = row.element_line("portals", index);
                let addresses: Vec<String> = portals().map(|portal| portal.to_string()).collect();
                let allowed = format!("the address of a portal (such as {})", addresses.join(", "));
                let what = format!("\"{address}\", which no portal has");
                push(found, line, "export.portals", what, allowed);
            }
        }
    }
}

/// A secret that proves an initiator may not prove us anywhere, or the other way around
/// (RFC 7143 clause 9.2.1).
fn shared_secrets(rows: &Rows, found: &mut Vec<Diagnostic>) {
    let of_hosts = rows.hosts.iter().map(|row| {
        let line = row.line_of_table("chap");
        (line, "host.chap.mutual_secret", row.item.host.chap.as_ref())
    });
    let of_exports = rows.exports.iter().map(|row| {
        let line = row.line_of_table("chap");
        (line, "export.chap.mutual_secret", row.item.chap.as_ref())
    });
    let discovery = rows.chap.0.discovery.as_ref();
    let of_discovery = (rows.chap.1, "chap.discovery.mutual_secret", discovery);
    let all = || {
        of_hosts
            .clone()
            .chain(of_exports.clone())
            .chain([of_discovery])
    };
    for (line, key, account) in all() {
        let Some(account) = account else { continue };
        let Some(mutual) = &account.mutual else {
            continue;
        };
        // Its own was looked at when it was read.
        let shares = |other: &ChapAccount| {
            other.initiator.secret == mutual.secret && account.initiator.secret != mutual.secret
        };
        if all().any(|(_, _, other)| other.is_some_and(shares)) {
            let what = "a secret that proves an initiator elsewhere".to_owned();
            let allowed = "one that proves the target only".to_owned();
            push(found, line, key, what, allowed);
        }
    }
}
