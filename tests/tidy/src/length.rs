//! A file of more than 800 lines is asking to be two. Those that are longer are
//! listed with their exact length, and the list may only shrink.

use crate::{Complaint, Tree};
use std::collections::BTreeMap;

/// Lines that a Rust file may have.
pub const LIMIT: usize = 800;

/// Where the exceptions are.
pub const LIST: &str = "tests/tidy/long-files.txt";

/// Complains about a file over the limit that is not listed, and about an entry
/// that is not the exact length of its file, or that is no longer needed.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let (listed, mut complaints) = entries(tree.text(LIST).unwrap_or_default());
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > LIMIT && !listed.contains_key(file.path) {
            complaints.push(Complaint::at(
                file.path,
                LIMIT + 1,
                format!("{lines} lines, allowed are {LIMIT}: make two files of it"),
            ));
        }
    }
    for (path, (line, count)) in listed {
        let lines = tree.text(path).map(|text| text.lines().count());
        let what = match lines {
            None => format!("{path} is gone; remove its entry"),
            Some(lines) if lines <= LIMIT => format!("{path} has {lines} lines; remove its entry"),
            Some(lines) if lines < count => {
                format!("{path} got shorter; lower its entry to {lines}")
            }
            Some(lines) if lines > count => format!("{path} grew from {count} to {lines} lines"),
            Some(_) => continue,
        };
        complaints.push(Complaint::at(LIST, line, what));
    }
    complaints
}

type Entries<'a> = BTreeMap<&'a str, (usize, usize)>;

fn entries(list: &str) -> (Entries<'_>, Vec<Complaint>) {
    let (mut listed, mut complaints) = (BTreeMap::new(), Vec::new());
    for (at, line) in list.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = line
            .split_once(' ')
            .and_then(|(n, path)| Some((path, n.parse().ok()?)));
        match entry {
            Some((path, count)) => {
                listed.insert(path, (at + 1, count));
            }
            None => complaints.push(Complaint::at(LIST, at + 1, "not of the form `lines path`")),
        }
    }
    (listed, complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(lines: usize, list: &str) -> Vec<String> {
        let text = "//\n".repeat(lines);
        let tree = Tree::of(&[("a.rs", &text), (LIST, list)]);
        check(&tree)
            .into_iter()
            .map(|complaint| complaint.what)
            .collect()
    }

    #[test]
    fn a_long_file_must_be_listed_with_its_exact_length() {
        assert!(complaints(800, "# none\n").is_empty());
        assert!(complaints(801, "")[0].contains("two files"));
        assert!(complaints(900, "900 a.rs\n").is_empty());
        assert!(complaints(901, "900 a.rs\n")[0].contains("grew"));
        assert!(complaints(899, "900 a.rs\n")[0].contains("lower"));
        assert!(complaints(700, "900 a.rs\n")[0].contains("remove"));
        assert!(complaints(700, "900 b.rs\n")[0].contains("gone"));
        assert!(complaints(700, "a.rs\n")[0].contains("form"));
    }
}
