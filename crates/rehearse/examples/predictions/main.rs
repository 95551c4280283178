//! Rehearses the published sites and prints docs/internals/predictions.md: the published figure,
//! the rehearsed figure, and the error. `make predictions` writes the file. With letters of
//! sections (`make predictions SECTIONS="B E"`) only these are run, and printed.
//!
//! Runs are shorter than the published ones: virtual time needs no ramp for caches and
//! people. Every run is of one seed; what differs between seeds is far below the errors.

// A program for people: it takes all cores and says how far it is.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod at_rest;
mod availability;
mod fas3160;
mod fs7500;
mod hyperv_r2_lab;
mod ps6110xv;
mod row;
mod rules_of_thumb;
mod run;
mod storage_drs;
mod storage_migration;
mod storage_qos;
mod vnx5700;

use row::Section;
use run::Outcomes;

/// The head of the page.
const HEAD: &str = "\
# Predictions

Published figures of sites that others have measured, beside what `ashlar rehearse` says of
the same hardware. `make predictions` runs everything anew and writes this file.

One set of models serves all sites ([MODELS.md](models.md)); no constant is fitted to one of
them. What runs on the modelled hardware is **Ashlar's engine, not the array's own software**:
where the two differ, so may the figures. Runs are of one seed and shorter than the published
ones (virtual time needs no ramp). The target is an error of 15 % at most for what is
published; where it is missed the reason is named, as far as it is known. Tiering and flash
cache are not in the engine yet, so steps 2 and 3 of the VNX5700 have no figure.
Where a line says *model*, nothing was rehearsed, since no storage has a part in it. A dash is a
figure that nothing here says.";

fn main() {
    let mut sections = vec![
        rules_of_thumb::section(),
        vnx5700::section(),
        fas3160::section(),
        fs7500::section(),
        ps6110xv::section(),
        storage_migration::section(),
        hyperv_r2_lab::section(),
        storage_qos::section(),
        availability::section(),
        storage_drs::section(),
    ];
    let letters: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |section: &Section| {
        let mut any = letters.iter();
        letters.is_empty() || any.any(|letter| section.title.starts_with(letter.as_str()))
    };
    sections.retain(wanted);
    if sections.is_empty() {
        eprintln!("no section is called {letters:?}: say its first letter, such as B");
        std::process::exit(2);
    }
    let runs = sections.iter().flat_map(|section| section.runs);
    let outcomes = Outcomes::of_all(runs.copied().collect());
    if letters.is_empty() {
        println!("{HEAD}");
    }
    for section in &sections {
        print!("{}", section.text(&outcomes));
    }
    for failure in outcomes.failures() {
        println!("\n{failure}");
    }
}
