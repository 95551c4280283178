//! What there is to say of hosts and exports, field by field; and how two of them differ, for people.
//!
//! Invariant: a secret is compared, and never shown.

use crate::control::Export;
use crate::directory;
use crate::site_file::{Action, Difference};
use iscsi::chap::Account;
use std::collections::BTreeSet;
use std::fmt::Display;

/// What there is to say of something: the field's word, and what is so.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// What is compared, and how it is shown: secrets are compared only.
#[derive(PartialEq, Eq)]
pub(super) struct Value {
    shown: String,
    secret: Vec<u8>,
}

fn shown(text: impl Display) -> Value {
    Value {
        shown: text.to_string(),
        secret: Vec::new(),
    }
}

pub(super) fn joined(names: &BTreeSet<String>) -> Value {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.is_empty() {
        true => shown("none"),
        false => shown(names.join(", ")),
    }
}

pub(super) fn of_account(account: Option<&Account>) -> Value {
    let Some(account) = account else {
        return shown("none");
    };
    let mutual = account.mutual.as_ref();
    let by_us = mutual.map_or(String::new(), |ours| format!(", mutual {}", ours.name));
    let secrets = std::iter::once(&account.initiator).chain(mutual);
    Value {
        shown: format!("{}{by_us}", account.initiator.name),
        // With their lengths, so that no two pairs are alike.
        secret: secrets
            .flat_map(|one| {
                let bytes = one.secret.bytes();
                [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat()
            })
            .collect(),
    }
}

pub(super) fn of_export(export: &Export) -> Fields {
    let mut said = vec![("volumes", shown(export.volumes.join(", ")))];
    if export.luns != site::Export::usual_luns(export.volumes.len()) {
        let luns: Vec<String> = export.luns.iter().map(ToString::to_string).collect();
        said.push(("LUNs", shown(luns.join(", "))));
    }
    said.extend(of_access(export));
    said.push((
        "physical block bytes",
        shown(export.traits.physical_block_bytes.unwrap_or(4096)),
    ));
    said
}

pub(super) fn of_access(export: &Export) -> Fields {
    let access = &export.access;
    let portals = access.portals.iter().flatten();
    let portals: BTreeSet<String> = portals.map(ToString::to_string).collect();
    vec![
        (
            "initiators",
            match &access.initiators {
                directory::Initiators::Any => shown("any"),
                directory::Initiators::Named(names) => joined(names),
            },
        ),
        ("hosts", joined(&access.hosts)),
        ("host groups", joined(&access.host_groups)),
        ("CHAP", of_account(access.account.as_deref())),
        (
            "portals",
            match access.portals {
                None => shown("all"),
                Some(_) => joined(&portals),
            },
        ),
        ("SANITIZE", allowed(export.traits.may_sanitize)),
        ("affecting others", allowed(export.traits.may_affect_others)),
    ]
}

fn allowed(is_allowed: bool) -> Value {
    shown(if is_allowed { "allowed" } else { "none" })
}

pub(super) fn create(what: String, says: &Fields) -> Difference {
    let is_said = |(_, value): &&(&str, Value)| value.shown != "none";
    let parts = says.iter().filter(is_said);
    let parts: Vec<String> = parts
        .map(|(name, value)| format!("{name} {}", value.shown))
        .collect();
    Difference {
        action: Action::Create,
        what,
        how: parts.join("; "),
    }
}

pub(super) fn keep(what: String) -> Difference {
    Difference {
        action: Action::Keep,
        what,
        how: "is not in the site file".to_owned(),
    }
}

pub(super) fn changed(what: String, is: Fields, says: Fields) -> Option<Difference> {
    let differs = is.iter().zip(&says).any(|(is, says)| is != says);
    differs.then(|| Difference {
        action: Action::Change,
        what,
        how: told(&is, &says),
    })
}

/// What differs, for people.
pub(super) fn told(is: &[(&'static str, Value)], says: &[(&'static str, Value)]) -> String {
    let both = is.iter().zip(says).filter(|(is, says)| is != says);
    let lines = both.map(|((name, is), (_, says))| match is.shown == says.shown {
        true => format!("{name} {}: another secret", is.shown),
        false => format!("{name} {} becomes {}", is.shown, says.shown),
    });
    lines.collect::<Vec<_>>().join("; ")
}
