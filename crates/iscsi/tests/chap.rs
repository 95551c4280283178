//! CHAP: logins with the proof that they need, and every way to fail it.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{INITIATOR, account, log_in, login_request, portal};
use iscsi::chap::{Algorithm, Challenge, Chap, RANDOM_BYTES, Secret};
use iscsi::login::{Limits, Login, LoginProgress, Negotiated};
use iscsi::pdu::Response;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SAFE: &str = "iqn.2026-11.dev.ashlar:safe";
const MUTUAL: &str = "iqn.2026-11.dev.ashlar:mutual";

/// What a round is answered with: status, whether the stage is left, and the keys.
type Answered = ((u8, u8), bool, BTreeMap<String, String>);

/// What a host that is wrong makes of an identifier and a challenge.
type Answer = fn(&(u8, Vec<u8>)) -> Vec<u8>;

/// Keys with their values.
type Keys<'a> = &'a [(&'a str, &'a str)];

fn login() -> Login {
    Login::new(portal(), 1, Limits::default(), common::chap())
}

/// Sends keys in the security stage.
fn send(login: &mut Login, transit: bool, keys: &[(&str, &str)]) -> (LoginProgress, Answered) {
    let next = if transit { 3 } else { 0 };
    let (progress, answers) = log_in(login, login_request(0, next, transit), keys);
    let [answer] = &answers[..] else {
        panic!("{answers:?}")
    };
    let Response::Login(response) = answer.response else {
        panic!("{answer:?}")
    };
    let pairs = iscsi::text::parse(&answer.data).unwrap();
    let pairs = pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let status = (response.status_class, response.status_detail);
    (progress, (status, response.transit, pairs.collect()))
}

/// A login at `target` that has its challenge: the identifier and the challenge.
fn challenged(login: &mut Login, target: &str, algorithms: &str) -> (u8, Vec<u8>) {
    let keys = [
        ("InitiatorName", INITIATOR),
        ("TargetName", target),
        ("AuthMethod", "CHAP,None"),
    ];
    // It may want to leave the stage at once, and can't.
    let (_, (status, transit, keys)) = send(login, true, &keys);
    assert_eq!(
        (status, transit, keys["AuthMethod"].as_str()),
        ((0, 0), false, "CHAP")
    );
    assert_eq!(keys["TargetPortalGroupTag"], "1");
    let (_, (status, transit, keys)) = send(login, false, &[("CHAP_A", algorithms)]);
    assert_eq!((status, transit, keys.len()), ((0, 0), false, 3));
    let id = keys["CHAP_I"].parse().unwrap();
    (id, iscsi::text::binary(&keys["CHAP_C"]).unwrap())
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once("0x".to_owned()).chain(digits).collect()
}

/// The right response of the host.
fn response(algorithm: Algorithm, (id, challenge): &(u8, Vec<u8>)) -> Vec<u8> {
    algorithm.response(*id, &account(false).initiator.secret, challenge)
}

fn done(progress: LoginProgress) -> Negotiated {
    match progress {
        LoginProgress::Done(negotiated) => *negotiated,
        other => panic!("{other:?}"),
    }
}

/// The status that ends a login, which says nothing more.
fn refused((progress, (status, transit, keys)): (LoginProgress, Answered)) -> (u8, u8) {
    assert!(
        matches!(progress, LoginProgress::Close { .. }),
        "{progress:?}"
    );
    assert!(!transit && keys.is_empty(), "{keys:?}");
    status
}

#[test]
fn the_right_response_is_admitted_with_each_algorithm() {
    for (offer, algorithm) in [
        ("5", Algorithm::Md5),
        ("6", Algorithm::Sha1),
        ("5,7", Algorithm::Sha256),
        ("5,6,7,8", Algorithm::Sha3_256),
        ("9,4,0x6,5", Algorithm::Sha1),
    ] {
        let mut login = login();
        let challenge = challenged(&mut login, SAFE, offer);
        assert_eq!(challenge.1.len(), algorithm.digest_bytes());
        let proof = hexadecimal(&response(algorithm, &challenge));
        let keys = [("CHAP_N", "the-host"), ("CHAP_R", &proof)];
        let (progress, (status, transit, keys)) = send(&mut login, true, &keys);
        assert_eq!((status, transit, keys.len()), ((0, 0), true, 0), "{offer}");
        let negotiated = done(progress);
        assert_eq!(negotiated.admission.chap_name(), Some("the-host"));
        assert_eq!(negotiated.admission.account, Some(account(false)));
    }
}

#[test]
fn an_owner_may_prefer_and_forbid_algorithms() {
    let with = |algorithms: &[Algorithm]| Chap {
        algorithms: algorithms.to_vec(),
        ..common::chap()
    };
    let preferring = with(&[Algorithm::Sha1, Algorithm::Sha256]);
    let mut login = Login::new(portal(), 1, Limits::default(), preferring);
    assert_eq!(challenged(&mut login, SAFE, "5,6,7,8").1.len(), 20, "SHA-1");
    let chap = with(&[Algorithm::Sha256]);
    let mut login = Login::new(portal(), 1, Limits::default(), chap);
    let keys = [
        ("InitiatorName", INITIATOR),
        ("TargetName", SAFE),
        ("AuthMethod", "CHAP"),
    ];
    send(&mut login, false, &keys);
    assert_eq!(
        refused(send(&mut login, false, &[("CHAP_A", "5,6")])),
        (2, 1)
    );
}

#[test]
fn values_may_be_in_base64_and_the_operational_stage_follows() {
    let mut login = login();
    let challenge = challenged(&mut login, SAFE, "5");
    let proof = response(Algorithm::Md5, &challenge);
    let keys = [("CHAP_N", "the-host"), ("CHAP_R", &base64(&proof))];
    let (_, answers) = log_in(&mut login, login_request(0, 1, true), &keys);
    assert_eq!(answers.len(), 1);
    let (progress, _) = log_in(
        &mut login,
        login_request(1, 3, true),
        &[("DataDigest", "CRC32C")],
    );
    assert!(done(progress).parameters.data_digest);
}

/// 16 bytes in base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits: Vec<u8> = bytes
        .iter()
        .flat_map(|b| (0..8).rev().map(move |n| b >> n & 1))
        .collect();
    bits.resize(bits.len().next_multiple_of(6), 0);
    let mut text = "0b".to_owned();
    for six in bits.chunks(6) {
        let value = six.iter().fold(0, |all, bit| all << 1 | usize::from(*bit));
        text.push(char::from(DIGITS[value]));
    }
    let padded = 2 + (text.len() - 2).next_multiple_of(4);
    while text.len() < padded {
        text.push('=');
    }
    text
}

#[test]
fn mutual_authentication_proves_the_target() {
    let mut login = login();
    let challenge = challenged(&mut login, MUTUAL, "7,5");
    let proof = hexadecimal(&response(Algorithm::Sha256, &challenge));
    let theirs = [0x5a; 1024];
    let keys = [
        ("CHAP_N", "the-host"),
        ("CHAP_R", &proof),
        ("CHAP_I", "0x11"),
        ("CHAP_C", &hexadecimal(&theirs)),
    ];
    let (progress, (status, transit, keys)) = send(&mut login, true, &keys);
    assert_eq!((status, transit), ((0, 0), true));
    assert_eq!(keys["CHAP_N"], "the-target");
    let secret = Secret::new(b"secret-of-the-target").unwrap();
    let expected = Algorithm::Sha256.response(0x11, &secret, &theirs);
    assert_eq!(keys["CHAP_R"], hexadecimal(&expected));
    done(progress);
}

#[test]
fn who_skips_the_proof_is_refused() {
    let names = [("InitiatorName", INITIATOR), ("TargetName", SAFE)];
    let with = |method| [names[0], names[1], ("AuthMethod", method)];
    assert_eq!(
        refused(send(&mut login(), true, &names)),
        (2, 1),
        "no AuthMethod"
    );
    assert_eq!(refused(send(&mut login(), true, &with("None"))), (2, 1));
    assert_eq!(
        refused(send(&mut login(), false, &with("KRB5,None"))),
        (2, 1)
    );
    for keys in [&names[..], &with("None"), &with("CHAP")] {
        let mut login = login();
        let (progress, answers) = log_in(&mut login, login_request(1, 3, true), keys);
        assert!(
            matches!(progress, LoginProgress::Close { .. }),
            "{progress:?}"
        );
        let Response::Login(answer) = answers[0].response else {
            panic!("{answers:?}")
        };
        assert_eq!(
            (answer.status_class, answer.status_detail),
            (2, 1),
            "at once operational"
        );
    }
    // AuthMethod may come in a later request of the stage.
    let mut login = login();
    let (_, (status, transit, _)) = send(&mut login, false, &names);
    assert_eq!((status, transit), ((0, 0), false));
    let (_, (status, _, keys)) = send(&mut login, false, &[("AuthMethod", "CHAP")]);
    assert_eq!((status, keys["AuthMethod"].as_str()), ((0, 0), "CHAP"));
    // Who then wants on without a proof, or says again what it can, is refused.
    assert_eq!(refused(send(&mut login, true, &[])), (2, 7));
}

#[test]
fn where_nothing_is_to_be_proved_there_is_no_chap() {
    let names = [("InitiatorName", INITIATOR), ("TargetName", common::TARGET)];
    let keys = [names[0], names[1], ("AuthMethod", "CHAP,None")];
    let (_, (status, _, keys)) = send(&mut login(), false, &keys);
    assert_eq!((status, keys["AuthMethod"].as_str()), ((0, 0), "None"));
    let only = [names[0], names[1], ("AuthMethod", "CHAP")];
    assert_eq!(
        refused(send(&mut login(), false, &only)),
        (2, 1),
        "as there is no secret"
    );
    let early = [names[0], names[1], ("CHAP_A", "5")];
    assert_eq!(refused(send(&mut login(), false, &early)), (2, 0));
}

#[test]
fn wrong_names_and_responses_are_refused_alike() {
    fn right(challenge: &(u8, Vec<u8>)) -> Vec<u8> {
        response(Algorithm::Sha256, challenge)
    }
    let wrong: [(&str, Answer); 10] = [
        ("another", right),
        ("The-Host", right),
        ("the-host ", right),
        ("the-host", |_| Vec::new()),
        ("the-host", |_| vec![0; 32]),
        ("the-host", |_| vec![0; 500]),
        ("the-host", |challenge| right(challenge)[..31].to_vec()),
        ("the-host", |challenge| [right(challenge), vec![0]].concat()),
        ("the-host", |(id, bytes)| {
            right(&(id.wrapping_add(1), bytes.clone()))
        }),
        ("the-host", |challenge| response(Algorithm::Md5, challenge)),
    ];
    for (at, (name, proof)) in wrong.iter().enumerate() {
        let mut login = login();
        let challenge = challenged(&mut login, SAFE, "7");
        let proof = hexadecimal(&proof(&challenge));
        let keys = [("CHAP_N", *name), ("CHAP_R", &proof)];
        assert_eq!(refused(send(&mut login, true, &keys)), (2, 1), "case {at}");
        let again = log_in(&mut login, login_request(0, 3, true), &keys);
        assert!(again.1.is_empty(), "one attempt is all there is");
    }
}

#[test]
fn keys_that_are_wrong_missing_or_out_of_order_end_the_login() {
    let long_name = "n".repeat(256);
    let long = format!("0x{}", "00".repeat(1025));
    let proof = "0x00000000000000000000000000000000";
    let name = ("CHAP_N", "the-host");
    let cases: [(Keys<'_>, (u8, u8)); 14] = [
        (&[], (2, 7)),
        (&[name], (2, 7)),
        (&[("CHAP_R", proof)], (2, 7)),
        (&[name, ("CHAP_R", proof), ("CHAP_I", "1")], (2, 7)),
        (&[name, ("CHAP_R", proof), ("CHAP_C", proof)], (2, 7)),
        (&[("CHAP_N", ""), ("CHAP_R", proof)], (2, 0)),
        (&[("CHAP_N", &long_name), ("CHAP_R", proof)], (2, 0)),
        (&[name, ("CHAP_R", "")], (2, 0)),
        (&[name, ("CHAP_R", "00")], (2, 0)),
        (&[name, ("CHAP_R", "0x0")], (2, 0)),
        (&[name, ("CHAP_R", "0bA")], (2, 0)),
        (&[name, ("CHAP_R", proof), ("CHAP_R", proof)], (2, 0)),
        (&[("CHAP_A", "5")], (2, 0)),
        (
            &[name, ("CHAP_R", proof), ("CHAP_I", "1"), ("CHAP_C", &long)],
            (2, 0),
        ),
    ];
    for (keys, status) in cases {
        let mut login = login();
        challenged(&mut login, SAFE, "5");
        assert_eq!(refused(send(&mut login, true, keys)), status, "{keys:?}");
    }
    let names = [
        ("InitiatorName", INITIATOR),
        ("TargetName", SAFE),
        ("AuthMethod", "CHAP"),
    ];
    for (keys, status) in [
        (&[("CHAP_A", "")][..], (2, 1)),
        (&[("CHAP_A", "4,x,-5")], (2, 1)),
        (&[("CHAP_A", "5"), name, ("CHAP_R", proof)], (2, 0)),
        (&[name, ("CHAP_R", proof)], (2, 7)),
        (&[("AuthMethod", "CHAP")], (2, 0)),
    ] {
        let mut login = login();
        send(&mut login, false, &names);
        assert_eq!(refused(send(&mut login, false, keys)), status, "{keys:?}");
    }
    let all = [names[0], names[1], names[2], ("CHAP_A", "5")];
    assert_eq!(
        refused(send(&mut login(), false, &all)),
        (2, 0),
        "a step too early"
    );
}

#[test]
fn a_challenge_of_the_initiator_has_a_length_and_a_number() {
    for (id, challenge) in [
        ("256", "0x00"),
        ("-1", "0x00"),
        ("", "0x00"),
        ("1", "0x"),
        ("1", "0b"),
        ("1", ""),
        ("1", "0x0"),
    ] {
        let mut login = login();
        let ours = challenged(&mut login, MUTUAL, "5");
        let proof = hexadecimal(&response(Algorithm::Md5, &ours));
        let keys = [
            ("CHAP_N", "the-host"),
            ("CHAP_R", &proof),
            ("CHAP_I", id),
            ("CHAP_C", challenge),
        ];
        assert_eq!(
            refused(send(&mut login, true, &keys)),
            (2, 0),
            "{id} {challenge}"
        );
    }
}

#[test]
fn a_challenge_that_comes_back_ends_the_login() {
    let mut login = login();
    let ours = challenged(&mut login, MUTUAL, "5");
    let proof = hexadecimal(&response(Algorithm::Md5, &ours));
    let back = hexadecimal(&ours.1);
    let keys = |id| {
        [
            ("CHAP_N", "the-host"),
            ("CHAP_R", proof.as_str()),
            ("CHAP_I", id),
            ("CHAP_C", back.as_str()),
        ]
    };
    assert_eq!(
        refused(send(&mut login, true, &keys("7"))),
        (2, 1),
        "reflected"
    );
}

#[test]
fn no_proof_is_given_where_there_is_no_secret_for_it_and_none_without_one() {
    let mut one_way = login();
    let ours = challenged(&mut one_way, SAFE, "5");
    let proof = hexadecimal(&response(Algorithm::Md5, &ours));
    let asks = |proof| {
        [
            ("CHAP_N", "the-host"),
            ("CHAP_R", proof),
            ("CHAP_I", "1"),
            ("CHAP_C", "0x0102"),
        ]
    };
    assert_eq!(refused(send(&mut one_way, true, &asks(&proof))), (2, 1));
    let mut wrong = login();
    challenged(&mut wrong, MUTUAL, "5");
    let proof = hexadecimal(&[0; 16]);
    assert_eq!(
        refused(send(&mut wrong, true, &asks(&proof))),
        (2, 1),
        "not before it has proved itself"
    );
}

#[test]
fn what_was_heard_of_one_login_is_of_no_use_in_another() {
    let mut first = login();
    let heard = challenged(&mut first, SAFE, "7");
    let proof = hexadecimal(&response(Algorithm::Sha256, &heard));
    let mut random = [0x11; RANDOM_BYTES];
    random[0] = 3;
    let chap = Chap {
        challenge: Challenge::from_random(random),
        ..common::chap()
    };
    let mut second = Login::new(portal(), 2, Limits::default(), chap);
    let fresh = challenged(&mut second, SAFE, "7");
    assert_ne!(heard, fresh);
    let keys = [("CHAP_N", "the-host"), ("CHAP_R", proof.as_str())];
    assert_eq!(refused(send(&mut second, true, &keys)), (2, 1), "replayed");
}

#[test]
fn discovery_and_full_places_are_refused_by_their_status() {
    let full = [
        ("InitiatorName", INITIATOR),
        ("TargetName", "iqn.2026-11.dev.ashlar:full"),
    ];
    assert_eq!(refused(send(&mut login(), true, &full)), (3, 2));
    let request = iscsi::pdu::Request::Login(login_request(0, 3, true)).encode();
    let answer = iscsi::login::turn_away(&request, iscsi::login::Refusal::OutOfResources);
    assert_eq!(answer.map(|bhs| (bhs[36], bhs[37])), Some((3, 2)));
    let refusal = iscsi::login::Refusal::OutOfResources;
    assert!(iscsi::login::turn_away(&request[..47], refusal).is_none());
    assert!(iscsi::login::turn_away(&[0; 48], refusal).is_none());
}

proptest! {
    /// Whatever is said in whatever order: nobody is in who has not proved it.
    #[test]
    fn nothing_but_the_proof_is_a_way_in(rounds in prop::collection::vec(
        (0u8..2, any::<bool>(), prop::collection::vec((0usize..8, 0usize..9), 0..4)), 1..8)) {
        let keys = ["AuthMethod", "CHAP_A", "CHAP_N", "CHAP_R", "CHAP_I", "CHAP_C", "X-a", "HeaderDigest"];
        let values = ["CHAP", "None", "5", "the-host", "0x00000000000000000000000000000000", "1", "0bAA==", "", "CHAP,None"];
        let mut login = login();
        let names = [("InitiatorName", INITIATOR), ("TargetName", SAFE)];
        for (at, (stage, transit, said)) in rounds.into_iter().enumerate() {
            let mut pairs: Vec<(&str, &str)> = said.iter().map(|(k, v)| (keys[*k], values[*v])).collect();
            if at == 0 {
                pairs.extend(names);
            }
            let request = login_request(stage, if transit { 3 } else { 0 }, transit);
            let (progress, _) = log_in(&mut login, request, &pairs);
            prop_assert!(!matches!(progress, LoginProgress::Done(_)), "{:?}", progress);
            if matches!(progress, LoginProgress::Close { .. }) {
                break;
            }
        }
    }
}
