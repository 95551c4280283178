//! Services that are away while their host fails or is emptied, and votes of clusters.

use crate::row::{Section, given};
use crate::run::Run;
use model::availability::defaults::SQL_SERVER_RECOVERY_MEAN;
use model::availability::{FailoverCluster, Service, Witness, quorum};
use std::time::Duration;

/// The server's disk for its operating system is on five drives of 10k in RAID 5.
const POWER_LOSS: Run = Run::of("vnx5700", "a host loses its power", (20, 480));

/// The cluster's SQL Server as it was moved without load: how that divides into going offline
/// and coming online is not published, so all of it counts as the second.
const SQL_SERVER: Service = Service {
    offline: Duration::ZERO,
    online: Duration::from_secs(48),
    recovery: SQL_SERVER_RECOVERY_MEAN,
};

/// The most nodes of a cluster that may be lost at once.
fn lost_at_once(nodes: usize, witness: Witness) -> f64 {
    let survives = |lost: &usize| {
        let failed: Vec<_> = (0..*lost).map(quorum::Member::Node).collect();
        quorum::survives(nodes, witness, &failed)
    };
    (0..=nodes).rfind(survives).unwrap_or(0) as f64
}

/// Members of a cluster with a witness of which each may be lost, as the only one.
fn any_one_lost(nodes: usize) -> f64 {
    let members = (0..nodes).map(quorum::Member::Node);
    let members = members.chain([quorum::Member::Witness]);
    let survived = members.filter(|member| quorum::survives(nodes, Witness::Disk, &[*member]));
    survived.count() as f64
}

const INPUT: &str = "model; taken as given, as what the service takes to come online";

pub fn section() -> Section {
    Section {
        title: "G. Availability",
        runs: &[POWER_LOSS],
        rows: vec![
            given(
                "failover cluster, planned, idle",
                "s",
                48.0,
                |_| Some(planned_s()),
                INPUT,
            )
            .restated(),
            given(
                "failover cluster, planned, under load",
                "s",
                49.0,
                |_| Some(planned_s()),
                "model; load adds nothing there",
            )
            .restated(),
            given(
                "failover cluster, power loss of the host",
                "s",
                95.0,
                |_| Some(node_lost_s()),
                "model: defaults of heartbeats and arbitration, the 48 s, and the mean recovery",
            ),
            given(
                "hypervisor restart, power loss of the host",
                "s",
                370.0,
                |o| o.took_s(POWER_LOSS, "outage of host esx2"),
                "rehearsed with the boot's I/O on five drives of 10k; what a server's boot waits \
                 for beside its disk is not in it, nor is its I/O known: the count is of Windows 7",
            ),
            given(
                "nodes that two without a witness may lose",
                "",
                0.0,
                |_| Some(lost_at_once(2, Witness::None)),
                "model",
            )
            .restated(),
            given(
                "nodes that two with a witness may lose",
                "",
                1.0,
                |_| Some(lost_at_once(2, Witness::Disk)),
                "model",
            )
            .restated(),
            given(
                "nodes that two with a share as witness may lose",
                "",
                1.0,
                |_| Some(lost_at_once(2, Witness::Share)),
                "model",
            )
            .restated(),
            given(
                "of two nodes and a witness, each whose loss alone is survived",
                "",
                3.0,
                |_| Some(any_one_lost(2)),
                "model",
            )
            .restated(),
        ],
    }
}

fn planned_s() -> f64 {
    FailoverCluster::WINDOWS
        .planned(&SQL_SERVER)
        .duration()
        .as_secs_f64()
}

fn node_lost_s() -> f64 {
    FailoverCluster::WINDOWS
        .node_lost(&SQL_SERVER)
        .duration()
        .as_secs_f64()
}
