//! Links between documents lead somewhere: to a file that is there, and in a document to a
//! heading that is there. Pages of the site (`docs/`) link to nothing outside of it, because
//! `make docs` publishes these pages alone. They name files of the repository instead, as code; these
//! names lead somewhere, too.

use crate::{Complaint, Tree};

/// The pages that `make docs` makes a site of.
const SITE: &str = "docs/";

/// Names of files, as code, begin with one of these directories and end with one of these endings.
const ROOTS: [&str; 4] = ["crates/", "docs/", "scripts/", "tests/"];
const ENDINGS: [&str; 4] = [".md", ".rs", ".sh", ".txt"];

/// Complains about a relative Markdown link, or a name of a file, that leads nowhere, and about a link
/// out of the site.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.files().filter(|file| file.path.ends_with(".md")) {
        for (at, line) in prose_lines(file.text) {
            for link in links(line) {
                if let Some(what) = wrong(tree, file.path, link) {
                    complaints.push(Complaint::at(file.path, at, what));
                }
            }
            for name in names(line).filter(|name| !tree.holds(name)) {
                let what = format!("there is no file {name}: name the file as it is called now");
                complaints.push(Complaint::at(file.path, at, what));
            }
        }
    }
    complaints
}

/// What is wrong with a link in the document `path`.
fn wrong(tree: &Tree, path: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let home = path.rsplit_once('/').map_or("", |(home, _)| home);
    let (to, anchor) = match link.split_once('#') {
        Some((to, anchor)) => (to, Some(anchor)),
        None => (link, None),
    };
    let to = match to {
        "" => Some(path.to_owned()),
        _ => resolve(home, to).filter(|to| tree.holds(to)),
    };
    let Some(to) = to else {
        return Some(format!("the link to {link} leads nowhere"));
    };
    if path.starts_with(SITE) && !to.starts_with(SITE) {
        return Some(format!(
            "the link to {link} leaves docs/, so the site lacks its target: name the file instead"
        ));
    }
    let anchor = anchor?;
    let text = tree.text(&to).unwrap_or_default();
    let found = anchors(text).iter().any(|one| one == anchor);
    (!found).then(|| format!("{to} has no heading #{anchor}"))
}

/// Targets of `[text](target)` in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

/// Names of the repository's files, from its root, that stand as code in a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |code: &&str| {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let begins = ROOTS.iter().any(|root| code.starts_with(root));
        begins && ENDINGS.iter().any(|end| code.ends_with(end)) && code.chars().all(is_path)
    };
    line.split('`').skip(1).step_by(2).filter(is_name)
}

/// Lines outside of fenced code, with their numbers.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            return None;
        }
        (!is_code).then_some((at + 1, line))
    })
}

/// The anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let headings = prose_lines(text).filter(|(_, line)| line.starts_with('#'));
    for (_, heading) in headings {
        let anchor = anchor(heading.trim_start_matches('#').trim());
        let again = |at: &usize| all.contains(&format!("{anchor}-{at}"));
        let next = match all.contains(&anchor) {
            true => format!("{anchor}-{}", (1..).find(|at| !again(at)).unwrap_or(1)),
            false => anchor,
        };
        all.push(next);
    }
    all
}

/// Letters, digits, `-` and `_` in lower case, with `-` for each space.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.flat_map(char::to_lowercase).collect()
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

    fn complaints(text: &str) -> usize {
        check(&Tree::of(&[
            ("README.md", "[a](docs/A.md) [x](crates/x)"),
            ("docs/A.md", text),
            ("docs/B.md", "# Part\n## Part\n## `who` may, when?\n"),
            ("docs/x/y.toml", ""),
            ("crates/x/y.rs", ""),
        ]))
        .len()
    }

    #[test]
    fn a_dead_link_is_found() {
        assert_eq!(
            complaints("[b](B.md) [b](B.md#part) [x](x) [w](https://a.b/c)"),
            0
        );
        assert_eq!(complaints("[c](C.md)"), 1);
        assert_eq!(complaints("[c](../../B.md) and [d](../docs/D.md)"), 2);
    }

    #[test]
    fn a_link_to_no_heading_is_found() {
        assert_eq!(complaints("# Own\n[o](#own) [p](B.md#part-1)"), 0);
        assert_eq!(complaints("[w](B.md#who-may-when)"), 0);
        assert_eq!(complaints("[o](#own) [p](B.md#part-2)"), 2);
        assert_eq!(complaints("```sh\n# Own\n```\n[o](#own)"), 1);
    }

    #[test]
    fn a_name_of_no_file_is_found() {
        assert_eq!(complaints("`crates/x/y.rs`, `crates/x/*.rs` and `y.rs`"), 0);
        assert_eq!(complaints("`crates/x/z.rs` and crates/x/z.rs"), 1);
        assert_eq!(complaints("```\n`crates/x/z.rs`\n```"), 0);
    }

    #[test]
    fn a_link_out_of_the_site_is_found() {
        assert_eq!(complaints("[x](../crates/x)"), 1);
    }
}
