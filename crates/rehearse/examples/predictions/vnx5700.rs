//! SQL Server on the VNX5700: drives alone, the first of three steps.

use crate::row::{Section, given};
use crate::run::Run;
use rehearse::run::share::Part;

const VNX: Run = Run::of("vnx5700", "", (20, 30));
const VNX_LSI: Run = Run::of("vnx5700", "standalone with the LSI adapter", (20, 30));

const RUNS: &[Run] = &[VNX, VNX_LSI];

const DEEP: &str = "drives are modelled at the upper end of what they do with deep queues \
    (docs/internals/models.md), and the hot part of the data lies close together";

const CLOSED: &str = "6.9 operations of the data files to a transaction, as given: the error is that \
    of the operations";

pub fn section() -> Section {
    Section {
        title: "B. VNX5700, vSphere 5, SQL Server",
        runs: RUNS,
        rows: vec![
            given(
                "pool 1, step 1",
                "IO/s",
                6500.0,
                |o| o.stream(VNX, "SQL01", "data"),
                DEEP,
            ),
            given(
                "pool 2, step 1",
                "IO/s",
                7800.0,
                |o| o.stream(VNX, "SQL02", "data"),
                DEEP,
            ),
            given(
                "transactions of pool 1's server",
                "1/s",
                940.0,
                |o| o.transactions(VNX, "SQL01"),
                CLOSED,
            ),
            given(
                "transactions of pool 2's server",
                "1/s",
                1150.0,
                |o| o.transactions(VNX, "SQL02"),
                CLOSED,
            ),
            given(
                "drives of pool 1",
                "%",
                78.0,
                |o| o.busy(VNX, Part::Drives, "pool1"),
                "",
            ),
            given(
                "drives of pool 2",
                "%",
                91.0,
                |o| o.busy(VNX, Part::Drives, "pool2"),
                "",
            ),
            given(
                "processor of A",
                "%",
                18.0,
                |o| o.busy(VNX, Part::Controller, "spa"),
                "the cost of a command was chosen between two derivations with this figure in view",
            ),
            given(
                "processor of B",
                "%",
                20.0,
                |o| o.busy(VNX, Part::Controller, "spb"),
                "as above",
            ),
            given(
                "mean read latency, pool 1, above",
                "ms",
                20.0,
                |o| o.stream_read_ms(VNX, "SQL01", "data"),
                "given is only \"above 20 ms\"",
            ),
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
                "of 832 threads LSI's queues let 32 to a disk and PVSCSI's 64; \
                 modelled drives make more of a deep queue than real ones",
            ),
        ],
    }
}
