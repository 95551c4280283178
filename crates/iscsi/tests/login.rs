//! Logins as initiators do them, and as they must not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod common;

use common::{INITIATOR, TARGET, answers_in, bytes_of, log_in, login_request, portal, text_of};
use iscsi::login::{Limits, Login, LoginProgress, Negotiated, Parameters};
use iscsi::pdu::request::{self, Order};
use iscsi::pdu::response::{self, Response};
use iscsi::pdu::{Request, request::NopOut};

fn login() -> Login {
    Login::new(portal(), 0x1234, Limits::default(), common::chap())
}

fn login_answer(answers: &[common::Answer]) -> (response::Login, String) {
    assert_eq!(answers.len(), 1, "{answers:?}");
    match answers[0].response {
        Response::Login(login) => (login, String::from_utf8(answers[0].data.clone()).unwrap()),
        other => panic!("{other:?} instead of a login response"),
    }
}

fn done(progress: LoginProgress) -> Negotiated {
    match progress {
        LoginProgress::Done(negotiated) => *negotiated,
        other => panic!("the login is not complete: {other:?}"),
    }
}

/// The keys of Linux's iscsid, in its order.
const LINUX: &[(&str, &str)] = &[
    ("HeaderDigest", "None"),
    ("DataDigest", "None"),
    ("DefaultTime2Wait", "2"),
    ("DefaultTime2Retain", "0"),
    ("IFMarker", "No"),
    ("OFMarker", "No"),
    ("ErrorRecoveryLevel", "0"),
    ("InitialR2T", "No"),
    ("ImmediateData", "Yes"),
    ("MaxBurstLength", "16776192"),
    ("FirstBurstLength", "262144"),
    ("MaxOutstandingR2T", "1"),
    ("MaxConnections", "1"),
    ("DataPDUInOrder", "Yes"),
    ("DataSequenceInOrder", "Yes"),
    ("MaxRecvDataSegmentLength", "262144"),
];

#[test]
fn linux_logs_in_in_two_stages() {
    let mut login = login();
    let keys = [
        ("InitiatorName", INITIATOR),
        ("InitiatorAlias", "host"),
        ("TargetName", TARGET),
        ("SessionType", "Normal"),
        ("AuthMethod", "None"),
    ];
    let (progress, answers) = log_in(&mut login, login_request(0, 1, true), &keys);
    assert!(matches!(progress, LoginProgress::More), "{progress:?}");
    let (answer, text) = login_answer(&answers);
    assert_eq!(text, "AuthMethod=None\0TargetPortalGroupTag=1\0");
    assert!(answer.transit && answer.current_stage == 0 && answer.next_stage == 1);
    assert_eq!(
        (answer.status_class, answer.tsih, answer.numbers.exp_cmd_sn),
        (0, 0, 100)
    );

    let (progress, answers) = log_in(&mut login, login_request(1, 3, true), LINUX);
    let (answer, text) = login_answer(&answers);
    assert!(answer.transit && answer.next_stage == 3);
    assert_eq!(answer.tsih, 0x1234);
    assert_eq!(
        answer.numbers.max_cmd_sn,
        100 + Limits::default().queue_depth - 1
    );
    let expected = "HeaderDigest=None\0DataDigest=None\0DefaultTime2Wait=2\0DefaultTime2Retain=0\0\
         IFMarker=No\0OFMarker=No\0ErrorRecoveryLevel=0\0InitialR2T=No\0ImmediateData=Yes\0\
         MaxBurstLength=1048576\0FirstBurstLength=262144\0MaxOutstandingR2T=1\0MaxConnections=1\0\
         DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0MaxRecvDataSegmentLength=262144\0";
    assert_eq!(text, expected);

    let negotiated = done(progress);
    assert_eq!(negotiated.admission.initiator, INITIATOR);
    assert_eq!(negotiated.initiator_alias.as_deref(), Some("host"));
    assert_eq!(negotiated.target.as_deref(), Some(TARGET));
    assert_eq!(
        (negotiated.tsih, negotiated.cid, negotiated.cmd_sn),
        (0x1234, 3, 100)
    );
    assert_eq!(negotiated.stat_sn, answer.numbers.stat_sn + 1);
    let parameters = Parameters {
        initial_r2t: false,
        peer_max_recv_data_segment_bytes: 262_144,
        max_burst_bytes: 1 << 20,
        first_burst_bytes: 262_144,
        ..Parameters::default()
    };
    assert_eq!(negotiated.parameters, parameters);
}

/// libiscsi with a user and a password, at a target that asks for neither.
#[test]
fn who_offers_credentials_that_nobody_asks_for_introduces_itself_twice() {
    let mut login = login();
    let introduction = [
        ("InitiatorName", INITIATOR),
        ("InitiatorAlias", "host"),
        ("TargetName", TARGET),
        ("SessionType", "Normal"),
    ];
    let with = |further: &[(&'static str, &'static str)]| [&introduction[..], further].concat();
    let first = with(&[("AuthMethod", "CHAP,None")]);
    let (_, answers) = log_in(&mut login, login_request(0, 1, true), &first);
    let (answer, text) = login_answer(&answers);
    assert_eq!(text, "AuthMethod=None\0TargetPortalGroupTag=1\0");
    assert_eq!((answer.status_class, answer.transit), (0, true));
    let (progress, _) = log_in(&mut login, login_request(1, 3, true), &with(LINUX));
    let negotiated = done(progress);
    assert_eq!(negotiated.admission.initiator, INITIATOR);
    assert_eq!(negotiated.target.as_deref(), Some(TARGET));
}

/// What it was admitted by can't become another thing: discovery may ask for a proof that the
/// target does not ask for.
#[test]
fn who_is_admitted_to_a_target_gets_no_other_session() {
    for (key, value) in [
        ("SessionType", "Discovery"),
        ("TargetName", "iqn.2026-11.dev.ashlar:other"),
        ("InitiatorName", "iqn.2026-11.org.example:other"),
    ] {
        let mut login = login();
        let keys = [("InitiatorName", INITIATOR), ("TargetName", TARGET)];
        let (progress, _) = log_in(&mut login, login_request(0, 1, true), &keys);
        assert!(matches!(progress, LoginProgress::More), "{progress:?}");
        let (progress, answers) = log_in(&mut login, login_request(1, 3, true), &[(key, value)]);
        assert!(
            matches!(progress, LoginProgress::Close { .. }),
            "{key}={value}: {progress:?}"
        );
        assert_eq!(login_answer(&answers).0.status_class, 2, "{key}={value}");
    }
}

#[test]
fn a_login_may_start_at_the_operational_stage_and_be_over_in_one_step() {
    let keys = [
        ("InitiatorName", INITIATOR),
        ("TargetName", TARGET),
        ("HeaderDigest", "CRC32C"),
    ];
    let (progress, answers) = log_in(&mut login(), login_request(1, 3, true), &keys);
    let (_, text) = login_answer(&answers);
    assert_eq!(
        text,
        "HeaderDigest=CRC32C\0TargetPortalGroupTag=1\0MaxRecvDataSegmentLength=262144\0"
    );
    assert!(done(progress).parameters.header_digest);
}

#[test]
fn a_login_may_skip_the_operational_stage() {
    let keys = [
        ("InitiatorName", INITIATOR),
        ("TargetName", TARGET),
        ("AuthMethod", "CHAP,None"),
    ];
    let (progress, _) = log_in(&mut login(), login_request(0, 3, true), &keys);
    assert_eq!(done(progress).parameters, Parameters::default());
}

#[test]
fn a_discovery_session_names_no_target() {
    let keys = [("InitiatorName", INITIATOR), ("SessionType", "Discovery")];
    let (progress, answers) = log_in(&mut login(), login_request(0, 3, true), &keys);
    assert_eq!(login_answer(&answers).1, "");
    assert_eq!(done(progress).target, None);
}

#[test]
fn a_login_may_take_more_rounds_than_it_needs() {
    let mut login = login();
    let keys = [("InitiatorName", INITIATOR), ("TargetName", TARGET)];
    for (request, keys) in [
        (login_request(0, 0, false), &keys[..]),
        (login_request(0, 1, true), &[]),
        (login_request(1, 0, false), &[("ImmediateData", "No")]),
    ] {
        let (progress, answers) = log_in(&mut login, request, keys);
        assert!(matches!(progress, LoginProgress::More), "{progress:?}");
        assert_eq!(login_answer(&answers).0.transit, request.transit);
    }
    let (progress, _) = log_in(&mut login, login_request(1, 3, true), &[]);
    assert!(!done(progress).parameters.immediate_data);
}

#[test]
fn text_may_go_on_over_several_requests() {
    let mut login = login();
    let text = text_of(&[("InitiatorName", INITIATOR), ("TargetName", TARGET)]);
    let (head, tail) = text.split_at(20);
    let first = request::Login {
        continues: true,
        ..login_request(0, 0, false)
    };
    let mut out = Vec::new();
    let mut input = bytes_of(Request::Login(first).encode(), head);
    let progress = login.receive(&mut input, &common::Directory, &mut out);
    assert!(matches!(progress, LoginProgress::More), "{progress:?}");
    let (answer, text) = login_answer(&answers_in(&Parameters::default(), &out));
    assert!(!answer.continues && !answer.transit && text.is_empty());
    let mut input = bytes_of(Request::Login(login_request(0, 3, true)).encode(), tail);
    assert_eq!(
        done(login.receive(&mut input, &common::Directory, &mut out))
            .admission
            .initiator,
        INITIATOR
    );
}

#[test]
fn long_answers_go_on_over_several_responses() {
    let mut login = login();
    let names: Vec<String> = (0..600).map(|n| format!("X-{n}")).collect();
    let mut keys = vec![("InitiatorName", INITIATOR), ("TargetName", TARGET)];
    keys.extend(names.iter().map(|name| (name.as_str(), "1")));
    let (mut progress, mut answers) = log_in(&mut login, login_request(0, 3, true), &keys);
    let mut text = String::new();
    loop {
        let (answer, piece) = login_answer(&answers);
        text.push_str(&piece);
        if !answer.continues {
            break;
        }
        assert!(piece.len() == 8192 && !answer.transit);
        assert!(matches!(progress, LoginProgress::More), "{progress:?}");
        (progress, answers) = log_in(&mut login, login_request(0, 3, true), &[]);
    }
    done(progress);
    assert_eq!(text.matches("=NotUnderstood\0").count(), 600);
}

#[test]
fn bytes_behind_the_login_are_left_for_the_connection() {
    let keys = text_of(&[("InitiatorName", INITIATOR), ("TargetName", TARGET)]);
    let mut input = bytes_of(Request::Login(login_request(0, 3, true)).encode(), &keys);
    input.extend(b"next");
    done(login().receive(&mut input, &common::Directory, &mut Vec::new()));
    assert_eq!(input, b"next");
}

#[test]
fn a_login_may_be_cut_anywhere() {
    let keys = text_of(&[("InitiatorName", INITIATOR), ("TargetName", TARGET)]);
    let bytes = bytes_of(Request::Login(login_request(0, 3, true)).encode(), &keys);
    for cut in 0..bytes.len() {
        let (mut login, mut out) = (login(), Vec::new());
        let mut input = bytes[..cut].to_vec();
        let progress = login.receive(&mut input, &common::Directory, &mut out);
        assert!(
            matches!(progress, LoginProgress::More) && out.is_empty(),
            "cut at {cut}"
        );
        input.extend(&bytes[cut..]);
        done(login.receive(&mut input, &common::Directory, &mut out));
    }
}

/// The status that a first request with these keys is refused with.
fn refused(request: request::Login, keys: &[(&str, &str)]) -> (u8, u8) {
    let mut login = login();
    let (progress, answers) = log_in(&mut login, request, keys);
    assert!(
        matches!(progress, LoginProgress::Close { .. }),
        "{progress:?}"
    );
    let (answer, text) = login_answer(&answers);
    assert!(text.is_empty() && !answer.transit);
    let (progress, answers) = log_in(&mut login, request, keys);
    assert!(matches!(progress, LoginProgress::Close { .. }) && answers.is_empty());
    (answer.status_class, answer.status_detail)
}

#[test]
fn each_reason_to_refuse_has_its_status() {
    let request = login_request(0, 3, true);
    let name = ("InitiatorName", INITIATOR);
    let target = |name| ("TargetName", name);
    assert_eq!(
        refused(request, &[target(TARGET)]),
        (2, 7),
        "no initiator name"
    );
    assert_eq!(refused(request, &[name]), (2, 7), "no target name");
    assert_eq!(
        refused(request, &[name, target("iqn.2026-11.dev.ashlar:none")]),
        (2, 3)
    );
    assert_eq!(
        refused(request, &[name, target("iqn.2026-11.dev.ashlar:forbidden")]),
        (2, 2)
    );
    assert_eq!(
        refused(request, &[name, target("iqn.2026-11.dev.ashlar:later")]),
        (3, 1)
    );
    assert_eq!(
        refused(request, &[name, target(TARGET), ("AuthMethod", "CHAP")]),
        (2, 1)
    );
    assert_eq!(refused(request, &[name, ("SessionType", "Odd")]), (2, 9));
    assert_eq!(refused(request, &[name, name]), (2, 0), "a key twice");
}

#[test]
fn the_log_is_told_in_words_why_a_login_is_refused() {
    for (last, why) in [
        (
            "none",
            "there is no such target, or its export does not admit this initiator",
        ),
        ("forbidden", "this initiator may not log in there"),
        ("later", "the target is withheld, or the array is stopping"),
    ] {
        let target = format!("iqn.2026-11.dev.ashlar:{last}");
        let keys = [("InitiatorName", INITIATOR), ("TargetName", &target)];
        let (progress, _) = log_in(&mut login(), login_request(0, 3, true), &keys);
        let LoginProgress::Close { reason } = progress else {
            panic!("{progress:?}")
        };
        assert_eq!(reason, format!("{INITIATOR} is refused at {target}: {why}"));
    }
}

#[test]
fn each_wrong_header_has_its_status() {
    let keys = &[("InitiatorName", INITIATOR), ("TargetName", TARGET)];
    let right = login_request(0, 3, true);
    assert_eq!(
        refused(
            request::Login {
                version_min: 1,
                ..right
            },
            keys
        ),
        (2, 5)
    );
    assert_eq!(refused(request::Login { tsih: 9, ..right }, keys), (2, 10));
    for (stage, next) in [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (2, 3), (3, 3)] {
        assert_eq!(
            refused(login_request(stage, next, true), keys),
            (2, 11),
            "{stage} to {next}"
        );
    }
    assert_eq!(
        refused(
            request::Login {
                continues: true,
                ..right
            },
            keys
        ),
        (2, 11)
    );
}

#[test]
fn later_requests_must_agree_with_the_first() {
    let keys = &[("InitiatorName", INITIATOR), ("TargetName", TARGET)];
    let right = login_request(1, 3, true);
    for wrong in [
        request::Login {
            isid: [0; 6],
            ..right
        },
        request::Login { cid: 4, ..right },
        request::Login {
            task_tag: 8,
            ..right
        },
        request::Login {
            cmd_sn: 101,
            ..right
        },
        request::Login { tsih: 1, ..right },
        login_request(0, 1, true),
    ] {
        let mut login = login();
        log_in(&mut login, login_request(0, 1, true), keys);
        let (progress, answers) = log_in(&mut login, wrong, &[]);
        assert!(matches!(progress, LoginProgress::Close { .. }), "{wrong:?}");
        assert_eq!(login_answer(&answers).0.status_class, 2);
    }
}

fn closes(login: &mut Login, mut input: Vec<u8>, answered: bool) {
    let mut out = Vec::new();
    let progress = login.receive(&mut input, &common::Directory, &mut out);
    assert!(
        matches!(progress, LoginProgress::Close { .. }),
        "{progress:?}"
    );
    assert_eq!(!out.is_empty(), answered);
}

#[test]
fn another_pdu_before_the_login_closes() {
    let order = Order {
        immediate: true,
        cmd_sn: 1,
        exp_stat_sn: 0,
    };
    let nop = NopOut {
        order,
        lun: [0; 8],
        task_tag: 1,
        target_tag: 0,
    };
    closes(
        &mut login(),
        bytes_of(Request::NopOut(nop).encode(), &[]),
        false,
    );
    closes(&mut login(), vec![0xff; 48], false);
    closes(
        &mut login(),
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: lost\r\n".to_vec(),
        false,
    );
}

#[test]
fn what_is_too_long_is_refused_before_it_is_stored() {
    let mut bhs = Request::Login(login_request(0, 3, true)).encode();
    iscsi::pdu::set_data_segment_bytes(&mut bhs, 8193);
    closes(&mut login(), bhs.to_vec(), true);
    bhs[4] = 1;
    iscsi::pdu::set_data_segment_bytes(&mut bhs, 0);
    closes(&mut login(), bhs.to_vec(), true);
}

#[test]
fn text_that_never_ends_is_cut() {
    let limits = Limits {
        max_text_bytes: 20_000,
        ..Limits::default()
    };
    let mut login = Login::new(portal(), 1, limits, common::chap());
    let request = request::Login {
        continues: true,
        ..login_request(0, 0, false)
    };
    let pdu = bytes_of(Request::Login(request).encode(), &[b'x'; 8000]);
    for _ in 0..2 {
        let progress = login.receive(&mut pdu.clone(), &common::Directory, &mut Vec::new());
        assert!(matches!(progress, LoginProgress::More), "{progress:?}");
    }
    closes(&mut login, pdu, true);
}

#[test]
fn a_login_that_never_ends_is_cut() {
    let mut login = login();
    let keys = [("InitiatorName", INITIATOR), ("TargetName", TARGET)];
    log_in(&mut login, login_request(0, 0, false), &keys);
    let rounds = (0..1000).take_while(|_| {
        matches!(
            log_in(&mut login, login_request(0, 0, false), &[]).0,
            LoginProgress::More
        )
    });
    assert_eq!(rounds.count(), 63);
}

#[test]
fn text_while_an_answer_is_incomplete_is_refused() {
    let mut login = login();
    let names: Vec<String> = (0..600).map(|n| format!("X-{n}")).collect();
    let mut keys = vec![("InitiatorName", INITIATOR), ("TargetName", TARGET)];
    keys.extend(names.iter().map(|name| (name.as_str(), "1")));
    let (_, answers) = log_in(&mut login, login_request(0, 3, true), &keys);
    let (answer, _) = login_answer(&answers);
    assert!(answer.continues && !answer.transit, "{answer:?}");
    let (progress, _) = log_in(&mut login, login_request(0, 3, true), &[("A", "1")]);
    assert!(
        matches!(progress, LoginProgress::Close { .. }),
        "{progress:?}"
    );
}

#[test]
fn a_login_has_so_many_keys() {
    let names: Vec<String> = (0..1023).map(|n| format!("x{n:x}")).collect();
    let keys = |count: usize| -> Vec<(&str, &str)> {
        let own = [("InitiatorName", INITIATOR), ("TargetName", TARGET)];
        let others = names[..count].iter().map(|name| (name.as_str(), "1"));
        own.into_iter().chain(others).collect()
    };
    let (progress, _) = log_in(&mut login(), login_request(0, 3, true), &keys(1022));
    assert!(matches!(progress, LoginProgress::More), "{progress:?}");
    assert_eq!(refused(login_request(0, 3, true), &keys(1023)), (2, 0));
}

#[test]
fn malformed_text_is_refused() {
    for text in [
        &b"InitiatorName"[..],
        b"InitiatorName\0",
        b"a=\xff\0",
        b"=x\0",
    ] {
        let bytes = bytes_of(Request::Login(login_request(0, 3, true)).encode(), text);
        closes(&mut login(), bytes, true);
    }
}
