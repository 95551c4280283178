//! The FAS3160 by Fibre Channel and by iSCSI: the cost of each link and each MTU to the host.

use crate::row::{Section, asked, given};
use crate::run::Run;

const FC_4K: Run = Run::of("fas3160", "FC 4 Gb, 4 KiB, 16 under way", (5, 10));
const G1_4K: Run = Run::of("fas3160", "1 GbE, 4 KiB, 16 under way", (5, 10));
const G10_4K: Run = Run::of("fas3160", "10 GbE, 4 KiB, 16 under way", (5, 10));
const FC_8K: Run = Run::of("fas3160", "FC 4 Gb, 8 KiB, 16 under way", (5, 10));
const G1_8K: Run = Run::of("fas3160", "1 GbE, 8 KiB, 16 under way", (5, 10));
const G10_8K: Run = Run::of("fas3160", "10 GbE, 8 KiB, 16 under way", (5, 10));
const G1J_4K: Run = Run::of(
    "fas3160",
    "1 GbE with MTU 9000, 4 KiB, 16 under way",
    (5, 10),
);
const G1J_8K: Run = Run::of(
    "fas3160",
    "1 GbE with MTU 9000, 8 KiB, 16 under way",
    (5, 10),
);
const G10J_4K: Run = Run::of(
    "fas3160",
    "10 GbE with MTU 9000, 4 KiB, 16 under way",
    (5, 10),
);
const G10J_8K: Run = Run::of(
    "fas3160",
    "10 GbE with MTU 9000, 8 KiB, 16 under way",
    (5, 10),
);
const G1_4K_4: Run = Run::of("fas3160", "1 GbE, 4 KiB, 4 under way", (5, 10));
const G10_8K_4: Run = Run::of("fas3160", "10 GbE, 8 KiB, 4 under way", (5, 10));
const G10J_8K_4: Run = Run::of(
    "fas3160",
    "10 GbE with MTU 9000, 8 KiB, 4 under way",
    (5, 10),
);
const G1J_4K_4: Run = Run::of(
    "fas3160",
    "1 GbE with MTU 9000, 4 KiB, 4 under way",
    (5, 10),
);

const RUNS: &[Run] = &[
    FC_4K, G1_4K, G10_4K, FC_8K, G1_8K, G10_8K, G1J_4K, G1J_8K, G10J_4K, G10J_8K, G1_4K_4,
    G1J_4K_4, G10_8K_4, G10J_8K_4,
];

pub fn section() -> Section {
    Section {
        title: "C. FAS3160, Hyper-V R2",
        runs: RUNS,
        rows: vec![
            given(
                "iSCSI over FC, 4 KiB, 10 GbE, processor of the host",
                "points",
                3.5,
                |o| o.host_points(G10J_4K, FC_4K),
                "given as 3 to 4; with jumbo frames, as all comparisons with FC",
            ),
            given(
                "10 GbE over 1 GbE, 4 KiB, throughput",
                "%",
                1.0,
                |o| Some((o.iops(G10J_4K)? / o.iops(G1J_4K)? - 1.0) * 100.0),
                "given as \"slightly ahead\"",
            )
            .between(0.0, 10.0),
            given(
                "iSCSI 10 GbE against FC, 4 KiB, throughput",
                "%",
                100.0,
                |o| Some(o.iops(G10J_4K)? / o.iops(FC_4K)? * 100.0),
                "given as comparable",
            )
            .between(95.0, 105.0),
            asked(
                "iSCSI over FC, 8 KiB, 10 GbE, processor of the host",
                "points",
                |o| o.host_points(G10J_8K, FC_8K),
                "",
            ),
            asked(
                "iSCSI over FC, 8 KiB, 1 GbE, processor of the host",
                "points",
                |o| o.host_points(G1J_8K, FC_8K),
                "",
            ),
            asked(
                "MTU 9000 over 1500, 1 GbE, 4 KiB, throughput",
                "%",
                |o| Some((o.iops(G1J_4K)? / o.iops(G1_4K)? - 1.0) * 100.0),
                "16 under way",
            ),
            asked(
                "MTU 9000 over 1500, 1 GbE, 8 KiB, throughput",
                "%",
                |o| Some((o.iops(G1J_8K)? / o.iops(G1_8K)? - 1.0) * 100.0),
                "16 under way",
            ),
            asked(
                "MTU 9000 over 1500, 10 GbE, 4 KiB, throughput",
                "%",
                |o| Some((o.iops(G10J_4K)? / o.iops(G10_4K)? - 1.0) * 100.0),
                "16 under way",
            ),
            asked(
                "MTU 9000 over 1500, 10 GbE, 8 KiB, throughput",
                "%",
                |o| Some((o.iops(G10J_8K)? / o.iops(G10_8K)? - 1.0) * 100.0),
                "16 under way",
            ),
            asked(
                "MTU 9000 over 1500, 1 GbE, 4 KiB, processor",
                "points",
                |o| o.host_points(G1J_4K, G1_4K),
                "16 under way",
            ),
            asked(
                "the same at 4 under way",
                "points",
                |o| o.host_points(G1J_4K_4, G1_4K_4),
                "how it moves with load",
            ),
            asked(
                "the same at 4 under way, of 1,000 I/Os a second",
                "points",
                |o| Some(o.host_points_each(G1J_4K_4)? - o.host_points_each(G1_4K_4)?),
                "interrupts are hardly shared",
            ),
            asked(
                "the same at 16 under way, of 1,000 I/Os a second",
                "points",
                |o| Some(o.host_points_each(G1J_4K)? - o.host_points_each(G1_4K)?),
                "interrupts are shared",
            ),
            asked(
                "MTU 9000 over 1500, 1 GbE, 8 KiB, processor",
                "points",
                |o| o.host_points(G1J_8K, G1_8K),
                "16 under way",
            ),
            asked(
                "MTU 9000 over 1500, 10 GbE, 8 KiB, processor",
                "points",
                |o| o.host_points(G10J_8K, G10_8K),
                "16 under way",
            ),
            asked(
                "the same at 4 under way",
                "points",
                |o| o.host_points(G10J_8K_4, G10_8K_4),
                "how it moves with load",
            ),
        ],
    }
}
