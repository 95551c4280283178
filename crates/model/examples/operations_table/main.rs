//! The tables of migrations, availability, capacity and processors in docs/internals/models.md:
//! `cargo run -p ashlar-model --example operations_table`. Nothing in them is random.

mod availability;
mod capacity;
mod migration;

/// All tables, each after an empty line.
pub fn tables() -> String {
    [
        migration::given(),
        migration::costs(),
        migration::groups(),
        migration::predictions(),
        migration::loads(),
        availability::outages(),
        availability::votes(),
        capacity::moves(),
        capacity::processors(),
    ]
    .concat()
}

/// A table with its head, after an empty line.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rule = vec!["---"; head.len()].join("|");
    let rows = rows
        .into_iter()
        .map(|row| format!("| {} |\n", row.join(" | ")));
    let rows: String = rows.collect();
    format!("\n| {} |\n|{rule}|\n{rows}", head.join(" | "))
}

/// `model` against `given`.
fn error(model: f64, given: f64) -> String {
    format!("{:+.1} %", (model / given - 1.0) * 100.0)
}

#[allow(dead_code, reason = "a test has the tables as a module")]
fn main() {
    print!("{}", tables());
}
