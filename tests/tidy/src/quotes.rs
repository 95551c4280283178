//! Texts of events and of the log that `docs/reference/events.md` quotes are those of the program.
//!
//! A quote is code in the page, with `…`, capital letters and numbers for what differs. What is left
//! between these has to stand in a string literal of the program, where it has three words or more.

use crate::source::literals;
use crate::{Complaint, Tree};

const PAGE: &str = "docs/reference/events.md";
/// Fewer words say too little to be looked for.
const WORDS_MIN: usize = 3;
/// Beginnings of code that is a command, not a quote.
const COMMANDS: [&str; 2] = ["ashlar ", "journalctl "];

/// Complains about each quote that the program does not say.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let said: Vec<String> = tree
        .rust()
        .filter(|file| file.path.contains("/src/"))
        .flat_map(|file| literals(file.text))
        .map(|literal| plain(&literal.text))
        .collect();
    let is_said = |part: &str| said.iter().any(|text| text.contains(part));
    // A word of a count may come from elsewhere: "block" or "blocks".
    let is_known =
        |part: &str| is_said(part) || part.split_once(' ').is_some_and(|(_, rest)| is_said(rest));
    let mut complaints = Vec::new();
    let text = tree.text(PAGE).unwrap_or_default();
    let mut is_block = false;
    for (at, line) in text.lines().enumerate() {
        is_block ^= line.starts_with("```");
        let parts = quotes(line).flat_map(parts).collect::<Vec<_>>();
        for part in parts.iter().filter(|part| !is_block && !is_known(part)) {
            let what = format!("the program says nothing with {part:?}: quote what it says");
            complaints.push(Complaint::at(PAGE, at + 1, what));
        }
    }
    complaints
}

/// A text with single spaces, in lower case, without escapes.
fn plain(text: &str) -> String {
    let text = text.replace("\\\"", "\"").to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Code in a line that may quote the program.
fn quotes(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split('`').skip(1).step_by(2);
    code.filter(|code| !COMMANDS.iter().any(|command| code.starts_with(command)))
}

/// What a quote says in words of its own: without names, numbers and punctuation.
fn parts(quote: &str) -> Vec<String> {
    // Marks, names in capitals, and numbers.
    let stands_for_others = |word: &&str| {
        let is_number = word.chars().any(|c| c.is_ascii_digit());
        is_number || !word.chars().any(char::is_lowercase)
    };
    let spaced = quote.replace(|c: char| "…'\"():;,={}".contains(c), " | ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let runs = words.split(stands_for_others);
    let long = runs.filter(|run| run.len() >= WORDS_MIN);
    long.map(|run| plain(run.join(" ").trim_end_matches('.')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(page: &str) -> usize {
        let program =
            "fn f() { format!(\"drive '{name}' is out of use: {} reads have\\\n   failed\") }";
        check(&Tree::of(&[(PAGE, page), ("crates/x/src/y.rs", program)])).len()
    }

    #[test]
    fn a_quote_that_the_program_does_not_say_is_found() {
        assert_eq!(
            complaints("`drive 'NAME' is out of use: N reads have failed`"),
            0
        );
        assert_eq!(
            complaints("`… is out of use …` and `blocks reads have failed`"),
            0
        );
        assert_eq!(
            complaints("`drive 'NAME' is out of service: N reads have failed`"),
            1
        );
        assert_eq!(
            complaints("```\nis out of service `is out of service`\n```"),
            0
        );
        assert_eq!(complaints("Run `ashlar drive replace the failed one`."), 0);
    }
}
