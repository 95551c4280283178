//! Links between documents lead somewhere.

use crate::{Complaint, Tree};

/// Complains about a relative Markdown link to a file that is not there.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.files().filter(|file| file.path.ends_with(".md")) {
        let home = file.path.rsplit_once('/').map_or("", |(home, _)| home);
        for (at, line) in file.text.lines().enumerate() {
            for link in links(line) {
                let path = link.split('#').next().unwrap_or_default();
                let inside =
                    !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:");
                if inside && !resolve(home, path).is_some_and(|path| tree.holds(&path)) {
                    let what = format!("the link to {link} leads nowhere");
                    complaints.push(Complaint::at(file.path, at + 1, what));
                }
            }
        }
    }
    complaints
}

/// Targets of `[text](target)` in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

/// A path from the root; `None` when it leaves the repository.
fn resolve(home: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = home.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_link_is_found() {
        let complaints = |text: &str| {
            check(&Tree::of(&[
                ("docs/A.md", text),
                ("docs/B.md", ""),
                ("crates/x/y.rs", ""),
            ]))
            .len()
        };
        assert_eq!(
            complaints("[b](B.md) [b](B.md#part) [x](../crates/x) [w](https://a.b/c)"),
            0
        );
        assert_eq!(complaints("[c](C.md)"), 1);
        assert_eq!(complaints("[c](../../B.md) and [d](../docs/D.md)"), 2);
    }
}
