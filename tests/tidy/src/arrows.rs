//! Arrows between crates point downwards only. What a room's tests use is no arrow
//! of the room: the engine's tests run over a world.

use crate::{Complaint, Tree};

/// The rooms from the bottom up. A crate may depend on those before it.
pub const RANKS: [&str; 17] = [
    "base",
    "api",
    "engine",
    "model",
    "world-sim",
    "world-real",
    "scsi",
    "iscsi",
    "nbd",
    "site",
    "workload",
    "array",
    "load",
    "rehearse",
    "sim",
    "server",
    "ashlar",
];

/// Complains about a crate that depends on one above it, or that has no rank.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.files() {
        let room = file
            .path
            .strip_prefix("crates/")
            .and_then(|p| p.strip_suffix("/Cargo.toml"));
        let Some(room) = room else { continue };
        let Some(rank) = rank(room) else {
            complaints.push(Complaint::at(
                file.path,
                0,
                format!("{room} has no rank; add it to RANKS in tests/tidy/src/arrows.rs"),
            ));
            continue;
        };
        for (line, above) in dependencies(file.text)
            .filter(|&(_, d)| crate::arrows::rank(d).is_some_and(|r| r >= rank))
        {
            complaints.push(Complaint::at(
                file.path,
                line,
                format!("{room} may not depend on {above}: arrows point downwards only"),
            ));
        }
    }
    complaints
}

/// The rank of a room, named as its directory or as its library.
fn rank(room: &str) -> Option<usize> {
    let directory = room.replace('_', "-");
    RANKS.iter().position(|&known| known == directory)
}

/// Our crates among the dependencies of a manifest, with their lines.
fn dependencies(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let own = keys(manifest).map(|(line, key)| (line, key.strip_prefix("ashlar-").unwrap_or(key)));
    own.filter(|(_, name)| rank(name).is_some())
}

/// The keys of every `[…dependencies]` table but those for tests, with their lines.
pub(crate) fn keys(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    manifest.lines().enumerate().filter_map(move |(at, line)| {
        let line = line.trim();
        if line.starts_with('[') {
            let for_tests = line.contains("dev-dependencies");
            inside = line.ends_with("dependencies]") && !for_tests;
            // [dependencies.engine] is an entry of its own.
            let (_, name) = line.trim_end_matches(']').rsplit_once("dependencies.")?;
            return (!for_tests).then_some((at + 1, name));
        }
        let key = line.split(['.', '=', ' ']).next()?;
        let is_key = inside && !key.is_empty() && !key.starts_with('#');
        is_key.then_some((at + 1, key))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(room: &str, manifest: &str) -> usize {
        check(&Tree::of(&[(
            &format!("crates/{room}/Cargo.toml"),
            manifest,
        )]))
        .len()
    }

    #[test]
    fn an_arrow_upwards_is_refused_in_every_spelling() {
        assert_eq!(
            complaints("engine", "[dependencies]\nbase.workspace = true\n"),
            0
        );
        assert_eq!(
            complaints("engine", "[dependencies]\nscsi.workspace = true\n"),
            1
        );
        assert_eq!(
            complaints(
                "engine",
                "[dependencies.world_sim]\npath = \"../world-sim\"\n"
            ),
            1
        );
        assert_eq!(
            complaints(
                "engine",
                "[dev-dependencies]\nashlar-server = { path = \"x\" }\n"
            ),
            0
        );
        assert_eq!(
            complaints(
                "engine",
                "[target.'cfg(unix)'.dependencies]\nserver = \"1\"\n"
            ),
            1
        );
        assert_eq!(
            complaints("engine", "[dependencies]\nworld_real.workspace = true\n"),
            1
        );
        assert_eq!(complaints("engine", "[package]\nscsi = 1\n"), 0);
    }

    #[test]
    fn tests_may_reach_up() {
        let manifest = "[dev-dependencies.server]\nworkspace = true\n[dependencies]\n";
        assert_eq!(complaints("engine", manifest), 0);
        assert_eq!(
            complaints("engine", &format!("{manifest}server = \"1\"\n")),
            1
        );
    }

    #[test]
    fn a_new_room_needs_a_rank() {
        assert_eq!(complaints("attic", ""), 1);
    }
}
