//! Types and modules do not get the names back that said nothing of what they hold.
//!
//! Each was renamed to the field's own term. A variant or a field may be called so.

use crate::source::code_lines;
use crate::{Complaint, Tree};

/// The names, as of types; a module would have them in lower case.
const OLD: [&str; 17] = [
    "About",
    "Arrival",
    "Berth",
    "Cargo",
    "Commons",
    "Course",
    "Distant",
    "Elsewhere",
    "Errand",
    "Far",
    "Inner",
    "Manners",
    "Reins",
    "Seat",
    "Vigil",
    "Way",
    "Words",
];

/// Complains about each type, trait or module that is defined with such a name.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        for (at, line) in code_lines(file.text).iter().enumerate() {
            let name = defined(line).filter(|name| is_old(name));
            complaints.extend(name.map(|name| {
                let what = format!("{name} is a name of before: name it by the field's term");
                Complaint::at(file.path, at + 1, what)
            }));
        }
    }
    complaints
}

fn is_old(name: &str) -> bool {
    OLD.iter().any(|old| old.eq_ignore_ascii_case(name))
}

/// The name of the type, trait or module that a line defines.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().filter(|word| !is_qualifier(word));
    let is_definition = ["struct", "enum", "union", "trait", "mod"].contains(&words.next()?);
    let name = words.next().filter(|_| is_definition)?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

fn is_qualifier(word: &str) -> bool {
    word.starts_with("pub") || word.starts_with("crate::") || ["in", "unsafe"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(code: &str) -> usize {
        check(&Tree::of(&[("crates/a/src/a.rs", code)])).len()
    }

    #[test]
    fn an_old_name_of_a_type_or_module_is_refused() {
        for code in [
            "struct Seat;",
            "pub struct Cargo<'a>(&'a str);",
            "    pub(crate) enum About {",
            "pub(in crate::control) trait Errand: Send {",
            "pub unsafe trait Reins {}",
            "pub mod vigil;",
            "mod words {",
        ] {
            assert_eq!(complaints(code), 1, "{code}");
        }
    }

    #[test]
    fn variants_parts_of_names_and_talk_are_free() {
        for code in [
            "enum Stray { Elsewhere }",
            "struct SeatMap;",
            "mod words_of_pdus;",
            "use std::path::Way;",
            "// struct Seat",
            "let text = \"struct Seat\";",
        ] {
            assert_eq!(complaints(code), 0, "{code}");
        }
    }
}
