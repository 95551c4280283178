//! Digests, both ways, and what is damaged on the wire.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod common;

use common::{Session, assert_closed, nop, rejected};
use iscsi::connection::Event;
use iscsi::login::{Limits, Parameters};
use iscsi::pdu::request;
use iscsi::pdu::response::Response;
use iscsi::pdu::{NO_TAG, RejectReason, Request};

fn digests() -> Parameters {
    Parameters {
        header_digest: true,
        data_digest: true,
        ..Parameters::default()
    }
}

#[test]
fn digests_go_both_ways() {
    let mut session = Session::with(digests(), Limits::default());
    let order = session.immediate();
    for len in [0, 1, 3, 4, 5, 4096] {
        let data = common::pattern(len);
        session.send(nop(order, 4, NO_TAG), &data);
        assert_eq!(session.answer().data, data);
    }
    let task = session.write(5, 515, &common::pattern(515), true);
    session.connection.accept(task, 515);
    let Event::DataOut { data, .. } = session.event() else {
        panic!("no data")
    };
    assert_eq!(data.bytes().unwrap(), common::pattern(515));
    let task = session.read(6, 4097);
    session.complete_good(task, &common::pattern(4097), 4097);
    assert_eq!(session.answer().data, common::pattern(4097));
}

/// Flips a bit of what `request` is on the wire.
fn send_damaged(session: &mut Session, request: Request, data: &[u8], at: usize) {
    let mut bytes = common::bytes_with(&session.parameters, request.encode(), data);
    bytes[at] ^= 0x10;
    session.connection.receive(&bytes);
}

#[test]
fn a_damaged_header_closes_without_a_word() {
    for at in [0, 5, 20, 47, 48, 51] {
        let mut session = Session::with(digests(), Limits::default());
        let order = session.order();
        send_damaged(&mut session, nop(order, 4, NO_TAG), &[], at);
        assert!(session.answers().is_empty());
        assert_closed(&mut session);
    }
}

#[test]
fn damaged_data_of_a_command_is_rejected_and_closes() {
    for at in [52, 56, 60] {
        let mut session = Session::with(digests(), Limits::default());
        let order = session.order();
        send_damaged(&mut session, nop(order, 4, NO_TAG), b"12345", at);
        assert_eq!(
            rejected(&mut session).0,
            RejectReason::DataDigestError as u8
        );
        assert_closed(&mut session);
    }
    let mut session = Session::with(digests(), Limits::default());
    let write = common::write_command(session.order(), 5, 512, true);
    send_damaged(&mut session, Request::ScsiCommand(write), &[1; 512], 100);
    assert_eq!(
        rejected(&mut session).0,
        RejectReason::DataDigestError as u8
    );
    assert_closed(&mut session);
}

#[test]
fn damaged_data_out_fails_its_command_alone() {
    let mut session = Session::with(digests(), Limits::default());
    let other = session.read(6, 512);
    let task = session.write(5, 512, &[], true);
    session.connection.accept(task, 512);
    let Response::ReadyToTransfer(r2t) = session.answer().response else {
        panic!("no R2T")
    };
    let target_tag = r2t.target_tag;
    let pdu = request::DataOut {
        target_tag,
        ..common::unsolicited(5, 0, 0, true)
    };
    send_damaged(&mut session, Request::DataOut(pdu), &[1; 512], 100);
    assert!(matches!(session.event(), Event::Dropped { task: dropped } if dropped == task));
    let answers = session.answers();
    assert!(matches!(answers[0].response, Response::Reject(pdu) if pdu.reason == 2));
    assert!(matches!(answers[1].response, Response::ScsiResponse(pdu) if pdu.status == 2));
    assert_eq!((answers[1].data[14], answers[1].data[15]), (0x47, 0x05));
    session.complete_good(other, &[0; 512], 512);
    assert_eq!(session.answers().len(), 1);
}
