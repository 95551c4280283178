//! The list of all checks as a table in Markdown, for `docs/reference/site-checks.md`.

use super::{Severity, checks};

/// The table: a line for each check, the worst first.
pub fn table() -> String {
    let mut table =
        String::from("| check | severity | why | what to do | source |\n|---|---|---|---|---|\n");
    for severity in Severity::ALL {
        for check in checks().iter().filter(|check| check.severity == severity) {
            table += &format!(
                "| `{}` | {} | {} | {} | {} |\n",
                check.name,
                severity.as_str(),
                check.why,
                check.mend,
                check.source
            );
        }
    }
    table
}
