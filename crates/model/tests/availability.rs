//! Quorum against its rules, and outages against the sums of their parts.

use model::availability::defaults::{SQL_SERVER_RECOVERY_MEAN, SQL_SERVER_RECOVERY_MOST};
use model::availability::outage::{boot, log_replay};
use model::availability::{
    Adjustment, Cluster, FailoverCluster, HypervisorRestart, Member, Service, Witness, survives,
};
use std::time::Duration;

use Member::Node;

/// Every set of members of a cluster of so many nodes, as bits: the witness is the last one.
fn sets(nodes: usize) -> impl Iterator<Item = Vec<Member>> {
    (0..1usize << (nodes + 1)).map(move |bits| {
        let nodes_lost = (0..nodes).filter(|node| bits >> node & 1 == 1).map(Node);
        let witness = (bits >> nodes & 1 == 1).then_some(Member::Witness);
        nodes_lost.chain(witness).collect()
    })
}

#[test]
fn a_cluster_goes_on_with_more_than_half_of_its_votes() {
    for nodes in 1..=6 {
        for failed in sets(nodes) {
            let witness_lost = failed.contains(&Member::Witness);
            let nodes_left = nodes + usize::from(witness_lost) - failed.len();
            let without = nodes_left as f64 > nodes as f64 / 2.0;
            assert_eq!(survives(nodes, Witness::None, &failed), without);
            let left = nodes_left + usize::from(!witness_lost);
            let with = nodes_left > 0 && left as f64 > (nodes + 1) as f64 / 2.0;
            for witness in [Witness::Disk, Witness::Share] {
                assert_eq!(
                    survives(nodes, witness, &failed),
                    with,
                    "{nodes} {failed:?}"
                );
            }
        }
    }
}

#[test]
fn two_nodes_with_a_witness_survive_any_one_failure_and_without_one_none() {
    for lost in [Node(0), Node(1), Member::Witness] {
        assert!(survives(2, Witness::Disk, &[lost]));
        assert!(survives(2, Witness::Share, &[lost]));
    }
    assert!(!survives(2, Witness::None, &[Node(0)]));
    assert!(!survives(2, Witness::None, &[Node(1)]));
    assert!(survives(2, Witness::None, &[]));
    assert!(!survives(2, Witness::Disk, &[Node(1), Member::Witness]));
    assert!(survives(2, Witness::Disk, &[Node(1), Node(1), Node(7)]));
}

#[test]
fn fixed_votes_one_after_the_other_are_as_all_at_once() {
    for nodes in 1..=5 {
        for witness in [Witness::None, Witness::Disk] {
            for failed in sets(nodes) {
                let mut cluster = Cluster::new(nodes, witness, Adjustment::Fixed);
                let mut runs = true;
                for &member in &failed {
                    runs = cluster.lose(member);
                }
                assert_eq!(runs, survives(nodes, witness, &failed), "{failed:?}");
            }
        }
    }
}

#[test]
fn of_two_nodes_without_a_witness_one_has_the_vote() {
    for adjustment in [Adjustment::Nodes, Adjustment::NodesAndWitness] {
        let pair = Cluster::new(2, Witness::None, adjustment);
        assert!(pair.votes(Node(0)) && !pair.votes(Node(1)));
        assert!(pair.clone().lose(Node(1)));
        assert!(
            !pair.clone().lose(Node(0)),
            "losing the voting node stops it"
        );
    }
}

#[test]
fn adjusted_votes_let_a_cluster_shrink_to_one_node() {
    for adjustment in [Adjustment::Nodes, Adjustment::NodesAndWitness] {
        let mut cluster = Cluster::new(5, Witness::None, adjustment);
        for node in [4, 3, 2, 1] {
            assert!(cluster.lose(Node(node)), "{adjustment:?} {node}");
        }
        let mut at_once = Cluster::new(5, Witness::None, Adjustment::Fixed);
        assert!(at_once.lose(Node(4)) && at_once.lose(Node(3)) && !at_once.lose(Node(2)));
    }
}

#[test]
fn the_last_node_needs_the_witness() {
    // "Behavior of Dynamic Witness on Windows Server 2012 R2": four nodes, of which three go,
    // then the witness.
    let mut cluster = Cluster::new(4, Witness::Disk, Adjustment::NodesAndWitness);
    assert!(cluster.votes(Member::Witness));
    assert!(cluster.lose(Node(3)));
    assert!(!cluster.votes(Member::Witness), "three nodes need none");
    assert!(cluster.lose(Node(2)));
    assert!(cluster.votes(Member::Witness));
    assert!(cluster.lose(Node(1)));
    assert!(!cluster.lose(Member::Witness));
    assert!(!cluster.lose(Node(9)), "it does not start again by itself");
    // Two nodes and a witness never have fewer than three votes; one node alone has its own.
    let mut pair = Cluster::new(2, Witness::Disk, Adjustment::NodesAndWitness);
    assert!(pair.lose(Member::Witness) && !pair.clone().lose(Node(0)) && !pair.lose(Node(1)));
    let mut single = Cluster::new(1, Witness::Disk, Adjustment::NodesAndWitness);
    assert!(single.lose(Member::Witness));
}

#[test]
fn a_lost_witness_leaves_an_odd_number_of_votes_to_2012_r2_only() {
    let left = |adjustment| {
        let mut cluster = Cluster::new(4, Witness::Share, adjustment);
        assert!(cluster.lose(Member::Witness));
        (0..4).filter(|&node| cluster.votes(Node(node))).count()
    };
    let without = |adjustment| {
        let cluster = Cluster::new(4, Witness::None, adjustment);
        (0..4).filter(|&node| cluster.votes(Node(node))).count()
    };
    assert_eq!(without(Adjustment::NodesAndWitness), 3);
    assert_eq!(without(Adjustment::Nodes), 4);
    assert_eq!(left(Adjustment::NodesAndWitness), 3);
    assert_eq!(left(Adjustment::Nodes), 4);
    // So two of the four nodes may go after it, one after the other.
    let mut r2 = Cluster::new(4, Witness::Share, Adjustment::NodesAndWitness);
    assert!(r2.lose(Member::Witness) && r2.lose(Node(3)) && r2.lose(Node(2)));
    let mut older = Cluster::new(4, Witness::Share, Adjustment::Nodes);
    assert!(older.lose(Member::Witness) && older.lose(Node(3)));
    assert!(
        !older.lose(Node(2)),
        "two of three nodes and a lost witness's vote"
    );
}

#[test]
fn a_disk_has_the_configuration_and_a_share_has_not() {
    assert!(Witness::Disk.starts_a_stale_node());
    assert!(!Witness::Share.starts_a_stale_node() && !Witness::None.starts_a_stale_node());
}

const SERVICE: Service = Service {
    offline: Duration::from_secs(7),
    online: Duration::from_secs(20),
    recovery: Duration::from_secs(11),
};

#[test]
fn outages_are_the_sums_of_their_stages() {
    let cluster = FailoverCluster::WINDOWS;
    let secs = |outage: model::availability::Outage| outage.duration().as_secs_f64();
    assert_eq!(secs(cluster.planned(&SERVICE)), 27.0);
    assert_eq!(secs(cluster.node_lost(&SERVICE)), 5.0 + 7.0 + 20.0 + 11.0);
    assert_eq!(
        secs(cluster.storage_lost(&SERVICE)),
        20.0 + 7.0 + 20.0 + 11.0
    );
    let restart = HypervisorRestart::VSPHERE_5;
    let boot = Duration::from_secs(100);
    // The lock has expired by the time at which the host is declared dead.
    let first = 18.0 + 12.5 + 100.0 + 20.0 + 11.0;
    assert_eq!(secs(restart.host_lost(&SERVICE, boot)), first);
    let slow_locks = HypervisorRestart {
        lock_expiry: Duration::from_secs(25),
        ..restart
    };
    assert_eq!(secs(slow_locks.host_lost(&SERVICE, boot)), first + 7.0);
}

#[test]
fn boots_and_replays_take_what_they_read() {
    assert_eq!(
        boot(62_000, Duration::from_millis(5)),
        Duration::from_secs(310)
    );
    let replay = log_replay(Duration::from_secs(60), 2e6, 8e6);
    assert_eq!(replay, Duration::from_secs(15));
    assert_eq!(SQL_SERVER_RECOVERY_MEAN * 2, SQL_SERVER_RECOVERY_MOST);
}
