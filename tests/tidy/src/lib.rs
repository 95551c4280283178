//! The house rules that a program can check, checked on every `cargo test`.
//!
//! Each room holds one rule: a function from the tree to complaints, and a test
//! that shows on a small bad sample that the rule can fail. `tests/tree.rs` runs
//! all of them over the repository. What Clippy can say is left to Clippy.
//!
//! Invariant: a rule sees only [`Tree`], never the file system, so that a sample
//! is a tree like any other.

pub mod arrows;
pub mod circles;
pub mod comments;
pub mod determinism;
pub mod floors;
pub mod functions;
pub mod glossary;
pub mod headers;
pub mod length;
pub mod links;
pub mod make;
pub mod module_files;
pub mod names;
pub mod old_names;
mod paths;
pub mod quotes;
pub mod source;
pub mod unsafety;

mod tree;

pub use tree::{File, Tree};

/// What a rule has against a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Path in the repository.
    pub path: String,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

impl Complaint {
    /// About one line, counted from 1.
    pub fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Complaint {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}
