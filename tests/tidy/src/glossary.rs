//! One word for one thing: words that `tests/tidy/glossary.txt` deprecates are used neither in
//! documents nor in messages.
//!
//! Help texts are read in `docs/reference/cli.md`, which a test keeps the same as the program's.

use crate::source::{Literal, literals};
use crate::{Complaint, Tree};

const GLOSSARY: &str = "tests/tidy/glossary.txt";

/// Names of paths and planted bugs of the simulator: no messages.
const MARKS: [&str; 2] = ["reached(", "planted("];
/// Where there are only such names, or texts for developers.
const UNREAD: [&str; 2] = ["crates/sim/", "crates/engine/src/rare.rs"];

/// A deprecated word.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    word: &'a str,
    instead: &'a str,
    reason: &'a str,
    /// Paths where it is allowed.
    not_in: Vec<&'a str>,
}

impl<'a> Entry<'a> {
    /// `word | instead | reason`, and perhaps `| not in PATH, PATH`.
    fn of(line: &'a str) -> Option<Self> {
        let mut cells = line.split('|').map(str::trim);
        let (word, instead, reason) = (cells.next()?, cells.next()?, cells.next()?);
        let not_in = match cells.next() {
            Some(cell) => cell.strip_prefix("not in ")?.split(", ").collect(),
            None => Vec::new(),
        };
        let is_whole = ![word, instead, reason].contains(&"") && cells.next().is_none();
        is_whole.then_some(Entry {
            word,
            instead,
            reason,
            not_in,
        })
    }

    fn complaint(&self, path: &str, line: usize) -> Complaint {
        let Entry {
            word,
            instead,
            reason,
            ..
        } = self;
        let what = format!("{word:?} is deprecated: write {instead:?} ({reason})");
        Complaint::at(path, line, what)
    }
}

/// A text with single spaces for all white space, in lower case, and the line of each character.
struct Plain {
    text: Vec<char>,
    lines: Vec<usize>,
}

impl Plain {
    fn of(text: &str, first_line: usize) -> Self {
        let (mut line, mut plain) = (
            first_line,
            Plain {
                text: Vec::new(),
                lines: Vec::new(),
            },
        );
        for c in text.chars() {
            let kept = match c {
                _ if c.is_whitespace() && plain.text.last() == Some(&' ') => None,
                _ if c.is_whitespace() => Some(' '),
                _ => c.to_lowercase().next(),
            };
            if let Some(kept) = kept {
                plain.text.push(kept);
                plain.lines.push(line);
            }
            line += usize::from(c == '\n');
        }
        plain
    }

    /// The lines in which a word, or words in a row, begin.
    fn find(&self, word: &str) -> Vec<usize> {
        let word: Vec<char> = word.to_lowercase().chars().collect();
        let is_part = |at: Option<usize>| {
            let c = at.and_then(|at| self.text.get(at));
            c.is_some_and(|c| c.is_alphanumeric() || *c == '_')
        };
        let windows = self.text.windows(word.len()).enumerate();
        let found = windows.filter(|(at, here)| {
            *here == word && !is_part(at.checked_sub(1)) && !is_part(Some(at + word.len()))
        });
        found.map(|(at, _)| self.lines[at]).collect()
    }
}

/// Complains about each deprecated word, and about a line of the glossary that says nothing.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let text = tree.text(GLOSSARY).unwrap_or_default();
    let mut complaints = Vec::new();
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match Entry::of(line) {
            Some(entry) => entries.push(entry),
            None => {
                let what = "write `word | instead | reason`, or with `| not in PATH, PATH`";
                complaints.push(Complaint::at(GLOSSARY, at + 1, what));
            }
        }
    }
    if entries.is_empty() {
        complaints.push(Complaint::at(GLOSSARY, 0, "no word is deprecated here"));
    }
    for (path, plain) in texts(tree) {
        let is_checked =
            |entry: &&Entry<'_>| !entry.not_in.iter().any(|part| path.starts_with(part));
        for entry in entries.iter().filter(is_checked) {
            let lines = plain.find(entry.word).into_iter();
            complaints.extend(lines.map(|line| entry.complaint(path, line)));
        }
    }
    complaints.sort();
    complaints
}

/// What people read: documents, and string literals of the program.
fn texts(tree: &Tree) -> Vec<(&str, Plain)> {
    let is_document = |path: &str| path == "README.md" || path.starts_with("docs/");
    let mut all = Vec::new();
    for file in tree.files() {
        if file.path.ends_with(".md") && is_document(file.path) {
            all.push((file.path, Plain::of(file.text, 1)));
        } else if is_program(file.path) {
            let messages = literals(of_the_program(file.text));
            let messages = messages.into_iter().filter(is_message);
            all.extend(messages.map(|literal| (file.path, Plain::of(&literal.text, literal.line))));
        }
    }
    all
}

fn is_program(path: &str) -> bool {
    path.ends_with(".rs")
        && path.starts_with("crates/")
        && path.contains("/src/")
        && !path.ends_with("tests.rs")
        && !UNREAD.iter().any(|part| path.starts_with(part))
}

/// A source without its tests, which stand at its end.
fn of_the_program(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or(text)
}

fn is_message(literal: &Literal) -> bool {
    !MARKS.iter().any(|mark| literal.before.ends_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(entry: &str, path: &str, text: &str) -> Vec<String> {
        let all = check(&Tree::of(&[(GLOSSARY, entry), (path, text)]));
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_deprecated_word_is_found_with_its_line_and_the_right_one() {
        let entry = "# words\n\nput right | repaired | one word | not in docs/old\n";
        assert_eq!(
            complaints(entry, "docs/a.md", "It is\nPut\nright, output right.\n"),
            ["docs/a.md:2: \"put right\" is deprecated: write \"repaired\" (one word)"]
        );
        assert_eq!(complaints(entry, "docs/old/a.md", "put right").len(), 0);
        assert_eq!(complaints(entry, "CHANGELOG.md", "put right").len(), 0);
    }

    #[test]
    fn messages_are_looked_at_and_names_and_tests_are_not() {
        let entry = "put right | repaired | one word";
        let of = |text: &str| complaints(entry, "crates/x/src/y.rs", text);
        let broken = "let a = 1;\nformat!(\"is put \\\n    right\");\n";
        assert_eq!(of(broken).len(), 1, "{:?}", of(broken));
        assert!(of(broken)[0].starts_with("crates/x/src/y.rs:2: "));
        assert_eq!(of("// put right\nself.put_right();\n").len(), 0);
        assert_eq!(of("world.reached(\"put right\");").len(), 0);
        assert_eq!(of("#[cfg(test)]\nmod tests {\n\"put right\"\n}\n").len(), 0);
    }

    #[test]
    fn a_glossary_says_what_to_write_instead() {
        for wrong in ["", "put right", "put right | repaired |", "a | b | c | d"] {
            assert!(!complaints(wrong, "docs/a.md", "").is_empty(), "{wrong}");
        }
    }
}
