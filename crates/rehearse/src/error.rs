//! The errors of a rehearsal, which has no outcome then.

use std::fmt;

/// What went wrong, as far as callers act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RehearseErrorKind {
    /// The site file says what no model, profile or engine knows, or what can't be.
    Site,
    /// The engine refused something that the plan said is possible.
    Engine,
    /// A law that holds in every run does not: a fault of ours.
    Law,
}

/// A rehearsal that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RehearseError {
    /// What callers match on.
    pub kind: RehearseErrorKind,
    /// The line of the site file, where one is to blame.
    pub line: Option<usize>,
    /// A sentence for people that says what is wrong, and where.
    pub context: String,
}

impl RehearseError {
    /// Something that the file says.
    pub fn site(line: usize, context: String) -> RehearseError {
        RehearseError {
            kind: RehearseErrorKind::Site,
            line: Some(line),
            context,
        }
    }

    /// Something that the engine says.
    pub fn engine(context: impl fmt::Display) -> RehearseError {
        RehearseError {
            kind: RehearseErrorKind::Engine,
            line: None,
            context: context.to_string(),
        }
    }
}

impl fmt::Display for RehearseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.context)
    }
}

impl std::error::Error for RehearseError {}
