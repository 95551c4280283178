//! Doc comments of public items say something that the name does not.

use crate::{Complaint, Tree};

/// A comment of no more words repeats the name.
const WORDS_MAX: usize = 3;

/// Complains about public items of the crates with a doc comment of three words or fewer.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let is_of_a_crate = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    for file in tree.rust().filter(|file| is_of_a_crate(file.path)) {
        let (mut said, mut begins) = (String::new(), 0);
        for (at, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            if let Some(text) = line.strip_prefix("///") {
                begins = if said.is_empty() { at + 1 } else { begins };
                said.push_str(text);
                said.push(' ');
                continue;
            }
            // Attributes stand between a comment and its item.
            if line.starts_with("#[") {
                continue;
            }
            let words = said.split_whitespace().count();
            if line.starts_with("pub ") && !said.is_empty() && words <= WORDS_MAX {
                let what = format!(
                    "say something that the name does not, in more than {WORDS_MAX} words: {}",
                    said.trim()
                );
                complaints.push(Complaint::at(file.path, begins, what));
            }
            said.clear();
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<usize> {
        let complaints = check(&Tree::of(&[("crates/a/src/a.rs", text)]));
        complaints.iter().map(|one| one.line).collect()
    }

    #[test]
    fn a_comment_that_repeats_the_name_fails() {
        let short =
            "pub struct A {\n    /// Its name.\n    #[serde(default)]\n    pub name: String,\n}\n";
        assert_eq!(complaints(short), [2]);
        let long = short.replace("Its name", "The name of the host in the site file");
        assert_eq!(complaints(&long), [0; 0]);
        let private = short.replace("    pub name", "    name");
        assert_eq!(complaints(&private), [0; 0]);
        let two_lines = "/// A host that\n/// logs in.\npub struct Host;\n";
        assert_eq!(complaints(two_lines), [0; 0]);
    }
}
