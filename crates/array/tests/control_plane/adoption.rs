//! Who may log in changes at one instant, or not at all.

use crate::record::Record;
use crate::world::{Array, boot_with, media};
use array::control::hosts::KnownHosts;
use array::control::{
    AccessToAdopt, ArrayErrorKind, Configuration, Export, Host, NewAccess, NotAdopted,
};
use array::directory::{Access, Initiators};
use array::shard::UnitTraits;
use iscsi::chap::{Account, Credential, Secret};
use iscsi::login::TargetDirectory;
use site::Portal;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

const TARGET: &str = "iqn.2026-11.test:t";
const OTHER: &str = "iqn.2026-11.test:other";
const A: &str = "iqn.2026-11.test:a";
const B: &str = "iqn.2026-11.test:b";

fn host(name: &str, initiator: &str) -> Host {
    Host {
        name: name.to_owned(),
        initiators: [initiator.to_owned()].into(),
        account: None,
    }
}

fn known(hosts: &[Host]) -> KnownHosts {
    let hosts = hosts.iter().cloned();
    KnownHosts {
        hosts: hosts.map(|host| (host.name.clone(), host)).collect(),
        groups: Default::default(),
    }
}

fn of_hosts(hosts: &[&str]) -> Access {
    Access {
        hosts: hosts.iter().map(|name| (*name).to_owned()).collect(),
        ..Access::default()
    }
}

fn new(target: &str, access: Access) -> NewAccess {
    NewAccess {
        target: target.to_owned(),
        access,
        may_sanitize: true,
        may_affect_others: false,
    }
}

fn adopting(known: KnownHosts, targets: Vec<NewAccess>) -> AccessToAdopt {
    AccessToAdopt {
        known,
        targets,
        portals: Vec::new(),
    }
}

/// A target over a volume, which admits those.
async fn export(array: &Array, target: &str, volume: &str, access: Access) {
    crate::world::create(array, volume).await;
    let export = Export {
        target: target.to_owned(),
        volumes: vec![volume.to_owned()],
        luns: vec![0],
        uuids: Vec::new(),
        access,
        traits: UnitTraits::default(),
        withheld: None,
    };
    array.create_export(export).await.unwrap();
}

fn admitted(array: &Array, target: &str) -> BTreeSet<&'static str> {
    let directory = array.directory();
    let at = directory.portal_at(([10, 0, 0, 1], 3260).into());
    let is_admitted = |name: &&str| directory.admit(name, Some(target), &at).is_ok();
    [A, B].into_iter().filter(is_admitted).collect()
}

#[test]
fn hosts_and_targets_change_together_or_not_at_all() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        let (h, g) = (host("h", A), host("g", B));
        array
            .adopt_access(adopting(known(&[h, g]), Vec::new()))
            .await
            .unwrap();
        export(&array, TARGET, "v", of_hosts(&["h"])).await;
        export(&array, OTHER, "w", of_hosts(&["h", "g"])).await;
        // The two change names: who is admitted stays.
        let swapped = || known(&[host("h", B), host("g", A)]);
        record.takes(0);
        let access = vec![new(TARGET, of_hosts(&["g"]))];
        let refused = array
            .adopt_access(adopting(swapped(), access.clone()))
            .await;
        assert_eq!(refused.unwrap_err().kind, ArrayErrorKind::Internal);
        assert_eq!(admitted(&array, TARGET), [A].into());
        record.takes(9);
        let left = array
            .adopt_access(adopting(swapped(), access))
            .await
            .unwrap();
        assert_eq!(left, NotAdopted::default());
        assert_eq!(admitted(&array, TARGET), [A].into());
        assert_eq!(admitted(&array, OTHER), [A, B].into());
        assert!(array.export(TARGET).unwrap().traits.may_sanitize);
        let kept = record.kept();
        assert_eq!(kept.exports[TARGET].access, of_hosts(&["g"]));
        assert_eq!(kept.known.hosts["h"], host("h", B));
    });
}

#[test]
fn a_target_that_cannot_change_is_left_unless_its_hosts_change() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        let hosts = known(&[host("h", A)]);
        array
            .adopt_access(adopting(hosts, Vec::new()))
            .await
            .unwrap();
        let by_name = Access {
            initiators: Initiators::Named([B.to_owned()].into()),
            ..Access::default()
        };
        export(&array, TARGET, "v", by_name.clone()).await;
        export(&array, OTHER, "w", of_hosts(&["h"])).await;
        let nobody = |target| {
            vec![
                new(target, of_hosts(&["none"])),
                new(OTHER, by_name.clone()),
            ]
        };
        let adopted = array
            .adopt_access(adopting(known(&[host("h", B)]), nobody(TARGET)))
            .await;
        let left = adopted.unwrap().targets;
        assert_eq!(left.keys().collect::<Vec<_>>(), [TARGET]);
        assert!(left[TARGET].contains("there is no host none"), "{left:?}");
        assert_eq!(array.export(OTHER).unwrap().access, by_name);
        // With its host as it is now, it admits no other.
        let access = vec![new(OTHER, of_hosts(&["h"]))];
        array
            .adopt_access(adopting(KnownHosts::default(), access))
            .await
            .unwrap();
        let wrong = vec![new(OTHER, of_hosts(&["none"]))];
        let refused = array
            .adopt_access(adopting(known(&[host("h", A)]), wrong))
            .await;
        assert_eq!(refused.unwrap_err().kind, ArrayErrorKind::NotFound);
        assert_eq!(admitted(&array, OTHER), [B].into());
    });
}

fn credential(name: &str, secret: &[u8]) -> Credential {
    Credential {
        name: name.to_owned(),
        secret: Secret::new(secret).unwrap(),
    }
}

#[test]
fn a_target_whose_account_cannot_be_leaves_the_others_their_change() {
    boot_with(
        &media(),
        0,
        Record::<Configuration>::new() as _,
        async |array| {
            let by_name = |name: &str| Access {
                initiators: Initiators::Named([name.to_owned()].into()),
                ..Access::default()
            };
            export(&array, TARGET, "v", by_name(A)).await;
            export(&array, OTHER, "w", by_name(A)).await;
            // Its own secret would prove an initiator, too.
            let account = Account {
                initiator: credential("a", b"a secret of one"),
                mutual: Some(credential("array", b"a secret of one")),
            };
            let wrong = Access {
                account: Some(Arc::new(account)),
                ..by_name(B)
            };
            let access = vec![new(TARGET, wrong), new(OTHER, by_name(B))];
            let adopted = array
                .adopt_access(adopting(KnownHosts::default(), access))
                .await;
            let left = adopted.unwrap().targets;
            assert_eq!(left.keys().collect::<Vec<_>>(), [TARGET]);
            assert!(left[TARGET].contains("secret"), "{left:?}");
            assert_eq!(admitted(&array, TARGET), [A].into());
            assert_eq!(admitted(&array, OTHER), [B].into());
        },
    );
}

#[test]
fn a_portal_is_opened_with_the_access_of_targets_or_not_at_all() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        let by_name = |name: &str| Access {
            initiators: Initiators::Named([name.to_owned()].into()),
            ..Access::default()
        };
        export(&array, TARGET, "v", by_name(A)).await;
        let address = SocketAddr::from(([10, 0, 0, 2], 3260));
        let portals = vec![Portal { address, group: 2 }];
        let has_portal = |settings: &site::Site| settings.portals.contains(&portals[0]);
        let adopt = async |access| {
            let to_adopt = AccessToAdopt {
                portals: portals.clone(),
                ..adopting(KnownHosts::default(), vec![new(TARGET, access)])
            };
            array.adopt_access(to_adopt).await
        };
        let left = adopt(of_hosts(&["none"])).await.unwrap();
        assert_eq!(left.targets.keys().collect::<Vec<_>>(), [TARGET]);
        assert!(
            left.portals[&address].contains("not opened while"),
            "{left:?}"
        );
        assert!(!has_portal(&array.settings()));
        let there = || Access {
            portals: Some([address].into()),
            ..by_name(B)
        };
        record.takes(0);
        assert!(adopt(there()).await.is_err());
        assert!(!has_portal(&array.settings()));
        assert_eq!(array.export(TARGET).unwrap().access, by_name(A));
        record.takes(9);
        assert_eq!(adopt(there()).await.unwrap(), NotAdopted::default());
        assert!(has_portal(&array.settings()));
        let kept = record.kept();
        assert!(has_portal(&kept.settings.unwrap()));
        assert_eq!(kept.exports[TARGET].access, there());
    });
}
