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

This page is for readers who want to know how far a rehearsal is off. It compares published
measurements of sites with rehearsals of the same hardware by `ashlar rehearse`. `make predictions`
runs all rehearsals and writes this file.

One set of models serves all sites ([Models](models.md)). We fit no constant to a site. The modelled
hardware runs **Ashlar's engine, not the array's own software**: where the two differ, the figures
may differ. Runs have one seed. Loads are measured as they last: a run goes on until neither write logs
nor changed checksums grow, for seven windows at most. A run in which something happens, such as a
move or a failure, is measured once. The target is an error of 10 % at most in the median, and of
30 % in the worst line. Where a line misses it, the line names the reason, as far as we know it. The
engine has no tiering and no flash cache yet, so steps 2 and 3 of the VNX5700 have no figure.

- Only **predictions** count among the errors. A line is *restated* when the rehearsal gives back what was
  put in: a rule, an identity, a datasheet, or a figure that a constant was chosen with.
- Where only a bound is published, a line is *met* or **not met**.
- A second figure, \"a to b\", is the range over what is assumed because nothing is published.
- A line that says *model* has no rehearsal, because no storage has a part in it. A dash stands for a
  figure that we do not have.";

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
    let began = std::time::Instant::now();
    let runs = sections.iter().flat_map(|section| section.runs);
    let outcomes = Outcomes::of_all(runs.copied().collect());
    eprintln!("all runs took {} s", began.elapsed().as_secs());
    if letters.is_empty() {
        println!("{HEAD}");
    }
    print!("{}", row::summary(&sections, &outcomes));
    for section in &sections {
        print!("{}", section.text(&outcomes));
    }
    for failure in outcomes.failures() {
        println!("\n{failure}");
    }
}
