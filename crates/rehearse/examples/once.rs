//! Runs a plan once and prints what came of it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used
)]
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let settings: Vec<_> = args
        .map(|text| site::plan::Setting::parse(&text).unwrap())
        .collect();
    let described = match site::plan::load(path.as_ref(), &settings) {
        Ok(described) => described,
        Err(error) => {
            println!("{error}");
            return;
        }
    };
    let began = std::time::Instant::now();
    let outcome = match rehearse::run(&described.base, 1) {
        Ok(outcome) => outcome,
        Err(error) => {
            println!("{error}");
            return;
        }
    };
    let wall = began.elapsed().as_secs_f64();
    print!("{}", load::report::table(&outcome.load));
    for share in &outcome.shares {
        if share.part != rehearse::share::Part::Drive {
            println!(
                "{:22} {:40} {:5.1} % {:9.1}/s {:8.3} ms service {:8.3} ms waiting",
                share.part.as_str(),
                share.name,
                share.utilisation * 100.0,
                share.per_s,
                share.service_ms,
                share.waiting_ms
            );
        }
    }
    for stage in rehearse::disk::Stage::ALL {
        println!(
            "{:12} {:9.3} ms",
            stage.as_str(),
            outcome.stages.ns[stage as usize] as f64 / 1e6 / outcome.stages.count.max(1) as f64
        );
    }
    let finding = rehearse::finding::finding(&outcome);
    println!("{}\n{}", finding.sentence, finding.next_sentence);
    println!(
        "{} operations in {wall:.2} s: {:.0}/s; trace {:016x}",
        outcome.operations,
        outcome.operations as f64 / wall,
        outcome.trace_hash
    );
}
