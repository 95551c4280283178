//! What a capture measured beside what is predicted, as a table.

use super::super::schema::{BesideReport, PairReport};
use workload::report::page::{self, escape};

/// A row for each figure of each volume; nothing where there are none.
pub(super) fn section(beside: &[BesideReport]) -> String {
    if beside.is_empty() {
        return String::new();
    }
    let head = "<tr><th>volume</th><th class=\"text\">figure</th><th>measured</th>\
                <th>predicted</th><th>difference</th></tr>";
    let rows: String = beside.iter().map(rows).collect();
    format!(
        "<h3>Measured beside predicted</h3>\n{}",
        page::table("Measured beside predicted", head, &rows)
    )
}

fn rows(one: &BesideReport) -> String {
    let figures = one.figures().into_iter();
    let row = |(figure, pair): (&str, &PairReport)| {
        let [measured, predicted, difference] = pair.cells();
        format!(
            "<tr><th>{}</th><td class=\"text\">{figure}</td><td>{measured}</td>\
             <td>{predicted}</td><td>{difference}</td></tr>\n",
            escape(&one.vm_group)
        )
    };
    figures.map(row).collect()
}
