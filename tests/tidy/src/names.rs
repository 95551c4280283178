//! No file names a particular machine, person's directory or private network.

use crate::{Complaint, Tree};

/// What paths of somebody's own machine begin with, and what private hosts end
/// with. Written in two halves, so that this file does not complain about itself.
const PATHS: [&str; 6] = [
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/works", "pace"),
    concat!("C:\\Us", "ers"),
];
const HOSTS: [&str; 4] = [
    concat!(".inter", "nal"),
    concat!(".co", "rp"),
    concat!(".l", "an"),
    concat!(".loc", "al"),
];

/// Complains about each line with such a name.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree
        .files()
        .filter(|file| !file.path.ends_with("Cargo.lock"))
    {
        for (at, line) in file.text.lines().enumerate() {
            for name in PATHS.iter().filter(|name| begins_in(line, name)) {
                let what = format!("names a private path: {name}");
                complaints.push(Complaint::at(file.path, at + 1, what));
            }
            for name in HOSTS.iter().filter(|name| is_host_in(line, name)) {
                let what = format!("names a private host: …{name}");
                complaints.push(Complaint::at(file.path, at + 1, what));
            }
        }
    }
    complaints
}

/// Whether an absolute path begins so: not in the middle of a longer path.
fn begins_in(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.})$~*/".contains(c))
    })
}

/// Whether `://host.name` or `@host.name` ends so.
fn is_host_in(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = &line[..at];
        let host = before.rfind(|c: char| !c.is_alphanumeric() && !"-.".contains(c));
        let ends = !line[at + name.len()..].starts_with(|c: char| c.is_alphanumeric());
        ends && host
            .is_some_and(|from| before[..=from].ends_with("//") || before[..=from].ends_with('@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        check(&Tree::of(&[("docs/a.md", text)])).len()
    }

    #[test]
    fn private_paths_and_hosts_are_refused() {
        assert_eq!(complaints(concat!("see /ho", "me/ann/x")), 1);
        assert_eq!(complaints(concat!("cd /wo", "rk/main")), 1);
        assert_eq!(complaints(concat!("cd \"/ro", "ot/x\"")), 1);
        assert_eq!(complaints(concat!("http://build.inter", "nal/x")), 1);
        assert_eq!(complaints(concat!("ssh ann@box.l", "an")), 1);
    }

    #[test]
    fn public_names_are_fine() {
        assert_eq!(
            complaints("https://rustup.rs, state.internal, $HOME/.cargo, std.local()"),
            0
        );
        assert_eq!(complaints("docs/home/x, target/workspace"), 0);
    }
}
