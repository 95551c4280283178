//! Modules that lie beside each other, at any depth, use each other in one direction only: no
//! circle. [`crate::floors`] names the order of the top ones; below, any order will do.
//!
//! What a module's unit tests use is no arrow of the module, and neither is what a module takes
//! from its parent.

use crate::paths::{modules, named};
use crate::{Complaint, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The crates that are looked at.
const CRATES: [&str; 5] = ["engine", "iscsi", "array", "rehearse", "server"];

/// Where a module names a module beside it.
type Arrows<'a> = BTreeMap<(String, String), (&'a str, usize)>;

/// Complains about modules in a circle, at the arrow of each pair that closes it.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for room in CRATES {
        for (parent, arrows) in arrows_of(tree, room) {
            for ((from, to), (file, line)) in &arrows {
                if leads(&arrows, to, from) {
                    let above = [room, &parent].join("::");
                    let above = above.trim_end_matches("::");
                    let what = format!("in {above}, {from} uses {to}, which leads back to {from}");
                    complaints.push(Complaint::at(file, *line, what));
                }
            }
        }
    }
    complaints
}

/// The arrows between the children of each module of a crate.
fn arrows_of<'a>(tree: &'a Tree, room: &str) -> BTreeMap<String, Arrows<'a>> {
    let files = modules(tree, room);
    let known: BTreeSet<&[String]> = files
        .iter()
        .flat_map(|(_, path)| (1..=path.len()).map(|len| &path[..len]))
        .collect();
    let mut found: BTreeMap<String, Arrows<'a>> = BTreeMap::new();
    for (file, path) in &files {
        for (line, other) in named(file.text, path) {
            let shared = path.iter().zip(&other).take_while(|(a, b)| a == b).count();
            if shared >= path.len() || !other.get(..=shared).is_some_and(|to| known.contains(to)) {
                continue;
            }
            let arrow = (path[shared].clone(), other[shared].clone());
            let arrows = found.entry(path[..shared].join("::")).or_default();
            arrows.entry(arrow).or_insert((file.path, line));
        }
    }
    found
}

/// Whether arrows lead from one module to another.
fn leads(arrows: &Arrows<'_>, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        let next = arrows.keys().filter(|(start, _)| start == at);
        open.extend(next.map(|(_, end)| &end[..]).filter(|end| seen.insert(end)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> = files
            .iter()
            .map(|(path, text)| (format!("crates/engine/src/{path}"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (&path[..], *text))
            .collect();
        let found = check(&Tree::of(&files)).into_iter();
        found.map(|complaint| complaint.what).collect()
    }

    #[test]
    fn circles_are_found_at_any_depth_and_over_any_number_of_modules() {
        let two = [
            ("pool/open.rs", "use super::strangers::f;"),
            ("pool/strangers/mod.rs", "use crate::pool::open::g;"),
        ];
        let found = complaints(&two);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("in engine::pool, open uses strangers"),
            "{found:?}"
        );
        let three = [
            ("a.rs", "use crate::b::B;"),
            ("b/mod.rs", "fn f() {}"),
            ("b/deep.rs", "use crate::c::C;"),
            ("c.rs", "fn f(x: crate::a::A) {}"),
        ];
        assert_eq!(complaints(&three).len(), 3);
    }

    #[test]
    fn one_direction_parents_and_unit_tests_are_free() {
        let free = [
            ("pool/mod.rs", "pub use open::f;\nmod open;"),
            ("pool/open.rs", "use super::{Pool, strangers::f};"),
            (
                "pool/strangers.rs",
                "use super::Pool;\n#[cfg(test)]\nmod tests {\n    use super::super::open::g;\n}\n",
            ),
        ];
        assert_eq!(complaints(&free), Vec::<String>::new());
    }
}
