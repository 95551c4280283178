//! The modules of a crate, and the paths that their code names, from the root of the crate on.
//!
//! `crate::a::{b, c::D}` names `a::b` and `a::c::D` in any file. In a child of `a`,
//! `super::{b, c::D}` names them, too.
//!
//! Unit tests are left out: what they use is no arrow of the module.

use crate::source::code_lines;
use crate::{File, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a crate's modules, with the modules that lead to each from the root on. The root
/// itself is no module, and those of unit tests are left out.
pub fn modules<'a>(tree: &'a Tree, room: &str) -> Vec<(File<'a>, Vec<String>)> {
    let source = format!("crates/{room}/src/");
    let files = tree.rust().filter_map(|file| {
        let inside = file.path.strip_prefix(&source)?;
        (inside != "lib.rs" && inside != "main.rs").then_some((file, module_path(inside)))
    });
    let mut files: Vec<(File<'a>, Vec<String>)> = files.collect();
    let of_tests = files
        .iter()
        .flat_map(|(file, path)| files_of_tests(file.text, path));
    let of_tests: BTreeSet<Vec<String>> = of_tests.collect();
    files.retain(|(_, path)| !(1..=path.len()).any(|len| of_tests.contains(&path[..len])));
    files
}

/// The modules that lead to the file `inside` a crate's `src`, from the root on.
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

/// The paths that the file at `path` names, with their lines.
pub fn named(text: &str, path: &[String]) -> Vec<(usize, Vec<String>)> {
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
            let all = resolved(&code[at..], path).into_iter();
            found.extend(all.map(|path| (line, path)));
        }
    }
    found
}

/// What the root of a crate shows under names of its own, with the path that each leads to:
/// `pub use pool::Lane` makes `crate::Lane` the path `pool::Lane`.
pub fn shown_at_root(tree: &Tree, room: &str) -> BTreeMap<String, Vec<String>> {
    let text = tree.text(&format!("crates/{room}/src/lib.rs"));
    let code = code_lines(text.unwrap_or_default()).join("\n");
    let mut found = Vec::new();
    for written in code.split(';') {
        let line = written.trim_start();
        let shown = ["pub use ", "pub(crate) use "]
            .into_iter()
            .find_map(|start| line.find(start).map(|at| &line[at + start.len()..]));
        // `::array` is another crate.
        if let Some(shown) = shown.filter(|shown| !shown.starts_with("::")) {
            expand(shown.trim_start_matches("crate::"), &[], &mut found);
        }
    }
    let named = found
        .into_iter()
        .filter_map(|path: Vec<String>| Some((path.last()?.clone(), path)));
    named.collect()
}

/// Where `path` leads when the root of the crate shows these.
pub fn through_root(mut path: Vec<String>, shown: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    if let Some(to) = path.first().and_then(|first| shown.get(first)) {
        path.splice(..1, to.iter().cloned());
    }
    path
}

/// The module that a line declares, by its name and what follows, if the line before says that it
/// is for unit tests.
fn test_module(pair: &[String]) -> Option<&str> {
    let declared = pair[1].trim().trim_start_matches("pub(crate) ");
    let name = declared.strip_prefix("mod ")?;
    (pair[0].trim() == "#[cfg(test)]").then_some(name)
}

/// What a path, or a group of paths in braces, leads to when the module at `path` says it.
fn resolved(written: &str, path: &[String]) -> Vec<Vec<String>> {
    let (mut rest, mut from) = match written.strip_prefix("crate::") {
        Some(rest) => (rest, &path[..0]),
        None => (written, path),
    };
    while let Some(after) = rest.strip_prefix("super::") {
        rest = after;
        from = &from[..from.len().saturating_sub(1)];
    }
    let mut found = Vec::new();
    expand(rest, from, &mut found);
    found
}

/// Adds the paths that `text` begins with, all of them below `from`, and returns what is behind.
fn expand<'a>(text: &'a str, from: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = expand(rest, from, found).trim_start();
            match rest.strip_prefix(',') {
                Some(after) if !after.trim_start().starts_with('}') => rest = after,
                _ => {
                    return rest
                        .trim_start_matches(',')
                        .trim_start()
                        .trim_start_matches('}');
                }
            }
        }
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let len = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(len);
    let path = [from, &[name.to_owned()]].concat();
    let below = rest
        .strip_prefix("::")
        .filter(|below| below.starts_with(|c| is_part(c) || c == '{'));
    match below {
        Some(below) => expand(below, &path, found),
        None => {
            found.push(path);
            // `a as b`, and anything else up to the next path of the group.
            let end = rest.find([',', '}', ';', '\n']).unwrap_or(rest.len());
            &rest[end..]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_from_the_root_of_the_crate() {
        let path = ["store".to_owned(), "read".to_owned()];
        for (code, expected) in [
            ("use crate::pool::Pool;", vec!["pool::Pool"]),
            (
                "use crate::{drive, pool::{self, Pool as P}, a::b::C};",
                vec!["drive", "pool::self", "pool::Pool", "a::b::C"],
            ),
            (
                "use crate::{\n    drive::Drive,\n    pool,\n};",
                vec!["drive::Drive", "pool"],
            ),
            ("fn f(x: &crate::pool::Pool<u8>) {}", vec!["pool::Pool"]),
            ("use super::row;", vec!["store::row"]),
            ("use super::super::pool::Pool;", vec!["pool::Pool"]),
            ("x.map(super::row::<W>)", vec!["store::row"]),
            ("// crate::pool", vec![]),
        ] {
            let found = named(code, &path).into_iter();
            let found: Vec<String> = found.map(|(_, path)| path.join("::")).collect();
            assert_eq!(found, expected, "{code}");
        }
    }
}
