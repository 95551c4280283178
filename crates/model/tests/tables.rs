//! The tables in `docs/internals/models.md` equal the output of the examples.

#[path = "../examples/hdd_table.rs"]
mod hdd_table;
#[path = "../examples/operations_table/main.rs"]
mod operations_table;
#[path = "../examples/station_table.rs"]
mod station_table;

/// Every line that the example prints stands in the document.
fn compare(example: &str, tables: &str) {
    let document = include_str!("../../../docs/internals/models.md");
    let missing: Vec<&str> = tables
        .lines()
        .filter(|line| !document.contains(line))
        .collect();
    let how = format!("cargo run -p ashlar-model --example {example}");
    assert!(missing.is_empty(), "not there, run {how}: {missing:#?}");
}

#[test]
fn the_document_has_the_tables_of_the_hard_disk_drives() {
    compare("hdd_table", &hdd_table::tables());
}

#[test]
fn stations_are_within_two_percent_of_closed_forms_and_the_document_says_how_near() {
    let rows = station_table::rows();
    for (queue, figure, says, is) in &rows {
        let error = (is / says - 1.0).abs();
        assert!(error < 0.02, "{queue}, {figure}: {is}, not {says}");
    }
    compare("station_table", &station_table::tables(&rows));
}

#[test]
fn the_document_has_the_tables_of_operations() {
    compare("operations_table", &operations_table::tables());
}
