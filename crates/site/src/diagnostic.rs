//! Errors in a site file, each with its line and key.

use std::fmt;
use std::path::Path;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Line in the file, from 1.
    pub line: usize,
    /// The key, with its table: `drive.size`.
    pub key: String,
    /// What the file says there, as text.
    pub found: String,
    /// What may be there.
    pub allowed: String,
}

/// What callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteErrorKind {
    /// The file can't be read.
    Unreadable,
    /// The file is read and wrong.
    Invalid,
}

/// A site file that can't be used: everything that is wrong with it, in the
/// order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteError {
    /// What callers match on.
    pub kind: SiteErrorKind,
    /// The file, as the caller named it.
    pub file: String,
    /// Why it can't be read; empty for an invalid one.
    pub context: String,
    /// What is wrong; empty unless it is an invalid one.
    pub diagnostics: Vec<Diagnostic>,
}

impl SiteError {
    pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        SiteError {
            kind: SiteErrorKind::Unreadable,
            file: path.display().to_string(),
            context: error.to_string(),
            diagnostics: Vec::new(),
        }
    }

    pub(crate) fn invalid(file: &str, mut diagnostics: Vec<Diagnostic>) -> Self {
        assert!(
            !diagnostics.is_empty(),
            "an invalid site has at least one diagnostic"
        );
        diagnostics.sort_by_key(|diagnostic| diagnostic.line);
        let file = file.to_owned();
        SiteError {
            kind: SiteErrorKind::Invalid,
            file,
            context: String::new(),
            diagnostics,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic {
            line,
            key,
            found,
            allowed,
        } = self;
        match found.as_str() {
            "nothing" => write!(f, "{line}: {key} is missing: give {allowed}"),
            _ => write!(f, "{line}: {key}: found {found}; allowed: {allowed}"),
        }
    }
}

impl fmt::Display for SiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SiteError { file, context, .. } = self;
        match self.kind {
            SiteErrorKind::Unreadable => {
                return write!(f, "{file}: can't read the site file: {context}");
            }
            SiteErrorKind::Invalid => {}
        }
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{file}:{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SiteError {}

/// From byte offsets to line numbers.
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let after_breaks = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(i, _)| i + 1);
        Lines {
            starts: std::iter::once(0).chain(after_breaks).collect(),
        }
    }

    /// The line, from 1, that the byte at `offset` is on.
    pub(crate) fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// What the TOML parser said.
    pub(crate) fn syntax(&self, error: &toml::de::Error) -> Diagnostic {
        let message = error.message().trim().replace('\n', ", ");
        Diagnostic {
            line: error.span().map_or(1, |span| self.at(span.start)),
            key: "syntax".to_owned(),
            found: message,
            allowed: "TOML 1.1 (toml.io)".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let lines = Lines::of("a\nbc\n\nd");
        let found: Vec<usize> = (0..7).map(|offset| lines.at(offset)).collect();
        assert_eq!(found, [1, 1, 2, 2, 2, 3, 4]);
    }
}
