//! No ambient clock, randomness, threads or what they keep, files, sockets or tokio in the
//! deterministic rooms, and no crate below them that has any.
//!
//! Clippy's `disallowed_methods` says most of this too, but an `allow` switches
//! it off; here nothing does.

use crate::source::code_lines;
use crate::{Complaint, Tree, arrows};

/// Where one seed must replay any run.
pub const ROOMS: [&str; 12] = [
    "crates/base/src/",
    "crates/api/src/",
    "crates/engine/src/",
    "crates/model/src/",
    "crates/world-sim/src/",
    "crates/scsi/src/",
    "crates/iscsi/src/",
    "crates/nbd/src/",
    "crates/workload/src/",
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
const AMBIENT: [&str; 16] = [
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
    "thread_local!",
    "tokio::",
    "TcpStream",
    "TcpListener",
    "UnixStream",
];

/// Our crates that a room may use beside rooms, each with its reason.
const BESIDE_ROOMS: [&str; 1] = [
    // It reads the site file that its caller names, and nothing else.
    "site",
];
/// Libraries of the machine, its network and its kernel.
const OF_THE_MACHINE: [&str; 14] = [
    "axum",
    "getrandom",
    "hyper",
    "hyper-util",
    "io-uring",
    "landlock",
    "libc",
    "libloading",
    "seccompiler",
    "socket2",
    "tempfile",
    "tokio",
    "tokio-io-timeout",
    "ureq",
];

/// Complains about a room whose crate depends on the machine, or on a crate that may.
pub fn check_links(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let is_room = |name: &str| ROOMS.contains(&format!("crates/{name}/src/").as_str());
    for room in ROOMS {
        let manifest = format!("{}Cargo.toml", room.trim_end_matches("src/"));
        let text = tree.text(&manifest).unwrap_or_default();
        for (line, key) in arrows::keys(text) {
            let name = key.replace('_', "-");
            let is_own = arrows::RANKS.contains(&name.as_str());
            let is_pure = is_room(&name) || BESIDE_ROOMS.contains(&name.as_str());
            if (is_own && !is_pure) || OF_THE_MACHINE.contains(&key) {
                let what = format!("{key}: a deterministic room links nothing of the machine");
                complaints.push(Complaint::at(&manifest, line, what));
            }
        }
    }
    complaints
}

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
                let what =
                    format!("{name}: time, randomness, tasks and state come from the caller here");
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
            "thread_local! { static OWN: Cell<u8> = const { Cell::new(0) }; }",
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
    fn a_room_that_links_the_machine_is_refused() {
        let count = |room: &str, dependency: &str| {
            let text = format!("[dependencies]\n{dependency}\n[dev-dependencies]\ntokio = \"1\"\n");
            check_links(&Tree::of(&[(&format!("crates/{room}/Cargo.toml"), &text)])).len()
        };
        assert_eq!(count("rehearse", "load.workspace = true"), 1);
        assert_eq!(count("rehearse", "world_real.workspace = true"), 1);
        assert_eq!(count("world-sim", "io-uring.workspace = true"), 1);
        assert_eq!(count("rehearse", "workload.workspace = true"), 0);
        assert_eq!(count("array", "site.workspace = true"), 0);
        assert_eq!(count("load", "libc.workspace = true"), 0);
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
