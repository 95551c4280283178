//! A link aggregation group: the choice of the member that carries a flow.
//!
//! A flow stays on one member, so that its frames keep their order (IEEE 802.1AX
//! clause 6.2.4): one flow never gets more than one member's bandwidth. The
//! documented rules are below; each sees only what is named in it, so two flows
//! that agree in that share a member.

use super::{Delivery, Link, State};
use base::Time;

/// What a balancing rule can see of a flow. Addresses are those of the sender and
/// of the receiver of the frames that are balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The virtual switch port that the sender is connected to.
    pub port: u32,
    /// The sender's Ethernet address.
    pub source_mac: [u8; 6],
    /// The receiver's Ethernet address.
    pub destination_mac: [u8; 6],
    /// The sender's IPv4 address.
    pub source_ip: [u8; 4],
    /// The receiver's IPv4 address.
    pub destination_ip: [u8; 4],
}

/// How a member is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// By the sender's virtual port (vSphere's "originating virtual port"): port
    /// number modulo members.
    Port,
    /// By the sender's address (vSphere's "source MAC hash"). VMware publishes that
    /// the address and the number of members decide; taking its last octet modulo
    /// members is derived from its "IP hash".
    SourceMac,
    /// By both Ethernet addresses (Linux bonding "layer2"): the last octets of the
    /// two, XOR the frame's type (0800h for IPv4), modulo members.
    MacPair,
    /// By both IP addresses (vSphere's "IP hash"): the last octets of the two, XOR,
    /// modulo members.
    IpPair,
    /// By Ethernet and IP addresses (Linux bonding "layer2+3"): MAC pair as above, XOR
    /// both IP addresses, XOR itself shifted right by 16, then by 8; modulo members.
    MacAndIp,
}

/// The type of an Ethernet frame with IPv4 (IEEE 802 numbers of IANA).
const TYPE_IPV4: u32 = 0x0800;

impl Balance {
    /// The member, from 0, that carries `flow` in a group of so many.
    ///
    /// # Panics
    /// When the group has no member.
    pub fn member(self, flow: &Flow, members: usize) -> usize {
        assert!(members > 0, "a group without links carries nothing");
        let last_octets = |of: [u8; 4], and: [u8; 4]| u32::from(of[3] ^ and[3]);
        let macs = u32::from(flow.source_mac[5] ^ flow.destination_mac[5]) ^ TYPE_IPV4;
        let hash = match self {
            Balance::Port => flow.port,
            Balance::SourceMac => u32::from(flow.source_mac[5]),
            Balance::MacPair => macs,
            Balance::IpPair => last_octets(flow.source_ip, flow.destination_ip),
            Balance::MacAndIp => {
                let ips =
                    u32::from_be_bytes(flow.source_ip) ^ u32::from_be_bytes(flow.destination_ip);
                let hash = macs ^ ips;
                let hash = hash ^ (hash >> 16);
                hash ^ (hash >> 8)
            }
        };
        hash as usize % members
    }
}

/// A group of equal links.
#[derive(Clone, Debug)]
pub struct Group {
    balance: Balance,
    members: Vec<State>,
}

impl Group {
    /// A group at rest.
    ///
    /// # Panics
    /// When it has no member.
    pub fn new(balance: Balance, members: usize) -> Group {
        assert!(members > 0, "a group without links carries nothing");
        Group {
            balance,
            members: vec![State::default(); members],
        }
    }

    /// Sends a message of `flow` from the initiator's side. The other end balances
    /// what it sends back by its own rule: that is a group of its own.
    pub fn send(&mut self, link: &Link, flow: &Flow, now: Time, payload_bytes: u64) -> Delivery {
        let member = self.balance.member(flow, self.members.len());
        self.members[member].out.send(link, now, payload_bytes)
    }

    /// The members and what they did.
    pub fn members(&self) -> &[State] {
        &self.members
    }
}
