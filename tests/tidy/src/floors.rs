//! Inside a crate, modules stand on those below them: no arrow upwards, and so no circle.
//!
//! A module is the first part of a path in the crate: `pool` is `src/pool.rs`, and all of
//! `src/pool/`. What its unit tests use is no arrow of the module. `lib.rs` names them all, and
//! is no module: what it shows under its own name (`crate::Lane`) counts as what it is
//! (`crate::pool::Lane`).

use crate::paths::{modules, named, shown_at_root, through_root};
use crate::{Complaint, Tree};

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
            // Limits of volumes, which ask the clock only.
            "qos",
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
            "records",
            "stream",
            "drive_health",
            "directory",
            "shard",
            "error",
            "bays",
            "pool",
            "offload",
            "memory",
            "connection",
            "front",
            "control",
            "openings",
            // A site file, and the start of the whole.
            "overcommitment",
            "site_file",
            "bring_up",
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
            "offline",
            "wall_clock",
            "machine_memory",
            "programs",
            // The threads of the data path.
            "shard",
            "offload",
            // Files: records, drives, the data directory.
            "record",
            "own_files",
            "bring_up_error",
            "drive_files",
            "drive_health",
            "data_dir",
            // The portals; which jobs there are; the array over all shards.
            "front",
            "runtime",
            "jobs",
            "array",
            // Those that work on the array.
            "images",
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
        let shown = shown_at_root(tree, room);
        for (file, path) in modules(tree, room) {
            let Some(own) = path.first().map(String::as_str) else {
                continue;
            };
            let Some(floor) = floors.iter().position(|known| *known == own) else {
                let what =
                    format!("{room}::{own} has no floor: add it in tests/tidy/src/floors.rs");
                complaints.push(Complaint::at(file.path, 0, what));
                continue;
            };
            let tops = named(file.text, &path).into_iter();
            let top = |path| through_root(path, &shown).swap_remove(0);
            let mut tops: Vec<_> = tops.map(|(line, path)| (line, top(path))).collect();
            tops.dedup();
            let upwards = tops.into_iter().filter(|(_, other)| {
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
    fn what_the_root_shows_is_of_the_module_that_has_it() {
        let root = "pub mod pool;\n// Kept.\npub use pool::{\n    Lane,\n    open::Opening,\n};\npub use ::array::calendar;\n";
        let found = |path: &str, code: &str| {
            let path = format!("crates/engine/src/{path}");
            let tree = Tree::of(&[("crates/engine/src/lib.rs", root), (&path, code)]);
            check(&tree).len()
        };
        for code in [
            "use crate::Lane;",
            "use crate::{Opening, drive::Drive};",
            "fn f(x: &crate::Lane<u8>) {}",
        ] {
            assert_eq!(found("store/read.rs", code), 1, "{code}");
            assert_eq!(found("fsck/mod.rs", code), 0, "{code}");
        }
        assert_eq!(found("store/read.rs", "use crate::calendar::Day;"), 0);
    }

    #[test]
    fn a_new_module_needs_a_floor() {
        assert_eq!(complaints("attic.rs", "").len(), 1);
        assert!(complaints("lib.rs", "mod attic;").is_empty());
    }
}
