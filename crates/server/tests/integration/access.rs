//! Who is admitted, and how they prove it: CHAP with libiscsi, which nobody here wrote,
//! portals and their groups, and what happens to sessions when their admission goes.

use crate::served::initiator::{Initiator, NAME};
use crate::served::{Served, TARGET, limits, run, succeed};
use iscsi::chap::{Account, Algorithm, Credential, Secret};
use server::directory::{Access, AdmittedHost, Initiators, Portal};
use server::front::FrontLimits;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

const SECRET: &str = "a-long-secret";
const OURS: &str = "another-secret";

fn account(mutual: bool) -> Option<Arc<Account>> {
    let credential = |name: &str, secret: &str| Credential {
        name: name.to_owned(),
        secret: Secret::new(secret.as_bytes()).unwrap(),
    };
    Some(Arc::new(Account {
        initiator: credential("host", SECRET),
        mutual: mutual.then(|| credential("array", OURS)),
    }))
}

fn proving(account: Option<Arc<Account>>) -> Access {
    Access {
        account,
        ..Access::open()
    }
}

/// The URL of LUN 0 with a user and a password.
fn url(served: &Served, user: &str, arguments: &str) -> String {
    format!("iscsi://{user}@{}/{TARGET}/0{arguments}", served.address())
}

async fn fails(program: &str, arguments: &[&str]) {
    let output = run(program, arguments).await;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{program} {arguments:?}:\n{said}");
}

#[tokio::test]
async fn libiscsi_proves_itself_and_asks_for_a_proof() {
    let served = Served::start().await;
    served.allow(proving(account(true)));
    let right = format!("host%{SECRET}");
    let inquired = succeed("iscsi-inq", &[&url(&served, &right, "")]).await;
    assert!(inquired.contains("Vendor:ASHLAR"), "{inquired}");
    let mutual = format!("?target_user=array&target_password={OURS}");
    succeed("iscsi-inq", &[&url(&served, &right, &mutual)]).await;
    let wrong = "?target_user=array&target_password=something-else";
    fails("iscsi-inq", &[&url(&served, &right, wrong)]).await;
    fails("iscsi-inq", &[&url(&served, "host%another-secret", "")]).await;
    fails("iscsi-inq", &[&url(&served, "else%a-long-secret", "")]).await;
    fails("iscsi-inq", &[&served.url(0)]).await;
    served.stop().await;
}

#[tokio::test]
async fn libiscsi_proves_itself_before_it_discovers() {
    let served = Served::start().await;
    served.directory.set_discovery(account(false));
    let portal = format!("iscsi://host%{SECRET}@{}", served.address());
    let listed = succeed("iscsi-ls", &[&portal]).await;
    assert!(listed.contains(TARGET), "{listed}");
    let unproved = run("iscsi-ls", &[&served.portal_url()]).await;
    assert!(!String::from_utf8_lossy(&unproved.stdout).contains(TARGET));
    served.stop().await;
}

#[tokio::test]
async fn credentials_that_nobody_asks_for_do_no_harm() {
    let served = Served::start().await;
    let user = format!("host%{SECRET}");
    let inquired = succeed("iscsi-inq", &[&url(&served, &user, "")]).await;
    assert!(inquired.contains("Vendor:ASHLAR"), "{inquired}");
    // Who wants a proof of ours gets none: it has to find out.
    let mutual = format!("?target_user=array&target_password={OURS}");
    fails("iscsi-inq", &[&url(&served, &user, &mutual)]).await;
    let portal = format!("iscsi://{user}@{}", served.address());
    let listed = succeed("iscsi-ls", &["--show-luns", &portal]).await;
    assert!(listed.contains(TARGET), "{listed}");
    let image = format!("iscsi://{user}@{}/{TARGET}/0", served.address());
    succeed("qemu-img", &["info", &image]).await;
    served.stop().await;
}

#[tokio::test]
async fn each_login_has_a_challenge_of_its_own() {
    let served = Served::start().await;
    served.allow(proving(account(false)));
    served.directory.set_algorithms(vec![Algorithm::Md5]);
    let mut challenges = BTreeSet::new();
    for _ in 0..20 {
        let mut initiator = Initiator::connect(served.address()).await;
        let names = [
            ("InitiatorName", NAME),
            ("TargetName", TARGET),
            ("AuthMethod", "CHAP"),
        ];
        let (status, _) = initiator.negotiate(0x00, &names).await;
        assert_eq!(status, (0, 0));
        let (_, keys) = initiator.negotiate(0x00, &[("CHAP_A", "7,5")]).await;
        assert!(keys.starts_with("CHAP_A=5\0"), "{keys}");
        challenges.insert(keys.split('\0').nth(2).unwrap().to_owned());
    }
    assert_eq!(challenges.len(), 20);
    served.stop().await;
}

#[tokio::test]
async fn who_has_proved_who_it_is_keeps_its_seat() {
    let one = FrontLimits {
        half_open_max: 1,
        ..limits()
    };
    let served = Served::with_limits(one).await;
    served.directory.set_discovery(account(false));
    let mut first = Initiator::connect(served.address()).await;
    let who = [
        ("InitiatorName", NAME),
        ("SessionType", "Discovery"),
        ("AuthMethod", "CHAP"),
    ];
    assert_eq!(first.negotiate(0x00, &who).await.0, (0, 0));
    let (_, keys) = first.negotiate(0x00, &[("CHAP_A", "5")]).await;
    let value = |key: &str| {
        let mut pairs = keys.split('\0').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).unwrap().1
    };
    let challenge = iscsi::text::binary(value("CHAP_C")).unwrap();
    let secret = Secret::new(SECRET.as_bytes()).unwrap();
    let response = Algorithm::Md5.response(value("CHAP_I").parse().unwrap(), &secret, &challenge);
    let digits: String = response.iter().map(|byte| format!("{byte:02x}")).collect();
    let proof = [("CHAP_N", "host"), ("CHAP_R", &format!("0x{digits}"))];
    assert_eq!(first.negotiate(0x83, &proof).await.0, (0, 0));
    // Its discovery session has the only permit.
    let status = async || {
        let mut other = Initiator::connect(served.address()).await;
        other.send_login(NAME, 1, TARGET).await;
        let answer = other.receive().await.unwrap();
        (answer.header[36], answer.header[37])
    };
    assert_eq!(status().await, (3, 2));
    drop(first);
    while status().await == (3, 2) {}
    served.stop().await;
}

#[tokio::test]
async fn who_is_not_admitted_hears_of_no_target() {
    let served = Served::start().await;
    let named = |name: &str| Initiators::Named([name.to_owned()].into());
    served.allow(Access {
        initiators: named("iqn.2026-11.test:other"),
        ..Access::open()
    });
    let at = served.address();
    let status = |target: &'static str| async move {
        let mut initiator = Initiator::connect(at).await;
        let names = [("InitiatorName", NAME), ("TargetName", target)];
        initiator.negotiate(0x87, &names).await.0
    };
    let none = "iqn.2026-11.dev.ashlar:none";
    assert_eq!((status(TARGET).await, status(none).await), ((2, 3), (2, 3)));
    served.allow(Access {
        initiators: named(NAME),
        ..Access::open()
    });
    assert_eq!(status(TARGET).await, (0, 0));
    served.stop().await;
}

#[tokio::test]
async fn a_portal_group_has_its_tag_and_its_targets() {
    let at = |address: &str, group| Portal {
        group,
        ..address.parse::<SocketAddr>().unwrap().into()
    };
    let second: SocketAddr = "[::1]:0".parse().unwrap();
    let served = Served::at(&[at("127.0.0.1:0", 3), at("[::1]:0", 9)]).await;
    let [one, six] = served.front.portals() else {
        panic!("{:?}", served.front.portals())
    };
    for (portal, tag) in [(one, "3"), (six, "9")] {
        let mut initiator = Initiator::connect(*portal).await;
        let names = [("InitiatorName", NAME), ("TargetName", TARGET)];
        let (status, keys) = initiator.negotiate(0x87, &names).await;
        assert_eq!(status, (0, 0));
        assert!(
            keys.contains(&format!("TargetPortalGroupTag={tag}\0")),
            "{keys}"
        );
        let sessions = served.sessions().await;
        let session = sessions.last().unwrap();
        assert_eq!(
            (session.portal, session.portal_group.to_string()),
            (*portal, tag.to_owned())
        );
    }
    let listed = succeed("iscsi-ls", &[&served.portal_url()]).await;
    assert!(listed.contains(&format!("Portal:{one},3")), "{listed}");
    // Now through the second portal only.
    served.allow(Access {
        portals: Some([second].into()),
        ..Access::open()
    });
    let listed = succeed("iscsi-ls", &[&served.portal_url()]).await;
    assert!(!listed.contains(TARGET), "{listed}");
    let listed = succeed("iscsi-ls", &[&format!("iscsi://{six}")]).await;
    assert!(
        listed.contains(&format!("Target:{TARGET} Portal:{six},9")),
        "{listed}"
    );
    let mut elsewhere = Initiator::connect(*one).await;
    let names = [("InitiatorName", NAME), ("TargetName", TARGET)];
    assert_eq!(elsewhere.negotiate(0x87, &names).await.0, (2, 3));
    served.stop().await;
}

#[tokio::test]
async fn a_host_s_own_secret_counts_before_the_target_s() {
    let served = Served::start().await;
    let initiators: BTreeSet<String> = [NAME.to_owned()].into();
    let host = |account| AdmittedHost {
        initiators: initiators.clone(),
        account,
    };
    let hosts = |account| [("esx".to_owned(), host(account))].into();
    served
        .directory
        .set_hosts(hosts(account(false)), [].into(), std::iter::empty());
    served.allow(Access {
        initiators: Initiators::Named(BTreeSet::new()),
        hosts: ["esx".to_owned()].into(),
        ..Access::open()
    });
    let named = |name: &str| format!("host%{name}");
    let [name, url] = [
        format!("--initiator-name={NAME}"),
        url(&served, &named(SECRET), ""),
    ];
    succeed("iscsi-inq", &[&name, &url]).await;
    fails(
        "iscsi-inq",
        &["--initiator-name=iqn.2026-11.test:other", &url],
    )
    .await;
    served.stop().await;
}
