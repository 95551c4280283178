//! Votes of a cluster: whether the members that are left continue.
//!
//! A cluster goes on while more than half of its votes are there. Every node has one, and a
//! witness one: a small disk that nodes arbitrate for, or a share that one of them locks.
//! So `n` nodes and a witness survive losing `⌊n / 2⌋` of them, and two nodes without a
//! witness survive losing none.
//!
//! Where votes are adjusted (Windows Server 2012 and later), a node that is lost gives its
//! vote back once the others have gone on without it, so nodes that are lost one after the
//! other may be more than half. Rules, from Microsoft's "Behavior of Dynamic Witness on
//! Windows Server 2012 R2 Failover Clustering" and D. Dizdarević, "How Quorum works in Windows
//! Server 2012 R2 Failover Clusters":
//!
//! - 2012 (`Nodes`): a witness always has its vote. Of two nodes left without a witness one
//!   has a vote: losing the other is survived, losing that one is not.
//! - 2012 R2 (`NodesAndWitness`): the witness has a vote when the nodes' are even, and none
//!   once it has failed; without a witness an even number of nodes gives one vote up.
//! - With a witness several nodes never have fewer than three votes.
//!
//! Which node gives its vote up is the last one here; products let it be chosen.

/// What has a vote beside the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// No witness: only nodes vote.
    None,
    /// A small shared disk, with the cluster's configuration on it.
    Disk,
    /// A file share, which knows only who has the newest configuration.
    Share,
}

impl Witness {
    const fn votes(self) -> usize {
        match self {
            Witness::None => 0,
            Witness::Disk | Witness::Share => 1,
        }
    }

    /// Whether a node that was away at the last change of the configuration may start the
    /// cluster with the witness alone: a disk has the configuration, a share does not.
    pub const fn starts_a_stale_node(self) -> bool {
        matches!(self, Witness::Disk)
    }
}

/// A voter that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The node of this number, from 0.
    Node(usize),
    /// The witness, where there is one.
    Witness,
}

/// Whether `nodes` with such a witness go on when all of `failed` fail at the same instant.
/// A member that is named twice, or does not exist, counts once, or not at all.
///
/// # Panics
/// When there is no node.
pub fn survives(nodes: usize, witness: Witness, failed: &[Member]) -> bool {
    assert!(nodes > 0, "a cluster without nodes");
    let lost_nodes = (0..nodes).filter(|&node| failed.contains(&Member::Node(node)));
    let witness_lost = failed.contains(&Member::Witness);
    let witness_left = if witness_lost { 0 } else { witness.votes() };
    let left_nodes = nodes - lost_nodes.count();
    is_majority(left_nodes + witness_left, nodes + witness.votes())
}

const fn is_majority(left: usize, votes: usize) -> bool {
    2 * left > votes
}

/// Whether votes follow what is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// Never: Windows Server 2008 R2.
    Fixed,
    /// Those of nodes: dynamic quorum of Windows Server 2012.
    Nodes,
    /// Those of nodes and the witness: 2012 R2.
    NodesAndWitness,
}

/// With a witness several nodes have at least so many votes.
const LEAST_WITH_WITNESS: usize = 3;

/// A cluster that loses one member after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    adjustment: Adjustment,
    /// Whether each node is up, and has a vote.
    nodes: Vec<(bool, bool)>,
    /// The same of the witness, where there is one.
    witness: Option<(bool, bool)>,
    runs: bool,
}

impl Cluster {
    /// A cluster with all members up.
    ///
    /// # Panics
    /// When it has no node.
    pub fn new(nodes: usize, witness: Witness, adjustment: Adjustment) -> Cluster {
        assert!(nodes > 0, "a cluster without nodes");
        let mut cluster = Cluster {
            adjustment,
            nodes: vec![(true, true); nodes],
            witness: (witness != Witness::None).then_some((true, true)),
            runs: true,
        };
        cluster.adjust();
        cluster
    }

    /// Whether it goes on.
    pub fn runs(&self) -> bool {
        self.runs
    }

    /// Whether this member has a vote.
    pub fn votes(&self, member: Member) -> bool {
        match member {
            Member::Node(node) => self.nodes.get(node).is_some_and(|&(_, vote)| vote),
            Member::Witness => self.witness.is_some_and(|(_, vote)| vote),
        }
    }

    /// A member is lost; whether the cluster goes on. It does not come back by itself once it
    /// has stopped. A member that does not exist changes nothing.
    pub fn lose(&mut self, member: Member) -> bool {
        match member {
            Member::Node(node) => {
                if let Some((up, _)) = self.nodes.get_mut(node) {
                    *up = false;
                }
            }
            Member::Witness => {
                if let Some((up, _)) = &mut self.witness {
                    *up = false;
                }
            }
        }
        let members = || self.nodes.iter().chain(&self.witness);
        let votes = members().filter(|&&(_, vote)| vote).count();
        let left = members().filter(|&&(up, vote)| up && vote).count();
        self.runs = is_majority(left, votes);
        if self.runs {
            self.adjust();
        }
        self.runs
    }

    /// Gives the votes to what is up.
    fn adjust(&mut self) {
        if self.adjustment == Adjustment::Fixed {
            return;
        }
        let up = self.nodes.iter().filter(|&&(up, _)| up).count();
        let is_even = up.is_multiple_of(2);
        let with_witness = self.adjustment == Adjustment::NodesAndWitness;
        let witness = self.witness.map(|(is_up, _)| {
            let votes = if with_witness { is_up && is_even } else { true };
            (is_up, votes)
        });
        let witness_votes = usize::from(witness.is_some_and(|(_, vote)| vote));
        let several = self.nodes.len() > 1;
        if several && witness.is_some() && up + witness_votes < LEAST_WITH_WITNESS {
            return;
        }
        self.witness = witness;
        // Without a witness that is up nothing else breaks a tie.
        let tie = witness_votes == 0
            && is_even
            && match self.adjustment {
                Adjustment::NodesAndWitness => true,
                Adjustment::Nodes | Adjustment::Fixed => up == 2,
            };
        for (is_up, vote) in &mut self.nodes {
            *vote = *is_up;
        }
        if tie && let Some((_, vote)) = self.nodes.iter_mut().rev().find(|(is_up, _)| *is_up) {
            *vote = false;
        }
    }
}
