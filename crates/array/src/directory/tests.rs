#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
//! Tests of the rules that admit initiators to targets.

use super::*;
use iscsi::chap::{Credential, Secret};

const HOST: &str = "iqn.2026-11.test:a";

fn account(name: &str, secret: &str) -> Arc<Account> {
    let secret = Secret::new(secret.as_bytes()).unwrap();
    Arc::new(Account {
        initiator: Credential {
            name: name.to_owned(),
            secret,
        },
        mutual: None,
    })
}

fn at(address: &str) -> LoginPortal {
    LoginPortal {
        portal_group: 1,
        address: address.parse().unwrap(),
    }
}

fn first() -> LoginPortal {
    at("127.0.0.1:3260")
}

fn by_name(name: &str) -> Admission {
    Admission {
        initiator: name.to_owned(),
        account: None,
        portal: first(),
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn portal(address: &str, group: u16) -> Portal {
    let address = address.parse().unwrap();
    Portal {
        described: Some(address),
        address,
        group,
    }
}

fn directory() -> Directory {
    let directory = Directory::new();
    directory.set_portals(vec![portal("127.0.0.1:3260", 1), portal("[::1]:3261", 7)]);
    directory.set_target("iqn.T:any", TargetEntry::open(0));
    let named = Access {
        initiators: Initiators::Named(set(&[HOST])),
        ..Access::default()
    };
    let shard = 1;
    let access = named;
    directory.set_target("iqn.t:named", TargetEntry { shard, access });
    directory
}

/// A directory with a host that proves itself, one that doesn't, and a group of both.
fn with_hosts() -> Directory {
    let directory = directory();
    let host = |initiators: &[&str], account| AdmittedHost {
        initiators: set(initiators),
        account,
    };
    let hosts = [
        (
            "safe",
            host(
                &["iqn.h:1", "iqn.h:2"],
                Some(account("safe", "secret-of-safe")),
            ),
        ),
        ("plain", host(&["iqn.h:3"], None)),
    ];
    let hosts = hosts.map(|(name, host)| (name.to_owned(), host)).into();
    let groups = [("both".to_owned(), set(&["safe", "plain"]))].into();
    directory.set_hosts(hosts, groups, std::iter::empty());
    let target = |name: &str, access| {
        let shard = 0;
        directory.set_target(name, TargetEntry { shard, access });
    };
    let own = Some(account("target", "secret-of-target"));
    let [hosts, none] = [set(&["safe"]), BTreeSet::new()];
    let (host_groups, initiators) = (set(&["both"]), Initiators::Any);
    target(
        "iqn.t:safe",
        Access {
            hosts: hosts.clone(),
            ..Access::default()
        },
    );
    target(
        "iqn.t:group",
        Access {
            host_groups: host_groups.clone(),
            ..Access::default()
        },
    );
    target(
        "iqn.t:own",
        Access {
            host_groups,
            account: own.clone(),
            ..Access::default()
        },
    );
    target(
        "iqn.t:all",
        Access {
            initiators,
            hosts: none,
            account: own,
            ..Access::default()
        },
    );
    directory
}

#[test]
fn a_target_is_admitted_or_not_found() {
    let directory = directory();
    let admit = |name: &str, target: &str| directory.admit(name, Some(target), &first());
    assert_eq!(admit("iqn.x", "IQN.t:any"), Ok(None));
    assert_eq!(admit("iqn.2026-11.TEST:a", "iqn.t:named"), Ok(None));
    assert_eq!(admit("iqn.x", "iqn.t:named"), Err(Refusal::NotFound));
    assert_eq!(admit("iqn.x", "iqn.t:none"), Err(Refusal::NotFound));
    directory.close();
    assert_eq!(admit("iqn.x", "iqn.t:any"), Err(Refusal::Unavailable));
    let discovery = directory.admit("iqn.x", None, &first());
    assert_eq!(discovery, Err(Refusal::Unavailable));
}

#[test]
fn discovery_shows_only_what_the_initiator_may_use() {
    let directory = with_hosts();
    let names = |initiator: &str| -> Vec<String> {
        let seen = directory.visible(initiator, &first());
        seen.into_iter().map(|target| target.name).collect()
    };
    assert_eq!(names("iqn.x"), ["iqn.t:all", "iqn.t:any"]);
    assert_eq!(names(HOST), ["iqn.t:all", "iqn.t:any", "iqn.t:named"]);
    let all = [
        "iqn.t:all",
        "iqn.t:any",
        "iqn.t:group",
        "iqn.t:own",
        "iqn.t:safe",
    ];
    assert_eq!(names("iqn.h:1"), all);
    assert_eq!(names("IQN.H:3"), all[..4]);
    let portals = &directory.visible("iqn.x", &first())[0].portals;
    let groups: Vec<_> = portals.iter().map(|(_, group)| *group).collect();
    assert_eq!(groups, [1, 7]);
}

#[test]
fn a_host_proves_its_own_secret_and_others_the_target_s() {
    let directory = with_hosts();
    let name = |initiator: &str, target: &str| {
        let needed = directory.admit(initiator, Some(target), &first());
        needed.map(|account| account.map(|account| account.initiator.name.clone()))
    };
    let some = |name: &str| Ok(Some(name.to_owned()));
    assert_eq!(name("iqn.h:1", "iqn.t:safe"), some("safe"));
    assert_eq!(name("iqn.h:2", "iqn.t:own"), some("safe"));
    assert_eq!(name("iqn.h:3", "iqn.t:own"), some("target"));
    assert_eq!(name("iqn.h:3", "iqn.t:group"), Ok(None));
    assert_eq!(name("iqn.h:3", "iqn.t:safe"), Err(Refusal::NotFound));
    assert_eq!(
        name("iqn.h:1", "iqn.t:any"),
        Ok(None),
        "no host is named there"
    );
    assert_eq!(name("iqn.x", "iqn.t:all"), some("target"));
    directory.set_discovery(Some(account("all", "secret-of-discovery")));
    let discovery = directory.admit("iqn.h:1", None, &first()).unwrap().unwrap();
    assert_eq!(discovery.initiator.name, "all");
}

#[test]
fn a_session_reaches_another_target_with_what_it_came_with_only() {
    let directory = with_hosts();
    let with = |name: &str, proved: Option<Arc<Account>>| Admission {
        account: proved,
        ..by_name(name)
    };
    let safe = || Some(account("safe", "secret-of-safe"));
    assert!(directory.admits(&with("iqn.h:1", safe()), "iqn.t:safe"));
    assert!(directory.admits(&with("iqn.h:1", safe()), "IQN.T:own"));
    assert!(
        directory.admits(&with("iqn.h:1", safe()), "iqn.t:any"),
        "needs no proof"
    );
    assert!(
        !directory.admits(&with("iqn.h:1", safe()), "iqn.t:all"),
        "needs another"
    );
    assert!(
        !directory.admits(&by_name("iqn.h:1"), "iqn.t:safe"),
        "proved nothing"
    );
    assert!(!directory.admits(&by_name("iqn.h:1"), "iqn.t:none"));
    let old = Some(account("safe", "secret-that-was"));
    assert!(
        !directory.admits(&with("iqn.h:1", old), "iqn.t:safe"),
        "the secret is another"
    );
    directory.set_hosts(BTreeMap::new(), BTreeMap::new(), std::iter::empty());
    assert!(
        !directory.admits(&with("iqn.h:1", safe()), "iqn.t:safe"),
        "the host is gone"
    );
}

#[test]
fn a_target_is_seen_through_its_portals_only() {
    let directory = directory();
    let only = Access {
        portals: Some(["[::1]:3261".parse().unwrap()].into()),
        ..Access::open()
    };
    let (shard, access) = (0, only);
    directory.set_target("iqn.t:six", TargetEntry { shard, access });
    let second = directory.portal_at("[::1]:3261".parse().unwrap());
    let admit = |portal| directory.admit("iqn.x", Some("iqn.t:six"), portal);
    let first = first();
    assert_eq!(admit(&first), Err(Refusal::NotFound));
    assert_eq!(admit(&second), Ok(None));
    assert!(!directory.admits(&by_name("iqn.x"), "iqn.t:six"));
    assert!(
        directory
            .visible("iqn.x", &first)
            .iter()
            .all(|row| row.name != "iqn.t:six")
    );
    let seen = directory.visible("iqn.x", &second);
    let row = seen.iter().find(|row| row.name == "iqn.t:six").unwrap();
    assert_eq!(row.portals, [("[::1]:3261".parse().unwrap(), 7)]);
    let regrouped = directory.portals().into_iter();
    let regrouped = regrouped.map(|portal| Portal { group: 9, ..portal });
    directory.set_portals(regrouped.collect());
    assert_eq!(admit(&second), Err(Refusal::NotFound), "the old group");
    let second = directory.portal_at(second.address);
    assert_eq!(admit(&second), Ok(None));
}

#[test]
fn a_portal_instead_of_all_shows_a_limited_target_only_at_its_address() {
    let directory = directory();
    let only = Access {
        portals: Some(["[::1]:3261".parse().unwrap()].into()),
        ..Access::open()
    };
    let (shard, access) = (0, only);
    directory.set_target("iqn.t:six", TargetEntry { shard, access });
    let instead = |address: &str| {
        directory.set_portals(vec![Portal {
            described: None,
            address: address.parse().unwrap(),
            group: 1,
        }]);
    };
    let admit = |portal: &str| directory.admit("iqn.x", Some("iqn.t:six"), &at(portal));
    instead("0.0.0.0:3270");
    assert_eq!(admit("192.0.2.1:3270"), Err(Refusal::NotFound));
    let seen = directory.visible("iqn.x", &at("192.0.2.1:3270"));
    assert!(seen.iter().all(|row| row.name != "iqn.t:six"));
    assert_eq!(
        seen[0].portals,
        [("192.0.2.1:3270".parse().unwrap(), 1)],
        "others as they were reached"
    );
    instead("[::1]:3261");
    assert_eq!(admit("[::1]:3261"), Ok(None));
}

#[test]
fn a_target_that_is_withheld_is_there_and_takes_no_logins() {
    let directory = directory();
    let access = |target: &str| directory.target(target).unwrap().access;
    directory.withhold_target("iqn.t:any", access("iqn.t:any"));
    directory.withhold_target("iqn.t:named", access("iqn.t:named"));
    let login = |initiator, target| directory.admit(initiator, Some(target), &first());
    let unavailable = login(HOST, "iqn.T:named").unwrap_err();
    assert_eq!(unavailable, Refusal::Unavailable, "it is tried again");
    // Who is not admitted does not learn that it is there.
    assert_eq!(
        login("iqn.x", "iqn.t:named").unwrap_err(),
        Refusal::NotFound
    );
    let seen = |initiator| directory.visible(initiator, &first()).len();
    assert_eq!((seen(HOST), seen("iqn.x")), (2, 1));
    directory.set_target("iqn.t:any", TargetEntry::open(0));
    login(HOST, "iqn.t:any").unwrap();
    directory.remove_target("iqn.t:named");
    assert_eq!(login(HOST, "iqn.t:named").unwrap_err(), Refusal::NotFound);
}
