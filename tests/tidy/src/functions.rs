//! A function of more than 40 lines wants to be several. Files of crates with longer ones are
//! listed with how many they have and the length of the longest, and the list may only shrink.
//!
//! Tests at the end of a file do not count. The rule goes by the layout that rustfmt gives: a
//! function ends at the first brace that stands under its first word.

use crate::source::code_lines;
use crate::{Complaint, Tree};
use std::collections::BTreeMap;

/// Lines that a function may have, without its first and its last.
pub const LIMIT: usize = 40;

/// Where the exceptions are.
pub const LIST: &str = "tests/tidy/long-functions.txt";

/// How many long functions a file has, and the lines of the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Long {
    functions: usize,
    longest: usize,
}

/// Complains about a file with long functions that is not listed, and about an entry that is not
/// exact, or that is no longer needed.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let (mut listed, mut complaints) = entries(tree.text(LIST).unwrap_or_default());
    let is_of_crate = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    for file in tree.rust().filter(|file| is_of_crate(file.path)) {
        let found = long(&lengths(file.text));
        let (line, entry) = listed.remove(file.path).unwrap_or_default();
        let Long { functions, longest } = found;
        let told = if found == entry {
            continue;
        } else if functions > entry.functions || longest > entry.longest {
            format!(
                "{functions} functions of more than {LIMIT} lines, the longest {longest}; \
                 listed are {} and {}: make several of them",
                entry.functions, entry.longest
            )
        } else if functions == 0 {
            format!(
                "{} has no long function any more; remove its entry",
                file.path
            )
        } else {
            format!(
                "{} has fewer or shorter ones; lower its entry to {functions} {longest}",
                file.path
            )
        };
        complaints.push(match line {
            0 => Complaint::at(file.path, 0, told),
            line => Complaint::at(LIST, line, told),
        });
    }
    for (path, (line, _)) in listed {
        complaints.push(Complaint::at(
            LIST,
            line,
            format!("{path} is gone; remove its entry"),
        ));
    }
    complaints
}

fn long(lengths: &[usize]) -> Long {
    let long = lengths.iter().copied().filter(|lines| *lines > LIMIT);
    Long {
        functions: long.clone().count(),
        longest: long.max().unwrap_or_default(),
    }
}

/// The lengths of the functions of a file, by their first lines; not of tests.
fn lengths(text: &str) -> Vec<usize> {
    let code = code_lines(text);
    let tests = code.iter().position(|line| line.trim() == "#[cfg(test)]");
    // A module of tests is the last thing of a file; a file may have one in another.
    let is_module = |at: &usize| {
        code.get(at + 1)
            .is_some_and(|next| next.starts_with("mod tests {"))
    };
    let code = &code[..tests.filter(is_module).unwrap_or(code.len())];
    let mut lengths = Vec::new();
    for (at, line) in code.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if !begins_function(line.trim_start()) {
            continue;
        }
        let end = format!("{}}}", &line[..indent]);
        // A declaration has no body, and a function on one line is not long.
        let mut head = code[at..].iter();
        let is_last = |line: &&String| line.trim_end().ends_with(['{', ';', '}']);
        if !head
            .find(is_last)
            .is_some_and(|last| last.trim_end().ends_with('{'))
        {
            continue;
        }
        let last = code[at..].iter().position(|line| line.trim_end() == end);
        lengths.extend(last.map(|lines| lines.saturating_sub(1)));
    }
    lengths
}

fn begins_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.find(|word| !is_qualifier(word)) == Some("fn")
}

fn is_qualifier(word: &str) -> bool {
    let is_visibility = word.starts_with("pub") || word.starts_with("crate::");
    is_visibility || ["in", "const", "async", "unsafe", "extern"].contains(&word)
}

type Entries<'a> = BTreeMap<&'a str, (usize, Long)>;

fn entries(list: &str) -> (Entries<'_>, Vec<Complaint>) {
    let (mut listed, mut complaints) = (BTreeMap::new(), Vec::new());
    for (at, line) in list.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.splitn(3, ' ');
        let mut number = || words.next()?.parse().ok();
        let (functions, longest) = (number(), number());
        match (functions, longest, words.next()) {
            (Some(functions), Some(longest), Some(path)) => {
                listed.insert(path, (at + 1, Long { functions, longest }));
            }
            _ => {
                let form = "not of the form `functions longest path`";
                complaints.push(Complaint::at(LIST, at + 1, form));
            }
        }
    }
    (listed, complaints)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        let body = "        now();\n".repeat(lines);
        format!("    pub(crate) async fn f(\n        a: u8,\n    ) {{\n{body}    }}\n")
    }

    fn complaints(text: &str, list: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/a/src/a.rs", text), (LIST, list)]);
        let found = check(&tree).into_iter();
        found.map(|complaint| complaint.what).collect()
    }

    #[test]
    fn a_file_with_long_functions_must_be_listed_exactly() {
        // With two lines of its head.
        let (short, long) = (function(38), function(60));
        assert!(complaints(&short, "# none\n").is_empty());
        assert!(complaints(&function(39), "")[0].contains("several"));
        let entry = "1 62 crates/a/src/a.rs\n";
        assert!(complaints(&format!("{short}{long}"), entry).is_empty());
        assert!(complaints(&format!("{long}{long}"), entry)[0].contains("several"));
        assert!(complaints(&function(61), entry)[0].contains("several"));
        assert!(complaints(&function(59), entry)[0].contains("lower"));
        assert!(complaints(&short, entry)[0].contains("remove"));
        assert!(complaints(&long, &format!("{entry}1 50 crates/b.rs\n"))[0].contains("gone"));
        assert!(complaints(&long, "62 crates/a/src/a.rs\n")[0].contains("form"));
    }

    #[test]
    fn tests_and_declarations_do_not_count() {
        let long = function(60);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert!(complaints(&tests, "").is_empty());
        let declared = format!("trait A {{\n    fn f(a: u8);\n{}}}\n", "\n".repeat(60));
        assert!(complaints(&declared, "").is_empty());
        assert!(
            complaints(&format!("#[cfg(test)]\nmod other;\n{long}"), "")[0].contains("several")
        );
    }
}
