//! The tables of flash drives in docs/internals/models.md: `cargo run -p ashlar-model
//! --example flash_table`. All seeds are 1.

use base::Prng;
use model::RequestKind;
use model::flash::closed_loop::{self, Outcome, run};
use model::flash::{DATASHEETS, Flash, State, write_amplification};

fn random(flash: &Flash, depth: u64, writes: u64, commands: (u64, u64)) -> Outcome {
    let root = Prng::from_seed(1);
    let mut drive = State::new(flash, &mut root.stream("drive"));
    let load = closed_loop::random(flash, writes, root.stream("load"));
    run(&mut drive, depth, commands, load)
}

fn sequential(flash: &Flash, kind: RequestKind) -> Outcome {
    let mut drive = State::new(flash, &mut Prng::from_seed(1));
    run(
        &mut drive,
        32,
        (2_000, 20_000),
        closed_loop::sequential(kind),
    )
}

fn points() {
    println!("| drive | point | datasheet | modelled | difference |");
    println!("|---|---|---|---|---|");
    for (flash, depth, [reads, writes, read, written]) in DATASHEETS {
        let rows = [
            (
                "4 KiB random reads/s",
                reads,
                random(&flash, depth, 0, (20_000, 200_000)).iops(),
            ),
            (
                "4 KiB random writes/s, steady",
                writes,
                random(&flash, depth, 100, (50_000, 200_000)).iops(),
            ),
            (
                "128 KiB sequential reads, MB/s",
                read,
                sequential(&flash, RequestKind::Read).megabytes_per_second(),
            ),
            (
                "128 KiB sequential writes, MB/s",
                written,
                sequential(&flash, RequestKind::Write).megabytes_per_second(),
            ),
        ];
        for (point, datasheet, modelled) in rows {
            println!(
                "| {} | {point} | {datasheet:.0} | {modelled:.0} | {:+.1} % |",
                flash.name,
                (modelled / datasheet - 1.0) * 100.0
            );
        }
    }
}

fn latencies() {
    println!(
        "\n| drive | read, one at a time, µs | write, one at a time, µs | write amplification |"
    );
    println!("|---|---|---|---|");
    for (flash, ..) in DATASHEETS {
        println!(
            "| {} | {:.0} | {:.0} | {:.2} |",
            flash.name,
            random(&flash, 1, 0, (0, 1_000)).read_micros(),
            random(&flash, 1, 100, (0, 64)).write_micros(),
            flash.write_amplification()
        );
    }
}

fn mixes() {
    println!("\n| drive | writes | IOPS | read, µs | write, µs |");
    println!("|---|---|---|---|---|");
    for (flash, ..) in DATASHEETS {
        for writes in [0, 10, 30, 50, 100] {
            let outcome = random(&flash, 32, writes, (50_000, 100_000));
            let micros = |count: u64, mean: f64| {
                if count == 0 {
                    "–".into()
                } else {
                    format!("{mean:.0}")
                }
            };
            println!(
                "| {} | {writes} % | {:.0} | {} | {} |",
                flash.name,
                outcome.iops(),
                micros(outcome.reads, outcome.read_micros()),
                micros(outcome.writes, outcome.write_micros())
            );
        }
    }
}

fn amplifications() {
    println!("\n| over-provisioning | write amplification |");
    println!("|---|---|");
    for over_provisioning in [0.07, 0.145, 0.25, 0.3, 0.5, 1.0] {
        println!(
            "| {over_provisioning:.3} | {:.2} |",
            write_amplification(over_provisioning)
        );
    }
}

fn main() {
    points();
    latencies();
    mixes();
    amplifications();
}
