//! Every make target is explained by `make help`, and none that others rely on
//! is missing.

use crate::{Complaint, Tree};

/// What the README, CI and people's fingers rely on.
pub const TARGETS: [&str; 13] = [
    "setup", "build", "demo", "test", "bench", "sim", "fuzz", "docs", "install", "lint", "fmt",
    "clean", "help",
];

/// Complains about a target without its `## line` and about a missing one.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let text = tree.text("Makefile").unwrap_or_default();
    let mut complaints = Vec::new();
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some(name) = target(line) else { continue };
        found.push(name);
        if line
            .split_once("## ")
            .is_none_or(|(_, help)| help.is_empty())
        {
            let what = format!("target {name} has no `## line` for make help");
            complaints.push(Complaint::at("Makefile", at + 1, what));
        }
    }
    for name in TARGETS.iter().filter(|name| !found.contains(*name)) {
        complaints.push(Complaint::at(
            "Makefile",
            0,
            format!("target {name} is missing"),
        ));
    }
    complaints
}

/// The name of the target that a line defines.
fn target(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(':')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    (is_name && !rest.starts_with('=')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_needs_its_line() {
        let mut text: String = TARGETS
            .iter()
            .map(|name| format!("{name}: ## does it\n"))
            .collect();
        let complaints = |text: &str| check(&Tree::of(&[("Makefile", text)])).len();
        assert_eq!(complaints(&text), 0);
        text.push_str("secret:\n\techo\n");
        assert_eq!(complaints(&text), 1);
        assert_eq!(complaints(""), TARGETS.len());
    }
}
