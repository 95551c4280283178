//! `unsafe` stays in few rooms, and every use says why it is sound.

use crate::source::code_lines;
use crate::{Complaint, Tree};

/// The rooms that may hold it: the ring and the file descriptors of the real
/// world; the load generator's bindings to libiscsi and to the system; the loops of
/// parity that are chosen by processor.
pub const ROOMS: [&str; 4] = [
    "crates/engine/src/raid/parity/wide.rs",
    "crates/world-real/src/",
    "crates/load/src/endpoint/iscsi/",
    "crates/load/src/os.rs",
];

/// Complains about `unsafe` elsewhere, and about a block or impl without a
/// `// SAFETY:` comment right above it.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.rust() {
        let texts: Vec<&str> = file.text.lines().collect();
        for (at, line) in code_lines(file.text)
            .iter()
            .enumerate()
            .filter(|(_, l)| uses_unsafe(l))
        {
            if !is_allowed(file.path) {
                let what = "unsafe belongs in world-real, the load generator's bindings or raid/parity/wide";
                complaints.push(Complaint::at(file.path, at + 1, what));
            }
            if needs_reason(line) && !has_reason(&texts, at) {
                let what = "say in a `// SAFETY:` comment right above why this is sound";
                complaints.push(Complaint::at(file.path, at + 1, what));
            }
        }
    }
    complaints
}

fn is_allowed(path: &str) -> bool {
    ROOMS.iter().any(|room| path.starts_with(room))
}

/// Whether the word stands there as a keyword, and not inside `unsafe_code`.
fn uses_unsafe(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| word == "unsafe")
}

/// Declarations (`unsafe fn`, `unsafe extern`) ask something of others; blocks
/// and impls claim something.
fn needs_reason(line: &str) -> bool {
    line.contains("unsafe {") || line.contains("unsafe impl") || line.trim_end().ends_with("unsafe")
}

/// Whether the same line, or the run of comments, attributes and the beginning of
/// the statement above it, has a reason.
fn has_reason(texts: &[&str], at: usize) -> bool {
    const REACH_LINES: usize = 12;
    texts[at.saturating_sub(REACH_LINES)..=at]
        .iter()
        .rev()
        .enumerate()
        // A statement that ended, or a blank line, parts the comment from us.
        .take_while(|(back, text)| {
            let text = text.trim();
            *back == 0 || text.starts_with("//") || !(text.is_empty() || text.ends_with([';', '}']))
        })
        .any(|(_, text)| text.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &str = "crates/world-real/src/ring.rs";

    fn complaints(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn unsafe_outside_its_rooms_is_refused() {
        let sound = "// SAFETY: so.\nunsafe { f() }\n";
        assert_eq!(complaints(REAL, sound), 0);
        assert_eq!(
            complaints("crates/load/src/endpoint/iscsi/ffi.rs", sound),
            0
        );
        assert_eq!(complaints("crates/load/src/report.rs", sound), 1);
        assert_eq!(complaints("crates/engine/src/a.rs", sound), 1);
        assert_eq!(
            complaints(
                "crates/engine/src/a.rs",
                "#![deny(unsafe_code)] // unsafe\n"
            ),
            0
        );
    }

    #[test]
    fn a_block_without_a_reason_is_refused() {
        assert_eq!(complaints(REAL, "let a = 1;\nunsafe { f() }\n"), 1);
        assert_eq!(
            complaints(REAL, "// SAFETY: so.\nlet a = 1;\nunsafe { f() }\n"),
            1
        );
        assert_eq!(
            complaints(
                REAL,
                "// SAFETY: so,\n// and so.\nlet a = b(\n  unsafe { f() });\n"
            ),
            0
        );
        assert_eq!(complaints(REAL, "unsafe impl Send for X {}\n"), 1);
        assert_eq!(complaints(REAL, "unsafe fn f() {}\n"), 0);
    }
}
