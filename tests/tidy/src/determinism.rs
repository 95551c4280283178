//! No ambient clock, randomness, threads, files, sockets or tokio in the deterministic rooms.
//!
//! Clippy's `disallowed_methods` says most of this too, but an `allow` switches
//! it off; here nothing does.

use crate::source::code_lines;
use crate::{Complaint, Tree};

/// Where one seed must replay any run.
pub const ROOMS: [&str; 9] = [
    "crates/base/src/",
    "crates/engine/src/",
    "crates/model/src/",
    "crates/world-sim/src/",
    "crates/scsi/src/",
    "crates/iscsi/src/",
    "crates/array/src/",
    "crates/rehearse/src/",
    "crates/sim/src/",
];

/// The simulator's program measures its own speed, runs seeds side by side and reads its
/// environment; nothing inside a seed depends on that.
pub const PROGRAMS: [&str; 1] = ["crates/sim/src/main.rs"];

/// What a program may have, and a room may not.
const OF_THE_HOST: [&str; 9] = [
    "Instant::now",
    "SystemTime",
    "thread::scope",
    "thread::Builder",
    "available_parallelism",
    "std::env",
    "std::process",
    "std::fs",
    "File::open",
];
const AMBIENT: [&str; 15] = [
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
    "TcpStream",
    "TcpListener",
    "UnixStream",
];

/// Complains about each line of code that names one of them.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree
        .rust()
        .filter(|file| ROOMS.iter().any(|room| file.path.starts_with(room)))
    {
        let of_the_host: &[&str] = match PROGRAMS.contains(&file.path) {
            true => &[],
            false => &OF_THE_HOST,
        };
        for (at, line) in code_lines(file.text).iter().enumerate() {
            // FxHashMap has a fixed hasher; only the default one is ambient.
            let line = line.replace("FxHashMap::", "").replace("FxHashSet::", "");
            for name in AMBIENT
                .iter()
                .chain(of_the_host)
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
            "std::thread::scope(|_| ());",
            "std::fs::read(path)",
            "TcpStream::connect(to)",
        ] {
            let count = |path: &str| check(&Tree::of(&[(path, code)])).len();
            assert_eq!(count("crates/engine/src/a.rs"), 1, "{code}");
            assert_eq!(count("crates/world-sim/src/a.rs"), 1, "{code}");
            assert_eq!(count("crates/rehearse/src/a.rs"), 1, "{code}");
            assert_eq!(count("crates/world-real/src/a.rs"), 0, "{code}");
        }
    }

    #[test]
    fn talking_about_them_is_allowed() {
        let text = "//! Not Instant::now.\nlet s = \"tokio::\"; let m = FxHashMap::default();\n";
        assert!(check(&Tree::of(&[("crates/engine/src/a.rs", text)])).is_empty());
    }

    #[test]
    fn only_the_simulators_program_may_read_the_clock_and_start_threads() {
        let code = "Instant::now()\nthread::scope(|_| ())\n";
        let count = |path: &str| check(&Tree::of(&[(path, code)])).len();
        assert_eq!(count("crates/sim/src/main.rs"), 0);
        assert_eq!(count("crates/sim/src/run.rs"), 2);
    }
}
