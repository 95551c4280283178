//! Finds the user at the other end of a connection, as the kernel reports it.
//!
//! Invariant: a user is told only while the socket is somebody's. The kernel lists a socket that
//! was closed as root's.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use tokio::net::unix::UCred;

/// Sockets of this machine and their users, by IP version (`proc_pid_net(5)`).
const SOCKETS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    at: Origin,
    /// Absent when it can't be told.
    uid: Option<u32>,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// An address of this machine; every user can connect from there.
    Tcp(SocketAddr),
    /// The Unix socket: the mode of its file lets the server's user and group connect.
    Unix,
}

/// What somebody is to the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Root, or the user that the server runs as.
    Administrator(u32),
    /// Another user whom the mode of the socket lets connect.
    Member(u32),
    /// Anybody else.
    Stranger,
}

impl Caller {
    /// Whoever connected from `peer` to `own`.
    pub(super) fn of(peer: SocketAddr, own: Option<SocketAddr>) -> Self {
        let find = |own| {
            let table = fs::read_to_string(SOCKETS[usize::from(peer.is_ipv6())]).ok()?;
            uid_in(&table, peer, own)
        };
        Caller {
            at: Origin::Tcp(peer),
            uid: own.and_then(find),
        }
    }

    /// Whoever connected to the Unix socket, with what the kernel says of them.
    pub(super) fn at_socket(peer: Option<UCred>) -> Self {
        Caller {
            at: Origin::Unix,
            uid: peer.map(|peer| peer.uid()),
        }
    }

    /// What it is to the API.
    pub(super) fn standing(&self) -> Standing {
        let is_ours = |uid: &u32| *uid == 0 || Some(*uid) == own_uid();
        match (self.uid, self.at) {
            (Some(uid), _) if is_ours(&uid) => Standing::Administrator(uid),
            (Some(uid), Origin::Unix) => Standing::Member(uid),
            (_, Origin::Tcp(_)) => Standing::Stranger,
            // The kernel let it connect, and does not say as whom.
            (None, Origin::Unix) => Standing::Member(u32::MAX),
        }
    }

    /// Whether it may use the API: the kernel let it connect to the Unix socket, or it is root
    /// or the user that the server runs as.
    pub(super) fn is_ours(&self) -> bool {
        self.standing() != Standing::Stranger
    }

    /// Whether it may say where the server's files are: members of the socket's group must not
    /// have the server use files that they can't.
    pub(super) fn is_owner(&self) -> bool {
        matches!(self.standing(), Standing::Administrator(_))
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.uid {
            Some(uid) => write!(f, "user {uid}")?,
            None => write!(f, "somebody")?,
        }
        match self.at {
            Origin::Tcp(peer) => write!(f, " at {peer}"),
            Origin::Unix => write!(f, " at the API's socket"),
        }
    }
}

/// The user that the server runs as.
fn own_uid() -> Option<u32> {
    // The owner of /proc/self is root, whatever the user, in a process whose memory is private.
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // The real one, then the effective one.
    uids.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The user of the socket `local`, which is connected to `remote`, in the kernel's table.
fn uid_in(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let (local, remote) = (in_table(local), in_table(remote));
    let mut lines = table.lines().map(|line| line.split_ascii_whitespace());
    lines.find_map(|mut columns| {
        let is_it = columns.nth(1)? == local && columns.next()? == remote;
        // Between: state, queues, timer, retransmits.
        let uid = columns.nth(4)?.parse().ok()?;
        // Between: timeouts. One that nobody has open has no inode.
        let is_open = columns.nth(1)? != "0";
        (is_it && is_open).then_some(uid)
    })
}

/// An address as the kernel writes it: words of four bytes in the machine's order.
fn in_table(address: SocketAddr) -> String {
    let octets = match address {
        SocketAddr::V4(address) => address.ip().octets().to_vec(),
        SocketAddr::V6(address) => address.ip().octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| {
        let word = [word[0], word[1], word[2], word[3]];
        format!("{:08X}", u32::from_ne_bytes(word))
    });
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener, TcpStream};

    #[test]
    fn the_user_at_the_other_end_is_found() {
        let me = own_uid().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let own = listener.local_addr().unwrap();
            let stream = TcpStream::connect(own).unwrap();
            let peer = stream.local_addr().unwrap();
            let caller = Caller::of(peer, Some(own));
            assert_eq!(caller.to_string(), format!("user {me} at {peer}"));
            assert!(caller.is_ours());
            stream.shutdown(Shutdown::Write).unwrap();
            assert!(
                Caller::of(peer, Some(own)).is_ours(),
                "it waits for the answer"
            );
            let other = SocketAddr::new(peer.ip(), peer.port() ^ 1);
            for unknown in [Caller::of(other, Some(own)), Caller::of(peer, None)] {
                assert!(!unknown.is_ours(), "{unknown}");
                assert!(unknown.to_string().starts_with("somebody at "));
            }
        }
    }

    #[test]
    fn a_socket_that_was_closed_is_nobody_s() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let stream = TcpStream::connect(own).unwrap();
        let peer = stream.local_addr().unwrap();
        drop(stream);
        let table = fs::read_to_string(SOCKETS[0]).unwrap();
        assert!(table.contains(&in_table(peer)), "the kernel has it still");
        assert!(!Caller::of(peer, Some(own)).is_ours());
    }

    #[test]
    fn only_root_and_the_server_s_user_are_ours() {
        let me = own_uid().unwrap();
        let peer = "127.0.0.1:1".parse().unwrap();
        let ours = |uid| {
            Caller {
                at: Origin::Tcp(peer),
                uid,
            }
            .is_ours()
        };
        assert!(ours(Some(0)) && ours(Some(me)));
        assert!(!ours(Some(me + 1)) && !ours(None));
    }
}
