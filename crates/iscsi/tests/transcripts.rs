//! Logins captured from initiators that we did not write: header and text as sent.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::{answers_in, bytes_of, portal};
use iscsi::chap::Account;
use iscsi::login::{
    Limits, Login, LoginPortal, LoginProgress, Negotiated, Parameters, Refusal, TargetDirectory,
    VisibleTarget,
};
use iscsi::pdu::Bhs;
use iscsi::pdu::response::Response;
use std::sync::Arc;

type Transcript = (Bhs, &'static str);

/// `iscsi-ls` (libiscsi 1.19), discovery.
const ISCSI_LS_DISCOVERY: Transcript = (
    [
        0x43, 0x87, 0x00, 0x00, 0x00, 0x00, 0x01, 0x8b, 0x80, 0x17, 0x0b, 0x1d, 0x00, 0x00, 0x00,
        0x00, 0x6b, 0x16, 0xdf, 0x5a, 0x00, 0x00, 0x00, 0x00, 0x74, 0xc1, 0xef, 0x08, 0x00, 0x00,
        0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00,
    ],
    "InitiatorName=iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-ls\0\
     SessionType=Discovery\0\
     HeaderDigest=None\0\
     DataDigest=None\0\
     InitialR2T=No\0\
     ImmediateData=Yes\0\
     MaxBurstLength=262144\0\
     FirstBurstLength=262144\0\
     DefaultTime2Wait=2\0\
     DefaultTime2Retain=0\0\
     MaxOutstandingR2T=1\0\
     ErrorRecoveryLevel=0\0\
     IFMarker=No\0\
     OFMarker=No\0\
     MaxConnections=1\0\
     MaxRecvDataSegmentLength=262144\0\
     DataPDUInOrder=Yes\0\
     DataSequenceInOrder=Yes\0\
     ",
);

/// `iscsi-inq` (libiscsi 1.19).
const ISCSI_INQ: Transcript = (
    [
        0x43, 0x87, 0x00, 0x00, 0x00, 0x00, 0x01, 0xb8, 0x80, 0x89, 0xc8, 0x06, 0x00, 0x00, 0x00,
        0x00, 0x4f, 0xc0, 0x5c, 0xec, 0x00, 0x00, 0x00, 0x00, 0x6d, 0xfc, 0x31, 0xe0, 0x00, 0x00,
        0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00,
    ],
    "InitiatorName=iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-inq\0\
     TargetName=iqn.2026-11.dev.ashlar:probe\0\
     SessionType=Normal\0\
     HeaderDigest=None,CRC32C\0\
     DataDigest=None\0\
     InitialR2T=No\0\
     ImmediateData=Yes\0\
     MaxBurstLength=262144\0\
     FirstBurstLength=262144\0\
     DefaultTime2Wait=2\0\
     DefaultTime2Retain=0\0\
     MaxOutstandingR2T=1\0\
     ErrorRecoveryLevel=0\0\
     IFMarker=No\0\
     OFMarker=No\0\
     MaxConnections=1\0\
     MaxRecvDataSegmentLength=262144\0\
     DataPDUInOrder=Yes\0\
     DataSequenceInOrder=Yes\0\
     ",
);

/// QEMU's iscsi driver.
const QEMU: Transcript = (
    [
        0x43, 0x87, 0x00, 0x00, 0x00, 0x00, 0x01, 0x9f, 0x80, 0x43, 0x39, 0x42, 0x00, 0x00, 0x00,
        0x00, 0x41, 0x88, 0x7f, 0x85, 0x00, 0x00, 0x00, 0x00, 0x7c, 0x9a, 0x5d, 0xfb, 0x00, 0x00,
        0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00,
    ],
    "InitiatorName=iqn.2008-11.org.linux-kvm\0\
     TargetName=iqn.2026-11.dev.ashlar:probe\0\
     SessionType=Normal\0\
     HeaderDigest=None,CRC32C\0\
     DataDigest=None\0\
     InitialR2T=No\0\
     ImmediateData=Yes\0\
     MaxBurstLength=262144\0\
     FirstBurstLength=262144\0\
     DefaultTime2Wait=2\0\
     DefaultTime2Retain=0\0\
     MaxOutstandingR2T=1\0\
     ErrorRecoveryLevel=0\0\
     IFMarker=No\0\
     OFMarker=No\0\
     MaxConnections=1\0\
     MaxRecvDataSegmentLength=262144\0\
     DataPDUInOrder=Yes\0\
     DataSequenceInOrder=Yes\0\
     ",
);

/// Admits to everything.
struct Open;

impl TargetDirectory for Open {
    fn admit(
        &self,
        _initiator: &str,
        _target: Option<&str>,
        _portal: &LoginPortal,
    ) -> Result<Option<Arc<Account>>, Refusal> {
        Ok(None)
    }

    fn visible(&self, _initiator: &str, _portal: &LoginPortal) -> Vec<VisibleTarget> {
        Vec::new()
    }
}

/// Plays a login that is over after one request; gives the answer's text.
fn played((bhs, text): &Transcript) -> (Negotiated, String) {
    let mut login = Login::new(portal(), 1, Limits::default(), common::chap());
    let (mut input, mut out) = (bytes_of(*bhs, text.as_bytes()), Vec::new());
    let LoginProgress::Done(negotiated) = login.receive(&mut input, &Open, &mut out) else {
        panic!("the login is not complete");
    };
    assert!(input.is_empty());
    let answers = answers_in(&Parameters::default(), &out);
    assert_eq!(answers.len(), 1);
    let Response::Login(pdu) = answers[0].response else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (pdu.status_class, pdu.transit, pdu.next_stage, pdu.tsih),
        (0, true, 3, 1)
    );
    (
        *negotiated,
        String::from_utf8(answers[0].data.clone()).unwrap(),
    )
}

/// What libiscsi offers, in all its programs and in QEMU.
fn agreed() -> Parameters {
    Parameters {
        initial_r2t: false,
        peer_max_recv_data_segment_bytes: 262_144,
        max_burst_bytes: 262_144,
        first_burst_bytes: 262_144,
        ..Parameters::default()
    }
}

const ANSWER: &str = "HeaderDigest=None\0DataDigest=None\0InitialR2T=No\0ImmediateData=Yes\0\
     MaxBurstLength=262144\0FirstBurstLength=262144\0DefaultTime2Wait=2\0DefaultTime2Retain=0\0\
     MaxOutstandingR2T=1\0ErrorRecoveryLevel=0\0IFMarker=No\0OFMarker=No\0MaxConnections=1\0\
     DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0";

#[test]
fn libiscsi_discovers() {
    let (negotiated, answer) = played(&ISCSI_LS_DISCOVERY);
    assert_eq!(negotiated.target, None);
    assert_eq!(negotiated.parameters, agreed());
    assert_eq!(answer, format!("{ANSWER}MaxRecvDataSegmentLength=262144\0"));
}

#[test]
fn libiscsi_and_qemu_log_in() {
    for transcript in [ISCSI_INQ, QEMU] {
        let (negotiated, answer) = played(&transcript);
        assert_eq!(
            negotiated.target.as_deref(),
            Some("iqn.2026-11.dev.ashlar:probe")
        );
        assert_eq!(negotiated.parameters, agreed());
        let ours = "TargetPortalGroupTag=1\0MaxRecvDataSegmentLength=262144\0";
        assert_eq!(answer, format!("{ANSWER}{ours}"));
    }
}
