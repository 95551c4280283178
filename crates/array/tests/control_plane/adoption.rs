//! Who may log in changes at one instant, or not at all.

use crate::record::Record;
use crate::world::{Array, boot_with, media};
use array::control::hosts::KnownHosts;
use array::control::{
    AccessToAdopt, ArrayError, ArrayErrorKind, BoundSocket, Configuration, Export, Host, NewAccess,
    Sockets,
};
use array::directory::{Access, Initiators};
use array::shard::UnitTraits;
use iscsi::chap::{Account, Credential, Secret};
use iscsi::login::TargetDirectory;
use site::Portal;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

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

/// Adopts hosts and access of targets; gives the targets that are left, and why.
async fn adopt(
    array: &Array,
    known: KnownHosts,
    targets: Vec<NewAccess>,
) -> Result<BTreeMap<String, String>, ArrayError> {
    let to_adopt = AccessToAdopt {
        known,
        targets,
        portals: Vec::new(),
    };
    array.adopt_access(to_adopt).await.unwrap().targets
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
    let at = directory.portal_at(at(1));
    let is_admitted = |name: &&str| directory.admit(name, Some(target), &at).is_ok();
    [A, B].into_iter().filter(is_admitted).collect()
}

#[test]
fn hosts_and_targets_change_together_or_not_at_all() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        let (h, g) = (host("h", A), host("g", B));
        adopt(&array, known(&[h, g]), Vec::new()).await.unwrap();
        export(&array, TARGET, "v", of_hosts(&["h"])).await;
        export(&array, OTHER, "w", of_hosts(&["h", "g"])).await;
        // The two change names: who is admitted stays.
        let swapped = || known(&[host("h", B), host("g", A)]);
        record.takes(0);
        let access = vec![new(TARGET, of_hosts(&["g"]))];
        let refused = adopt(&array, swapped(), access.clone()).await;
        assert_eq!(refused.unwrap_err().kind, ArrayErrorKind::Internal);
        assert_eq!(admitted(&array, TARGET), [A].into());
        record.takes(9);
        let left = adopt(&array, swapped(), access).await.unwrap();
        assert!(left.is_empty(), "{left:?}");
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
        adopt(&array, hosts, Vec::new()).await.unwrap();
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
        let adopted = adopt(&array, known(&[host("h", B)]), nobody(TARGET)).await;
        let left = adopted.unwrap();
        assert_eq!(left.keys().collect::<Vec<_>>(), [TARGET]);
        assert!(left[TARGET].contains("there is no host none"), "{left:?}");
        assert_eq!(array.export(OTHER).unwrap().access, by_name);
        // With its host as it is now, it admits no other.
        let access = vec![new(OTHER, of_hosts(&["h"]))];
        adopt(&array, KnownHosts::default(), access).await.unwrap();
        let wrong = vec![new(OTHER, of_hosts(&["none"]))];
        let refused = adopt(&array, known(&[host("h", A)]), wrong).await;
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
            let adopted = adopt(&array, KnownHosts::default(), access).await;
            let left = adopted.unwrap();
            assert_eq!(left.keys().collect::<Vec<_>>(), [TARGET]);
            assert!(left[TARGET].contains("secret"), "{left:?}");
            assert_eq!(admitted(&array, TARGET), [A].into());
            assert_eq!(admitted(&array, OTHER), [B].into());
        },
    );
}

/// Sockets that are bound, and whether they take logins; 10.0.0.9 is not of this machine.
#[derive(Clone, Default)]
struct Bound(Arc<Mutex<BTreeMap<SocketAddr, bool>>>);

impl Bound {
    fn all(&self) -> BTreeMap<SocketAddr, bool> {
        self.0.lock().unwrap().clone()
    }
}

struct BoundAt(SocketAddr, Bound);

impl Sockets for Bound {
    fn bind(&self, address: SocketAddr) -> Result<Box<dyn BoundSocket>, ArrayError> {
        if address == at(9) {
            let why = "no such address".to_owned();
            return Err(ArrayError::new(ArrayErrorKind::Invalid, why));
        }
        self.0.lock().unwrap().insert(address, false);
        Ok(Box::new(BoundAt(address, self.clone())))
    }

    fn close(&self, bound: SocketAddr) {
        self.0.lock().unwrap().remove(&bound);
    }
}

impl BoundSocket for BoundAt {
    fn address(&self) -> SocketAddr {
        self.0
    }

    fn serve(self: Box<Self>) {
        self.1.0.lock().unwrap().insert(self.0, true);
    }
}

impl Drop for BoundAt {
    fn drop(&mut self) {
        let mut bound = self.1.0.lock().unwrap();
        if bound.get(&self.0) == Some(&false) {
            bound.remove(&self.0);
        }
    }
}

fn by_name(name: &str) -> Access {
    Access {
        initiators: Initiators::Named([name.to_owned()].into()),
        ..Access::default()
    }
}

/// The address of a portal; the first is that of the site file.
fn at(number: u8) -> SocketAddr {
    match number {
        1 => ([127, 0, 0, 1], 3260).into(),
        other => ([10, 0, 0, other], 3260).into(),
    }
}

async fn adopt_at(
    array: &Array,
    portals: &[u8],
    targets: Vec<NewAccess>,
) -> (
    Result<BTreeMap<String, String>, ArrayErrorKind>,
    Vec<SocketAddr>,
) {
    let portals = portals.iter().map(|number| Portal {
        address: at(*number),
        group: 2,
    });
    let adopted = array.adopt_access(AccessToAdopt {
        portals: portals.collect(),
        targets,
        known: KnownHosts::default(),
    });
    let adopted = adopted.await.unwrap();
    let left = adopted.targets.map_err(|error| error.kind);
    (left, adopted.unopened.into_keys().collect())
}

/// Whether an initiator is admitted at a portal.
fn is_admitted(array: &Array, initiator: &str, target: &str, number: u8) -> bool {
    let portal = array.directory().portal_at(at(number));
    let admitted = array.directory().admit(initiator, Some(target), &portal);
    admitted.is_ok()
}

#[test]
fn a_portal_is_opened_with_the_access_of_targets_or_not_at_all() {
    let record = Record::<Configuration>::new();
    boot_with(&media(), 0, Arc::clone(&record) as _, async |array| {
        let sockets = Bound::default();
        array.attach_sockets(Arc::new(sockets.clone()));
        export(&array, TARGET, "v", by_name(A)).await;
        let there = || Access {
            portals: Some([at(2)].into()),
            ..by_name(B)
        };
        record.takes(0);
        let refused = adopt_at(&array, &[2], vec![new(TARGET, there())]).await;
        assert_eq!(refused, (Err(ArrayErrorKind::Internal), Vec::new()));
        assert!(sockets.all().is_empty(), "{:?}", sockets.all());
        assert_eq!(array.export(TARGET).unwrap().access, by_name(A));
        record.takes(9);
        let adopted = adopt_at(&array, &[2, 9], vec![new(TARGET, there())]).await;
        assert_eq!(adopted, (Ok(BTreeMap::new()), vec![at(9)]));
        assert_eq!(sockets.all(), [(at(2), true)].into());
        assert!(is_admitted(&array, B, TARGET, 2) && !is_admitted(&array, B, TARGET, 1));
        let kept = record.kept();
        let portals = &kept.settings.unwrap().portals;
        assert!(portals.iter().any(|portal| portal.address == at(2)));
        assert!(portals.iter().all(|portal| portal.address != at(9)));
        assert_eq!(kept.exports[TARGET].access, there());
        // It is there by now.
        let adopted = adopt_at(&array, &[2], Vec::new()).await;
        assert_eq!(adopted, (Ok(BTreeMap::new()), Vec::new()));
    });
}

#[test]
fn a_new_portal_does_not_show_a_target_that_is_left() {
    boot_with(
        &media(),
        0,
        Record::<Configuration>::new() as _,
        async |array| {
            array.attach_sockets(Arc::new(Bound::default()));
            export(&array, TARGET, "v", by_name(A)).await;
            export(&array, OTHER, "w", by_name(A)).await;
            let wrong = vec![new(TARGET, of_hosts(&["none"])), new(OTHER, by_name(B))];
            let (left, unopened) = adopt_at(&array, &[2], wrong).await;
            assert_eq!(left.unwrap().into_keys().collect::<Vec<_>>(), [TARGET]);
            assert_eq!(unopened, []);
            assert!(is_admitted(&array, B, OTHER, 2) && !is_admitted(&array, A, TARGET, 2));
            assert_eq!(
                admitted(&array, TARGET),
                [A].into(),
                "at the portal of before"
            );
        },
    );
}

#[test]
fn the_last_portal_that_is_open_stays() {
    boot_with(
        &media(),
        0,
        Record::<Configuration>::new() as _,
        async |array| {
            let sockets = Bound::default();
            array.attach_sockets(Arc::new(sockets.clone()));
            adopt_at(&array, &[2], Vec::new()).await.0.unwrap();
            // The portal of the site file is in the settings, and not open.
            let mut open = array.directory().portals();
            open.retain(|portal| portal.address == at(2));
            array.directory().set_portals(open);
            let refused = array.remove_portal(at(2)).await.unwrap_err();
            assert_eq!(refused.kind, ArrayErrorKind::Busy);
            assert_eq!(sockets.all(), [(at(2), true)].into());
        },
    );
}
