//! The tables in `docs/MODELS.md` are what the examples print.

#[path = "../examples/hdd_table.rs"]
mod hdd_table;

#[test]
fn the_document_has_the_tables_of_the_hard_disk_drives() {
    let document = include_str!("../../../docs/MODELS.md");
    let missing: Vec<String> = hdd_table::tables()
        .lines()
        .filter(|line| !document.contains(line))
        .map(str::to_owned)
        .collect();
    let how = "cargo run -p ashlar-model --example hdd_table";
    assert!(missing.is_empty(), "not there, run {how}: {missing:#?}");
}
