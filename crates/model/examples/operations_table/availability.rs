//! Outages and votes.

use super::{error, table};
use model::availability::defaults::{
    SQL_SERVER_RECOVERY_MEAN, SQL_SERVER_RECOVERY_MOST, WINDOWS_BOOT_IOS,
};
use model::availability::outage::boot;
use model::availability::{
    Adjustment, Cluster, FailoverCluster, HypervisorRestart, Member, Service, Witness, survives,
};
use std::time::Duration;

/// SQL Server's group as it was measured: moved without load it is away for 48 s. How that
/// divides is not published, so all of it counts as coming online.
const MOVED_IDLE: Duration = Duration::from_secs(48);

fn service(recovery: Duration) -> Service {
    Service {
        offline: Duration::ZERO,
        online: MOVED_IDLE,
        recovery,
    }
}

pub fn outages() -> String {
    let mean = service(SQL_SERVER_RECOVERY_MEAN);
    let cluster = FailoverCluster::WINDOWS;
    let mut rows = vec![
        (
            "cluster, planned, under load".to_owned(),
            Some(49.0),
            cluster.planned(&mean),
        ),
        (
            "cluster, power loss".into(),
            Some(95.0),
            cluster.node_lost(&mean),
        ),
    ];
    for (name, recovery) in [
        ("least", Duration::ZERO),
        ("most", SQL_SERVER_RECOVERY_MOST),
    ] {
        let name = format!("cluster, power loss, {name} recovery");
        rows.push((name, Some(95.0), cluster.node_lost(&service(recovery))));
    }
    rows.push((
        "cluster, all paths lost".into(),
        None,
        cluster.storage_lost(&mean),
    ));
    for millis in [1, 3, 5] {
        let boots = boot(WINDOWS_BOOT_IOS, Duration::from_millis(millis));
        let name = format!("hypervisor restart, boot I/Os of {millis} ms");
        rows.push((
            name,
            Some(370.0),
            HypervisorRestart::VSPHERE_5.host_lost(&mean, boots),
        ));
    }
    let rows = rows.into_iter().map(|(name, given, outage)| {
        let model = outage.duration().as_secs_f64();
        let stages = outage
            .stages
            .iter()
            .filter(|stage| !stage.duration.is_zero());
        let stages = stages.map(|stage| format!("{} {}", stage.name, stage.duration.as_secs_f64()));
        vec![
            name,
            given.map_or("–".into(), |given: f64| format!("{given:.0}")),
            format!("{model:.1}"),
            given.map_or("–".into(), |given| error(model, given)),
            stages.collect::<Vec<_>>().join(", "),
        ]
    });
    table(
        &["event", "given, s", "model, s", "error", "stages, s"],
        rows,
    )
}

pub fn votes() -> String {
    let yes = |goes_on: bool| if goes_on { "goes on" } else { "stops" }.to_owned();
    let witnesses = [("no", Witness::None), ("disk or share", Witness::Disk)];
    let rows = [1usize, 2, 3, 4, 5].into_iter().flat_map(|nodes| {
        witnesses.map(|(name, witness)| {
            let failed = |lost: usize| (0..lost).map(Member::Node).collect::<Vec<_>>();
            let at_once = (0..=nodes).rfind(|&lost| survives(nodes, witness, &failed(lost)));
            let in_turn = |adjustment| {
                let mut cluster = Cluster::new(nodes, witness, adjustment);
                // The best order: first who has no vote.
                let mut order: Vec<usize> = (0..nodes).rev().collect();
                order.sort_by_key(|&node| cluster.votes(Member::Node(node)));
                order
                    .iter()
                    .take_while(|&&node| cluster.lose(Member::Node(node)))
                    .count()
            };
            let lost = [Member::Node(0), Member::Witness];
            vec![
                format!("{nodes}"),
                name.into(),
                yes(survives(nodes, witness, &lost[..1])),
                format!("{}", at_once.unwrap_or(0)),
                format!("{}", in_turn(Adjustment::Nodes)),
                format!("{}", in_turn(Adjustment::NodesAndWitness)),
                yes(survives(nodes, witness, &lost)),
            ]
        })
    });
    table(
        &[
            "nodes",
            "witness",
            "one node lost",
            "most lost at once",
            "one after the other, 2012",
            "2012 R2",
            "one node and the witness lost",
        ],
        rows,
    )
}
