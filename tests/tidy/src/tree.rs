//! The repository as the rules see it: paths and texts.

use std::collections::BTreeMap;
use std::path::Path;

/// Directories that hold what was built or fetched, not what was written.
const SKIPPED: [&str; 5] = [".git", "target", "corpus", "artifacts", "node_modules"];

/// A file: its path in the repository, with `/`, and its text.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Path from the root of the repository.
    pub path: &'a str,
    /// Content; bytes that are not UTF-8 are replaced.
    pub text: &'a str,
}

/// Whether `name` in the directory `prefix` was built or fetched. Nothing in `src/` was.
fn is_skipped(prefix: &str, name: &str) -> bool {
    SKIPPED.contains(&name) && !prefix.contains("/src/")
}

/// Files by path.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads everything under `root` but what was built.
    ///
    /// # Errors
    /// When a file or directory can't be read.
    pub fn read(root: &Path) -> std::io::Result<Self> {
        let mut tree = Tree::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, directory: &Path, prefix: &str) -> std::io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if is_skipped(prefix, &name) {
                continue;
            }
            if kind.is_dir() {
                self.add(&entry.path(), &format!("{prefix}{name}/"))?;
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path())?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.files.insert(format!("{prefix}{name}"), text);
            }
        }
        Ok(())
    }

    /// A tree of these files, for samples.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let own = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        Tree {
            files: files.iter().map(own).collect(),
        }
    }

    /// All files, by path.
    pub fn files(&self) -> impl Iterator<Item = File<'_>> {
        self.files.iter().map(|(path, text)| File { path, text })
    }

    /// All Rust sources, by path.
    pub fn rust(&self) -> impl Iterator<Item = File<'_>> {
        self.files().filter(|file| file.path.ends_with(".rs"))
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file or a directory is there.
    pub fn holds(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_directory_is_read_whatever_its_name() {
        assert!(is_skipped("", "target") && is_skipped("fuzz/", "target"));
        assert!(!is_skipped("crates/load/src/", "target"));
        assert!(!is_skipped("crates/load/", "src"));
    }
}
