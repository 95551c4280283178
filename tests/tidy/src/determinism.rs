//! No ambient clock, randomness, threads or tokio in the deterministic rooms.
//!
//! Clippy's `disallowed_methods` says most of this too, but an `allow` switches
//! it off; here nothing does.

use crate::source::code_lines;
use crate::{Complaint, Tree};

/// Where one seed must replay any run.
pub const ROOMS: [&str; 8] = [
    "crates/base/src/",
    "crates/engine/src/",
    "crates/model/src/",
    "crates/world-sim/src/",
    "crates/scsi/src/",
    "crates/iscsi/src/",
    "crates/array/src/",
    "crates/sim/src/",
];

/// The simulator's program measures its own speed; it decides nothing by it.
pub const WALL_CLOCK_ALLOWED: [&str; 1] = ["crates/sim/src/main.rs"];

const WALL_CLOCK: [&str; 2] = ["Instant::now", "SystemTime"];
const AMBIENT: [&str; 12] = [
    "thread_rng",
    "rand::rng(",
    "OsRng",
    "from_entropy",
    "from_os_rng",
    "getrandom",
    "RandomState",
    "HashMap::new",
    "HashSet::new",
    "thread::spawn",
    "thread::sleep",
    "tokio::",
];

/// Complains about each line of code that names one of them.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree
        .rust()
        .filter(|file| ROOMS.iter().any(|room| file.path.starts_with(room)))
    {
        let clock: &[&str] = if WALL_CLOCK_ALLOWED.contains(&file.path) {
            &[]
        } else {
            &WALL_CLOCK
        };
        for (at, line) in code_lines(file.text).iter().enumerate() {
            // FxHashMap has a fixed hasher; only the default one is ambient.
            let line = line.replace("FxHashMap::", "").replace("FxHashSet::", "");
            for name in AMBIENT
                .iter()
                .chain(clock)
                .filter(|name| line.contains(**name))
            {
                let what = format!("{name}: time, randomness and tasks come from the World here");
                complaints.push(Complaint::at(file.path, at + 1, what));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambient_things_are_refused_in_deterministic_rooms_only() {
        for code in [
            "let t = std::time::Instant::now();",
            "use tokio::net;",
            "HashMap::new()",
        ] {
            let count = |path: &str| check(&Tree::of(&[(path, code)])).len();
            assert_eq!(count("crates/engine/src/a.rs"), 1, "{code}");
            assert_eq!(count("crates/world-sim/src/a.rs"), 1, "{code}");
            assert_eq!(count("crates/world-real/src/a.rs"), 0, "{code}");
        }
    }

    #[test]
    fn talking_about_them_is_allowed() {
        let text = "//! Not Instant::now.\nlet s = \"tokio::\"; let m = FxHashMap::default();\n";
        assert!(check(&Tree::of(&[("crates/engine/src/a.rs", text)])).is_empty());
    }

    #[test]
    fn only_the_simulators_program_may_read_the_clock() {
        let count = |path: &str| check(&Tree::of(&[(path, "Instant::now()")])).len();
        assert_eq!(count("crates/sim/src/main.rs"), 0);
        assert_eq!(count("crates/sim/src/run.rs"), 1);
    }
}
