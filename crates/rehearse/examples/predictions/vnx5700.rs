//! SQL Server on the VNX5700: drives alone, the first of three steps.

use crate::row::{Row, Section, given};
use crate::run::{Outcomes, Run};
use rehearse::run::share::Part;

const VNX: Run = Run::of("vnx5700", "", (20, 30));
const VNX_LSI: Run = Run::of("vnx5700", "standalone with the LSI adapter", (20, 30));

/// Where slices lie on the drives is not published: in the order in which the pool filled, or all
/// over them.
const SPREAD: Run = VNX.with(&[
    ("controller.spa.placement", "spread"),
    ("controller.spb.placement", "spread"),
]);

const RUNS: &[Run] = &[VNX, SPREAD, VNX_LSI];

/// A line with its figure also where the pools are spread over the drives.
fn over(
    (what, unit, published): (&str, &'static str, f64),
    figure: impl Fn(&Outcomes, Run) -> Option<f64> + Copy + 'static,
    note: &'static str,
) -> Row {
    let row = given(what, unit, published, move |o| figure(o, VNX), note);
    row.over(move |o| figure(o, VNX), move |o| figure(o, SPREAD))
}

const DEEP: &str = "threads wait at queues of 64 for each disk, or 32 of the LSI adapter";

const CLOSED: &str = "6.9 operations of the data files to a transaction, as given: the error is that \
    of the operations";

pub fn section() -> Section {
    Section {
        title: "B. VNX5700, vSphere 5, SQL Server",
        runs: RUNS,
        rows: vec![
            over(
                ("pool 1, step 1", "IO/s", 6500.0),
                |o, run| o.stream(run, "SQL01", "data"),
                DEEP,
            ),
            over(
                ("pool 2, step 1", "IO/s", 7800.0),
                |o, run| o.stream(run, "SQL02", "data"),
                DEEP,
            ),
            given(
                "transactions of pool 1's server",
                "1/s",
                940.0,
                |o| o.transactions(VNX, "SQL01"),
                CLOSED,
            )
            .restated(),
            given(
                "transactions of pool 2's server",
                "1/s",
                1150.0,
                |o| o.transactions(VNX, "SQL02"),
                CLOSED,
            )
            .restated(),
            over(
                ("drives of pool 1", "%", 78.0),
                |o, run| o.busy(run, Part::Drives, "pool1"),
                "",
            ),
            over(
                ("drives of pool 2", "%", 91.0),
                |o, run| o.busy(run, Part::Drives, "pool2"),
                "",
            ),
            given(
                "processor of A",
                "%",
                18.0,
                |o| o.busy(VNX, Part::Controller, "spa"),
                "the cost of a command was chosen between two derivations with this figure in view",
            )
            .restated(),
            given(
                "processor of B",
                "%",
                20.0,
                |o| o.busy(VNX, Part::Controller, "spb"),
                "as above",
            )
            .restated(),
            given(
                "mean read latency, pool 1, above",
                "ms",
                20.0,
                |o| o.stream_read_ms(VNX, "SQL01", "data"),
                "given is only \"above 20 ms\"",
            )
            .between(20.0, f64::INFINITY),
            given(
                "PVSCSI and VMFS over LSI and raw mapping, same drives",
                "%",
                25.0,
                |o| {
                    Some(
                        (o.stream(VNX, "SQL02", "data")? / o.stream(VNX_LSI, "SQL02", "data")?
                            - 1.0)
                            * 100.0,
                    )
                },
                "of 832 threads LSI's queues let 32 to a disk and PVSCSI's 64",
            ),
        ],
    }
}
