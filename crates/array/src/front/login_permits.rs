//! Limits logins under way and discovery sessions, in all and of each address.
//!
//! Invariants:
//! - Peers that linger keep nobody out: who comes when all permits are taken gets that of a
//!   login that has proved nothing. It is the oldest of the address that has the most of them, or
//!   of the newcomer's own address when that has too many.
//! - A login that has proved who it is keeps its permit.
//! - An IPv6 network of 64 bits is one address: its owner can have every address in it.

use crate::wake::Wake;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

/// Hands out login permits, on the thread of the front.
pub(super) struct LoginPermits {
    max: usize,
    per_address_max: usize,
    taken: Rc<RefCell<TakenPermits>>,
}

#[derive(Default)]
struct TakenPermits {
    last: u64,
    /// By number: the oldest first.
    sitting: BTreeMap<u64, Sitting>,
}

struct Sitting {
    address: IpAddr,
    has_proved: bool,
    given_away: Rc<Wake>,
}

/// A login permit in use; free again when this is dropped.
pub(super) struct LoginPermit {
    number: u64,
    given_away: Rc<Wake>,
    taken: Rc<RefCell<TakenPermits>>,
}

impl LoginPermits {
    pub(super) fn new(max: usize, per_address_max: usize) -> Self {
        LoginPermits {
            max,
            per_address_max,
            taken: Rc::default(),
        }
    }

    /// A permit for a login from `address`, unless all are taken by logins that have proved who
    /// they are.
    pub(super) fn take(&self, address: IpAddr) -> Option<LoginPermit> {
        let address = counted_as(address);
        let mut taken = self.taken.borrow_mut();
        let own = taken.of(address);
        if own >= self.per_address_max {
            taken.give_away(|sitting| sitting.address == address)?;
        } else if taken.sitting.len() >= self.max {
            let most = taken.address_with_most()?;
            taken.give_away(|sitting| sitting.address == most)?;
        }
        taken.last += 1;
        let (number, given_away) = (taken.last, Rc::new(Wake::default()));
        let sitting = Sitting {
            address,
            has_proved: false,
            given_away: Rc::clone(&given_away),
        };
        taken.sitting.insert(number, sitting);
        Some(LoginPermit {
            number,
            given_away,
            taken: Rc::clone(&self.taken),
        })
    }
}

impl TakenPermits {
    fn of(&self, address: IpAddr) -> usize {
        let own = self.sitting.values();
        own.filter(|sitting| sitting.address == address).count()
    }

    /// The address with the most permits that can be given away; of several the one that has had
    /// its permits for longest.
    fn address_with_most(&self) -> Option<IpAddr> {
        let mut counts: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
        let unproved = self.sitting.iter().filter(|(_, one)| !one.has_proved);
        for (number, sitting) in unproved {
            let (count, _) = counts.entry(sitting.address).or_insert((0, *number));
            *count += 1;
        }
        let most = counts
            .into_iter()
            .max_by_key(|(_, (count, oldest))| (*count, u64::MAX - oldest));
        most.map(|(address, _)| address)
    }

    /// Takes the oldest permit that `may` be given away from a login that has proved nothing.
    fn give_away(&mut self, may: impl Fn(&Sitting) -> bool) -> Option<()> {
        let mut sitting = self.sitting.iter();
        let oldest = sitting.find(|(_, one)| !one.has_proved && may(one));
        let number = *oldest?.0;
        let given = self.sitting.remove(&number)?;
        given.given_away.notify();
        Some(())
    }
}

impl LoginPermit {
    /// Its login has proved who it is.
    pub(super) fn keep(&self) {
        let mut taken = self.taken.borrow_mut();
        if let Some(sitting) = taken.sitting.get_mut(&self.number) {
            sitting.has_proved = true;
        }
    }

    /// Ends when another login has got the permit.
    pub(super) async fn given_away(&self) {
        self.given_away.notified().await;
    }
}

impl Drop for LoginPermit {
    fn drop(&mut self) {
        self.taken.borrow_mut().sitting.remove(&self.number);
    }
}

/// What an address counts as.
fn counted_as(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    match v6.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None => {
            let network = u128::from(v6) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;
    use futures_util::FutureExt;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn is_given_away(login_permit: &LoginPermit) -> bool {
        login_permit.given_away().now_or_never().is_some()
    }

    #[test]
    fn who_lingers_gives_its_permit_to_who_comes() {
        let login_permits = LoginPermits::new(3, 2);
        let [first, second] = [(); 2].map(|()| login_permits.take(ip("10.0.0.1")).unwrap());
        let other = login_permits.take(ip("10.0.0.2")).unwrap();
        // All are taken: of the address with the most, the oldest.
        let host = login_permits.take(ip("10.0.0.3")).unwrap();
        assert!(is_given_away(&first) && !is_given_away(&second) && !is_given_away(&other));
        drop(first);
        assert_eq!(login_permits.taken.borrow().sitting.len(), 3);
        // One each: the oldest.
        let next = login_permits.take(ip("10.0.0.4")).unwrap();
        assert!(is_given_away(&second) && !is_given_away(&host));
        drop((second, other, host, next));
        assert!(login_permits.taken.borrow().sitting.is_empty());
    }

    #[test]
    fn an_address_with_too_many_gives_up_its_own() {
        let login_permits = LoginPermits::new(8, 2);
        let other = login_permits.take(ip("10.0.0.2")).unwrap();
        let own = [(); 3].map(|()| login_permits.take(ip("10.0.0.1")).unwrap());
        assert_eq!(own.each_ref().map(is_given_away), [true, false, false]);
        assert!(!is_given_away(&other));
    }

    #[test]
    fn who_has_proved_who_it_is_stays() {
        let login_permits = LoginPermits::new(2, 2);
        let [first, second] = [(); 2].map(|()| login_permits.take(ip("10.0.0.1")).unwrap());
        first.keep();
        let host = login_permits.take(ip("10.0.0.2")).unwrap();
        assert!(is_given_away(&second) && !is_given_away(&first));
        host.keep();
        assert!(login_permits.take(ip("10.0.0.3")).is_none());
        assert!(LoginPermits::new(0, 2).take(ip("10.0.0.3")).is_none());
    }

    #[test]
    fn a_network_of_64_bits_is_one_address() {
        for (one, other, same) in [
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
        ] {
            assert_eq!(
                counted_as(ip(one)) == counted_as(ip(other)),
                same,
                "{other}"
            );
        }
    }
}
