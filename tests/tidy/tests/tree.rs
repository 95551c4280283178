//! The rules, over the repository itself.

// A panic with its reason is how a test fails.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use tidy::{Complaint, Tree};

#[track_caller]
fn no_complaints(rule: fn(&Tree) -> Vec<Complaint>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root).unwrap();
    // A check over nothing would always be content.
    assert!(
        tree.rust().count() > 20,
        "the repository was not found at {}",
        root.display()
    );
    let complaints = rule(&tree);
    let shown: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    assert!(complaints.is_empty(), "\n{}\n", shown.join("\n"));
}

#[test]
fn arrows_point_downwards() {
    no_complaints(tidy::arrows::check);
}

#[test]
fn files_are_short() {
    no_complaints(tidy::length::check);
}

#[test]
fn deterministic_rooms_have_nothing_ambient() {
    no_complaints(tidy::determinism::check);
}

#[test]
fn deterministic_rooms_link_nothing_of_the_machine() {
    no_complaints(tidy::determinism::check_links);
}

#[test]
fn unsafe_is_confined_and_explained() {
    no_complaints(tidy::unsafety::check);
}

#[test]
fn modules_say_what_they_are_for() {
    no_complaints(tidy::headers::check);
}

#[test]
fn nothing_names_a_private_machine() {
    no_complaints(tidy::names::check);
}

#[test]
fn types_and_modules_have_no_old_names() {
    no_complaints(tidy::old_names::check);
}

#[test]
fn make_help_knows_every_target() {
    no_complaints(tidy::make::check);
}

#[test]
fn links_lead_somewhere() {
    no_complaints(tidy::links::check);
}

#[test]
fn one_word_for_one_thing() {
    no_complaints(tidy::glossary::check);
}

#[test]
fn events_are_quoted_as_the_program_says_them() {
    no_complaints(tidy::quotes::check);
}

#[test]
fn doc_comments_say_more_than_names() {
    no_complaints(tidy::comments::check);
}

#[test]
fn functions_are_short() {
    no_complaints(tidy::functions::check);
}

#[test]
fn modules_stand_on_those_below_them() {
    no_complaints(tidy::floors::check);
}

#[test]
fn modules_beside_each_other_make_no_circle() {
    no_complaints(tidy::circles::check);
}

#[test]
fn modules_with_modules_are_directories() {
    no_complaints(tidy::module_files::check);
}
