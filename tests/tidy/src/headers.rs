//! Every module opens with what it is for, and nothing is left unfinished.

use crate::source::code_lines;
use crate::{Complaint, Tree};

const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

/// Complains about a source without a `//!` opening, and about unfinished code.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        if !opens_with_its_purpose(file.text) {
            let what = "open with `//!`: what it is for and which invariants it keeps";
            complaints.push(Complaint::at(file.path, 1, what));
        }
        for (at, line) in code_lines(file.text).iter().enumerate() {
            for name in UNFINISHED.iter().filter(|name| line.contains(**name)) {
                complaints.push(Complaint::at(
                    file.path,
                    at + 1,
                    format!("{name} is left in"),
                ));
            }
        }
    }
    complaints
}

/// Attributes of the crate may stand before the opening, as fuzz targets need.
fn opens_with_its_purpose(text: &str) -> bool {
    text.lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!["))
        .is_some_and(|line| line.starts_with("//!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        check(&Tree::of(&[("a.rs", text)])).len()
    }

    #[test]
    fn a_module_must_say_what_it_is_for() {
        assert_eq!(complaints("//! A room.\n"), 0);
        assert_eq!(complaints("#![no_main]\n//! A room.\n"), 0);
        assert_eq!(complaints("// A room.\n"), 1);
        assert_eq!(complaints(""), 1);
    }

    #[test]
    fn nothing_stays_unfinished() {
        assert_eq!(complaints("//! A room.\nfn f() { todo!() }\n"), 1);
        assert_eq!(
            complaints("//! A room.\nfn f() { dbg!(1); unimplemented!() }\n"),
            2
        );
        assert_eq!(complaints("//! No todo! here.\n"), 0);
    }
}
