//! One style of modules: a module with modules of its own is a directory with a `mod.rs`; one
//! without is a file. A file may have its unit tests beside it, in `name/tests.rs`.

use crate::{Complaint, Tree};
use std::collections::BTreeSet;

/// Complains about a file that has modules in the directory of its name.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let paths: BTreeSet<&str> = tree.rust().map(|file| file.path).collect();
    let has_modules = |path: &&&str| {
        let Some(stem) = path.strip_suffix(".rs") else {
            return false;
        };
        let directory = format!("{stem}/");
        let below = paths
            .iter()
            .filter_map(|other| other.strip_prefix(&directory));
        below.into_iter().any(|inside| inside != "tests.rs")
    };
    let wrong = paths.iter().filter(has_modules);
    wrong
        .map(|path| {
            let directory = path.trim_end_matches(".rs");
            let what = format!("it has modules of its own: call it {directory}/mod.rs");
            Complaint::at(path, 0, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_a_directory_of_its_name_is_refused() {
        let complaints = |paths: &[&str]| {
            let files: Vec<(&str, &str)> = paths.iter().map(|path| (*path, "")).collect();
            check(&Tree::of(&files)).len()
        };
        let file = "crates/engine/src/pool.rs";
        assert_eq!(complaints(&[file, "crates/engine/src/pool/open.rs"]), 1);
        assert_eq!(complaints(&[file, "crates/engine/src/pool/tests.rs"]), 0);
        assert_eq!(complaints(&[file, "crates/engine/src/pools/open.rs"]), 0);
        let style = [
            "crates/engine/src/pool/mod.rs",
            "crates/engine/src/pool/open.rs",
        ];
        assert_eq!(complaints(&style), 0);
    }
}
