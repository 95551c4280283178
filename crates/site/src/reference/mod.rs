//! The reference of the site file, key by key, as `docs/reference/site-file.md` has it.
//!
//! Invariants:
//! - Values that a key takes are those that the reader's own messages name.
//! - Every key that the reader knows is described here, and no other (a test compares them).

mod keys;
mod loads;
mod modelled;

use crate::diagnostic::Diagnostic;
use keys::{Key, SERVED, Section};
use loads::LOADS;
use modelled::MODELLED;

/// A value that no key takes, so that the reader says which ones it takes.
const WRONG: &str = "1979-05-27";
/// A key that no table has, so that the reader says which ones it has.
const UNKNOWN: &str = "unknown-key";

const HEAD: &str = "\
# Site file

This page is for administrators who write a site file. It lists every table and key.

A site file is TOML. It describes an array: drives, pools, volumes, exports and settings. The first
`ashlar serve --site FILE` creates what the file describes. Later, `ashlar site diff FILE` compares the
file with the running array, and `ashlar site apply FILE` applies it. `ashlar site check FILE` checks
a file, and names the line and the key of each mistake.

The same file can say which hardware the array, its hosts and its networks have, and which load its VMs
are. `ashlar rehearse FILE` and `ashlar plan FILE` use that. The array ignores it. [Rehearsed
sites](plans.md) says what a rehearsal assumes if the file does not say it.

Sizes have a unit: `\"40 GiB\"`, `\"40G\"` (the same), or `\"40 GB\"` (decimal). Times have one, too:
`\"30 s\"`, `\"15 min\"`, `\"24 h\"`, `\"7 d\"`.

`make docs` writes this page. A test compares it with the program.
";

impl Section {
    /// A file with this table alone, in which each of its keys has a wrong value.
    fn probe(&self) -> String {
        let names = self.keys.iter().map(|key| key.name).chain([UNKNOWN]);
        let values: Vec<String> = names.map(|name| format!("{name} = {WRONG}")).collect();
        let Some((outer, key, is_list)) = self.inside else {
            return format!("{}\n{}\n", self.heading, values.join("\n"));
        };
        let table = format!("{{ {} }}", values.join(", "));
        match is_list {
            true => format!("{outer}\n{key} = [{table}]\n"),
            false => format!("{outer}\n{key} = {table}\n"),
        }
    }

    /// What the reader says of that.
    fn said(&self) -> Vec<Diagnostic> {
        match crate::parse("site.toml", &self.probe()) {
            Ok(_) => Vec::new(),
            Err(error) => error.diagnostics,
        }
    }
}

/// What the reader takes for a key.
fn allowed(section: &Section, key: &Key, said: &[Diagnostic]) -> String {
    let name = format!("{}.{}", section.name, key.name);
    let found = said.iter().find(|one| one.key == name);
    found.map_or_else(String::new, |one| one.allowed.clone())
}

/// The heading of the tables that are only modelled.
const MODELLED_HEAD: &str = "\
## Hardware and load

Only a rehearsal uses the tables that follow. The array reads them and ignores them.
";

/// Tables whose keys are settings: a running array changes them.
const SETTINGS: [&str; 5] = ["site", "api", "images", "chap", "limits"];

/// The key of `[site]` that only reports of rehearsals use.
pub(crate) const ABOUT: &str = "about";

/// Every setting as `table.key`, with its default in words. Accounts are no settings.
pub fn settings() -> Vec<(String, &'static str)> {
    let of = SERVED
        .iter()
        .filter(|section| section.inside.is_none() && SETTINGS.contains(&section.name));
    let named = of.flat_map(|section| {
        let keys = section.keys.iter();
        let keys = keys.filter(|key| !["discovery", ABOUT].contains(&key.name));
        keys.map(|key| (format!("{}.{}", section.name, key.name), key.default))
    });
    named.collect()
}

/// The page, as Markdown.
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    SERVED
        .iter()
        .for_each(|section| describe(section, &mut text));
    text += &format!("\n{MODELLED_HEAD}");
    MODELLED
        .iter()
        .chain(LOADS)
        .for_each(|section| describe(section, &mut text));
    text
}

/// Describes a table.
fn describe(section: &Section, text: &mut String) {
    *text += &format!("\n## `{}`\n\n{}\n", section.heading, section.about);
    if section.keys.is_empty() {
        return;
    }
    let said = section.said();
    *text += "\n| Key | Meaning | Default | Values |\n|---|---|---|---|\n";
    for key in section.keys {
        let values = allowed(section, key, &said).replace('|', "\\|");
        let (name, about, default) = (key.name, key.about, key.default);
        *text += &format!("| `{name}` | {about} | {default} | {values} |\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_is_described_and_no_other() {
        // What variants have is read elsewhere.
        let all = SERVED.iter().chain(MODELLED).chain(LOADS);
        for section in all.filter(|section| !section.keys.is_empty()) {
            let said = section.said();
            let unknown = format!("{}.{UNKNOWN}", section.name);
            let unknown = said.iter().find(|one| one.key == unknown).unwrap();
            let known: BTreeSet<&str> = unknown.allowed.split(", ").collect();
            let described: BTreeSet<&str> = section.keys.iter().map(|key| key.name).collect();
            assert_eq!(described, known, "{}", section.heading);
            for key in section.keys {
                let values = allowed(section, key, &said);
                assert!(!values.is_empty(), "{}.{}", section.name, key.name);
            }
        }
    }

    #[test]
    fn every_table_is_described_and_no_other() {
        let error = crate::parse("site.toml", "unknown-key = 1").unwrap_err();
        let unknown = error.diagnostics.iter().find(|one| one.key == UNKNOWN);
        let known: BTreeSet<&str> = unknown.unwrap().allowed.split(", ").collect();
        let all = SERVED.iter().chain(MODELLED).chain(LOADS);
        let tables = all.filter(|section| section.inside.is_none());
        let described: BTreeSet<&str> = tables.map(|section| section.name).collect();
        assert_eq!(described, known);
    }

    #[test]
    fn the_page_is_what_the_reader_takes() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/site-file.md"
        );
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == reference(),
            "docs/reference/site-file.md is old: run `make docs`"
        );
    }
}
