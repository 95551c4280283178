//! What is rehearsed of a site file: hardware, layout, VMs, events and variants.
//!
//! [`load`] reads a file and gives a [`Described`] that keeps every rule that can be told
//! from the file alone, or a [`SiteError`] with *all* that is wrong, each with file, line,
//! key, what was found and what is allowed. Names of models and workloads are looked up by
//! whoever has those; every item has its line for that.
//!
//! Invariants of a [`Plan`]: names are unique and lead somewhere; a lot has as many drives
//! as are taken from it; a level can have the drives of its groups; networks make no loop;
//! hosts reach the controllers of their VM groups.

mod assumed;
mod check;
mod drive_model;
mod profile;
mod resolve;
mod types;
mod variants;
mod vms;

pub use drive_model::{DriveModel, MeasuredCommands, MeasuredCurve};
pub use profile::{Capture, Measured, MeasuredFlow, Profile, Stream};
pub use types::{
    Adapter, Assumption, Balance, Bus, Carries, Controller, Costs, DriveShare, Event, Groups,
    Happening, HostCopy, Initiator, Layout, Lot, Luns, Machine, Method, Migration, Network,
    NetworkKind, Placement, Plan, Ports, Run, TRACE, Uplink, VmGroup,
};

use crate::diagnostic::{Diagnostic, Lines, SiteError};
use crate::hardware;
use crate::read::Rows;
use crate::secret::NOT_SHOWN_TOLD;
use crate::{needs, read, references};
use std::path::Path;

/// What a file describes: a site, and the same site with one thing changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// As it stands in the file.
    pub base: Plan,
    /// `[[variant]]` and `[[vary]]`, in the order of the file.
    pub variants: Vec<Variant>,
    /// Variants that settings have made impossible, and why; none without settings.
    pub impossible: Vec<Diagnostic>,
}

/// The site with something changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// What people call it; unique in the file.
    pub name: String,
    /// Where the file asks for it.
    pub line: usize,
    /// The whole site as it is then. Its lines are not those of the file.
    pub plan: Plan,
}

/// A change of one key: where, and to what (TOML).
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Such as `pool.data.groups.0.level`: table, name, key.
    pub key: String,
    /// The value that replaces that of the file.
    pub value: toml::Value,
}

impl Setting {
    /// Reads `KEY=VALUE`; a value that is no TOML is text.
    ///
    /// # Errors
    /// A sentence when there is no `=`.
    pub fn parse(text: &str) -> Result<Setting, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!(
                "{text:?} is no setting: write KEY=VALUE, such as network.san.mtu=9000"
            ));
        };
        let document = format!("value = {value}");
        let parsed = toml::from_str::<toml::Table>(&document).ok();
        let parsed = parsed.and_then(|mut table| table.remove("value"));
        Ok(Setting {
            key: key.trim().to_owned(),
            value: parsed.unwrap_or_else(|| toml::Value::String(value.trim().to_owned())),
        })
    }
}

/// Tables that only serving needs.
const SERVED: [&str; 5] = ["portal", "export", "volume", "api", "images"];

/// Keys that are only modelled, of tables that are served.
const MODELLED: [(&str, &[&str]); 3] = [
    ("drive", &["model", "bus"]),
    ("pool", &["controller", "groups"]),
    ("host", &hardware::MACHINE_KEYS),
];

/// Tables that give a load.
const LOADS: [&str; 2] = ["vm_group", "vm"];

/// What a file says: whether it has tables that only serving needs, tables and keys that are only
/// modelled, and a load. A file may have all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purposes {
    /// Portals, volumes, exports and the like.
    pub served: bool,
    /// Hardware, VM groups, events and the like.
    pub modelled: bool,
    /// VM groups or VMs, without which there is nothing to rehearse.
    pub loaded: bool,
}

/// What `text` says; nothing where it is no TOML.
pub fn purposes(text: &str) -> Purposes {
    let Ok(document) = toml::de::DeTable::parse(text) else {
        return Purposes::default();
    };
    let has = |tables: &[&str]| {
        let mut tables = tables.iter();
        tables.any(|table| document.get_ref().get(*table).is_some())
    };
    Purposes {
        served: has(&SERVED),
        modelled: has(&hardware::TABLES) || says_hardware(document.get_ref()),
        loaded: has(&LOADS),
    }
}

/// Whether a table that is served has a key that is only modelled.
fn says_hardware(document: &toml::de::DeTable<'_>) -> bool {
    MODELLED.iter().any(|(table, keys)| {
        let all = document
            .get(*table)
            .and_then(|all| all.get_ref().as_array());
        let tables = all.into_iter().flat_map(|all| all.iter());
        let mut tables = tables.filter_map(|one| one.get_ref().as_table());
        tables.any(|one| keys.iter().any(|key| one.get(*key).is_some()))
    })
}

/// Reads and checks the hardware of the file at `path`, whose load it does not need. The plan has
/// VM groups only where the file has.
///
/// # Errors
/// As [`crate::load`].
pub fn load_hardware(path: &Path) -> Result<Plan, SiteError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| SiteError::unreadable(path, &error))?;
    let plan = with_needs(&text, needs::to_model);
    plan.map_err(|found| SiteError::invalid(&path.display().to_string(), found))
}

/// Checks the models of drives of the file at `path`, which may have nothing else.
///
/// # Errors
/// As [`crate::load`].
pub fn check_drive_models(path: &Path) -> Result<(), SiteError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| SiteError::unreadable(path, &error))?;
    let of_models = |one: &Diagnostic| one.key.starts_with("drive_model");
    let found: Vec<Diagnostic> = match read::rows(&text) {
        Ok((_, found)) => found.into_iter().filter(of_models).collect(),
        Err(found) => found,
    };
    match found.is_empty() {
        true => Ok(()),
        false => Err(SiteError::invalid(&path.display().to_string(), found)),
    }
}

/// Reads and checks the file at `path`, with `settings` made in it first.
///
/// # Errors
/// As [`crate::load`].
pub fn load(path: &Path, settings: &[Setting]) -> Result<Described, SiteError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| SiteError::unreadable(path, &error))?;
    parse(&path.display().to_string(), &text, settings)
}

/// Checks a text; `file` is its name in messages.
///
/// # Errors
/// [`crate::SiteErrorKind::Invalid`] with every diagnostic.
pub fn parse(file: &str, text: &str, settings: &[Setting]) -> Result<Described, SiteError> {
    let invalid = |found| SiteError::invalid(file, found);
    let base = one(text).map_err(invalid)?;
    let document = match text.parse::<toml::Table>() {
        Ok(document) => document,
        Err(error) => return Err(invalid(vec![Lines::of(text).syntax(&error)])),
    };
    let (document, base) = match settings {
        [] => (document, base),
        settings => variants::changed(&document, settings).map_err(|what| {
            let allowed = "a key of the site file, and a value that it may have".to_owned();
            invalid(vec![Diagnostic {
                line: 1,
                key: "--set".to_owned(),
                found: what,
                allowed,
            }])
        })?,
    };
    let (variants, impossible) = variants::variants(text, &document);
    match settings.is_empty() && !impossible.is_empty() {
        true => Err(invalid(impossible)),
        false => Ok(Described {
            base,
            variants,
            impossible,
        }),
    }
}

/// The plan of one text, without its variants.
fn one(text: &str) -> Result<Plan, Vec<Diagnostic>> {
    with_needs(text, needs::to_rehearse)
}

fn with_needs(text: &str, needs: fn(&Rows, &mut Vec<Diagnostic>)) -> Result<Plan, Vec<Diagnostic>> {
    let (rows, mut found) = read::rows(text)?;
    // Nobody logs in to a rehearsal: it needs no secrets.
    found.retain(|one| one.found != NOT_SHOWN_TOLD);
    needs(&rows, &mut found);
    if found.is_empty() {
        references::check(&rows, &mut found);
    }
    if !found.is_empty() {
        return Err(found);
    }
    let resolved = resolve::resolve(&rows, &mut found);
    check::check(&resolved, &mut found);
    match found.is_empty() {
        true => Ok(resolved.plan),
        false => Err(found),
    }
}
