//! Inside a crate, modules stand on those below them: no arrow upwards, and so no circle.
//!
//! A module is the first part of a path in the crate: `pool` is `src/pool.rs`, and all of
//! `src/pool/`. What its unit tests use is no arrow of the module. `lib.rs` names them all, and
//! is no module.

use crate::source::code_lines;
use crate::{Complaint, File, Tree};
use std::collections::BTreeSet;

/// A crate, and its modules from the ground up.
pub const FLOORS: [(&str, &[&str]); 5] = [
    (
        "engine",
        &[
            // Seams and codec.
            "drive",
            "world",
            "codec",
            "group_commit",
            "range_lock",
            "rare",
            "error",
            // RAID's arithmetic, and where things lie on a drive.
            "raid",
            "layout",
            "label",
            // What the lanes of a pool share, and the drives of one.
            "lane",
            "drives",
            // Logs, metadata, sums, blocks, pages.
            "ring",
            "meta",
            "integrity",
            "cache",
            "pages",
            "store",
            // Volumes, and pools of them.
            "volume_io",
            "space",
            "volume",
            "pool",
            // Those that look at drives without a pool.
            "salvage",
            "fsck",
        ],
    ),
    (
        "array",
        &[
            "wake",
            "calendar",
            "stream",
            "directory",
            "shard",
            "error",
            "pool",
            "offload",
            "memory",
            "connection",
            "front",
            "control",
        ],
    ),
    ("iscsi", &["pdu", "text", "chap", "login", "connection"]),
    (
        "rehearse",
        &[
            "error", "parts", "plan", "rig", "timeline", "run", "search", "findings", "advice",
            "report",
        ],
    ),
    (
        "server",
        &[
            // What asks nobody of ours.
            "panics",
            "private",
            "wall_clock",
            "machine_memory",
            "overcommitment",
            "blank",
            // The threads of the data path.
            "shard",
            "offload",
            // Files: records, drives, the data directory.
            "record",
            "own_files",
            "bring_up_error",
            "drive_files",
            "data_dir",
            // The portals; which jobs there are; the array over all shards.
            "front",
            "runtime",
            "jobs",
            "array",
            // Those that work on the array.
            "images",
            "openings",
            "apply",
            "api",
            // Starts and stops all of them.
            "bringup",
        ],
    ),
];

/// Complains about a module that uses one above it, or that has no floor.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (room, floors) in FLOORS {
        let source = format!("crates/{room}/src/");
        let files = tree.rust().filter_map(|file| {
            let inside = file.path.strip_prefix(&source)?;
            (inside != "lib.rs" && inside != "main.rs").then_some((file, module_path(inside)))
        });
        let files: Vec<(File<'_>, Vec<String>)> = files.collect();
        let of_tests: BTreeSet<Vec<String>> = files
            .iter()
            .flat_map(|(file, path)| files_of_tests(file.text, path))
            .collect();
        for (file, path) in files {
            if (1..=path.len()).any(|len| of_tests.contains(&path[..len])) {
                continue;
            }
            let Some(own) = path.first().map(String::as_str) else {
                continue;
            };
            let Some(floor) = floors.iter().position(|known| *known == own) else {
                let what =
                    format!("{room}::{own} has no floor: add it in tests/tidy/src/floors.rs");
                complaints.push(Complaint::at(file.path, 0, what));
                continue;
            };
            let upwards = used(file.text, &path).into_iter().filter(|(_, other)| {
                let other = floors.iter().position(|known| known == other);
                other.is_some_and(|other| other > floor)
            });
            complaints.extend(upwards.map(|(line, other)| {
                let what = format!("{own} may not use {other}: in {room} that is above it");
                Complaint::at(file.path, line, what)
            }));
        }
    }
    complaints
}

/// The modules that lead to a file, from the crate's root on.
fn module_path(inside: &str) -> Vec<String> {
    let stem = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    stem.split('/').map(str::to_owned).collect()
}

/// The modules in files of their own that the file at `path` has for unit tests.
fn files_of_tests(text: &str, path: &[String]) -> Vec<Vec<String>> {
    let lines = code_lines(text);
    let names = lines.windows(2).filter_map(|pair| {
        let declared = test_module(pair)?.strip_suffix(';')?;
        Some([path, &[declared.to_owned()]].concat())
    });
    names.collect()
}

/// The module that a line declares, by its name and what follows, if the line before says that it
/// is for unit tests.
fn test_module(pair: &[String]) -> Option<&str> {
    let declared = pair[1].trim().trim_start_matches("pub(crate) ");
    let name = declared.strip_prefix("mod ")?;
    (pair[0].trim() == "#[cfg(test)]").then_some(name)
}

/// Top modules of the crate that the file at `path` names, with their lines.
fn used(text: &str, path: &[String]) -> Vec<(usize, String)> {
    let lines = code_lines(text);
    let is_here = |pair: &[String]| test_module(pair).is_some_and(|name| name.ends_with('{'));
    let end = lines.windows(2).position(is_here);
    let code = lines[..end.unwrap_or(lines.len())].join("\n");
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            for name in tops(&code[at..], path) {
                found.push((line, name));
            }
        }
    }
    found
}

/// The top modules that a path, or a group of paths in braces, leads to.
fn tops(written: &str, path: &[String]) -> Vec<String> {
    if let Some(rest) = written.strip_prefix("crate::") {
        return heads(rest);
    }
    let (mut rest, mut up) = (written, 0);
    while let Some(after) = rest.strip_prefix("super::") {
        (rest, up) = (after, up + 1);
    }
    match up >= path.len() {
        true => heads(rest),
        false => Vec::new(),
    }
}

/// The first names of a path, or of each path in a group.
fn heads(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![name_of(rest)];
    };
    let (mut depth, mut heads, mut start) = (0, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                heads.push(name_of(group[start..at].trim()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                heads.push(name_of(group[start..at].trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    heads
}

fn name_of(path: &str) -> String {
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    path.chars().take_while(is_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let path = format!("crates/engine/src/{path}");
        let found = check(&Tree::of(&[(&path, text)]));
        found.into_iter().map(|complaint| complaint.what).collect()
    }

    #[test]
    fn an_arrow_upwards_is_refused_in_every_spelling() {
        for code in [
            "use crate::pool::Pool;",
            "use crate::{drive, pool::{self, Pool}};",
            "use crate::{\n    drive::Drive,\n    pool,\n};",
            "fn f(x: &crate::pool::Pool) {}",
            "use super::super::pool::Pool;",
            "pub use crate::pool;",
        ] {
            let found = complaints("store/read.rs", code);
            assert_eq!(found.len(), 1, "{code}: {found:?}");
            assert!(found[0].contains("store may not use pool"), "{found:?}");
        }
        assert_eq!(complaints("error.rs", "use super::pool::Pool;").len(), 1);
    }

    #[test]
    fn arrows_downwards_and_those_of_unit_tests_are_free() {
        let code = "use crate::drive::Drive;\nuse super::row;\n// crate::pool\n#[cfg(test)]\nmod tests {\n    use crate::pool::Pool;\n}\n";
        assert!(complaints("store/read.rs", code).is_empty());
        assert!(complaints("fsck/mod.rs", "use crate::pool::Pool;").is_empty());
    }

    #[test]
    fn files_of_unit_tests_are_free_and_hide_nothing() {
        let root = "crates/engine/src/store";
        let arrow = "use crate::pool::Pool;\n";
        let declares = |what: &str| {
            let text = format!("#[cfg(test)]\n{what};\n{arrow}");
            let files = [
                (format!("{root}/mod.rs"), text.as_str()),
                (format!("{root}/tests.rs"), arrow),
            ];
            let found = check(&Tree::of(
                &files.each_ref().map(|(path, text)| (&path[..], *text)),
            ));
            found.into_iter().map(|one| one.path).collect::<Vec<_>>()
        };
        for what in ["mod tests", "pub(crate) mod tests"] {
            assert_eq!(declares(what), [format!("{root}/mod.rs")]);
        }
        assert_eq!(declares("use tests").len(), 2);
    }

    #[test]
    fn a_new_module_needs_a_floor() {
        assert_eq!(complaints("attic.rs", "").len(), 1);
        assert!(complaints("lib.rs", "mod attic;").is_empty());
    }
}
