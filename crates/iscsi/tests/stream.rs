//! However the stream is cut, the events and the answers are the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod common;

use common::{Session, bytes_with, pattern, read_command, text_of, unsolicited, write_command};
use iscsi::connection::{Completion, Event};
use iscsi::login::{Limits, Parameters};
use iscsi::pdu::request::{DataOut, Logout, NopOut, Order, Text};
use iscsi::pdu::{NO_TAG, Request};
use proptest::prelude::*;

fn parameters(digests: bool) -> Parameters {
    Parameters {
        header_digest: digests,
        data_digest: digests,
        initial_r2t: false,
        first_burst_bytes: 1024,
        max_burst_bytes: 1024,
        ..Parameters::default()
    }
}

/// A whole session in bytes: the tags of R2Ts are known in advance, because they
/// do not depend on how the stream is cut.
fn conversation(parameters: &Parameters) -> Vec<u8> {
    let mut cmd_sn = 99;
    let mut order = || {
        cmd_sn += 1;
        Order {
            immediate: false,
            cmd_sn,
            exp_stat_sn: 0,
        }
    };
    let data = pattern(2055);
    let write = Request::ScsiCommand(write_command(order(), 1, 2055, false));
    let r2t = |number: u32| {
        let from = 1024 + number as usize * 1024;
        let to = (from + 1024).min(data.len());
        let target_tag = 1 << 16 | number;
        let pdu = DataOut {
            target_tag,
            ..unsolicited(1, 0, from as u32, true)
        };
        (Request::DataOut(pdu), data[from..to].to_vec())
    };
    let (first, first_data) = r2t(0);
    let (second, second_data) = r2t(1);
    let nop = NopOut {
        order: order(),
        lun: [0; 8],
        task_tag: 3,
        target_tag: NO_TAG,
    };
    let read = read_command(order(), 4, 515);
    let text = Text {
        order: order(),
        is_final: true,
        continues: false,
        lun: [0; 8],
        task_tag: 5,
        target_tag: NO_TAG,
    };
    let pdus = [
        (write, data[..100].to_vec()),
        (
            Request::DataOut(unsolicited(1, 0, 100, true)),
            data[100..1024].to_vec(),
        ),
        (first, first_data),
        (Request::NopOut(nop), b"ping!".to_vec()),
        (second, second_data),
        (Request::ScsiCommand(read), vec![]),
        (Request::Text(text), text_of(&[("X-key", "value")])),
    ];
    pdus.iter()
        .flat_map(|(pdu, data)| bytes_with(parameters, pdu.encode(), data))
        .collect()
}

/// A logout, once everything before is answered: it ends what is in progress.
fn logout(session: &mut Session) {
    let order = Order {
        immediate: false,
        cmd_sn: 104,
        exp_stat_sn: 0,
    };
    session.send(
        Request::Logout(Logout {
            order,
            reason: 0,
            task_tag: 6,
            cid: 0,
        }),
        &[],
    );
}

/// An event without the slot of its task, which depends on what ended before.
fn line(event: &Event) -> String {
    match event {
        Event::Command {
            task,
            cdb,
            expected_bytes,
            ..
        } => {
            format!("{} {cdb:?} {expected_bytes}", task.0 >> 16)
        }
        Event::DataOut { task, data } => format!("{} {:?}", task.0 >> 16, data.bytes()),
        other => format!("{other:?}"),
    }
}

/// What the session says, with an owner that answers at once.
fn played(parameters: &Parameters, pieces: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
    let mut session = Session::with(parameters.clone(), Limits::default());
    let (mut events, mut sent) = (Vec::new(), Vec::new());
    for piece in pieces {
        session.connection.receive(piece);
        while let Some(event) = session.connection.next_event() {
            match &event {
                Event::Command {
                    task, write: true, ..
                } => session.connection.accept(*task, 2055),
                Event::Command { task, .. } => session.complete_good(*task, &pattern(515), 515),
                Event::DataOut { task, data } => {
                    assert_eq!(data.bytes().unwrap(), pattern(2055));
                    let completion = Completion {
                        wanted_bytes: 2055,
                        ..Completion::default()
                    };
                    session.connection.complete(*task, completion);
                }
                _ => {}
            }
            events.push(line(&event));
        }
        sent.extend(session.sent());
    }
    logout(&mut session);
    events.extend(session.events().iter().map(line));
    sent.extend(session.sent());
    (events, sent)
}

/// The owner answers between two pieces, so how the bytes come decides which
/// MaxCmdSN an answer carries; all else must be the same.
fn without_window(parameters: &Parameters, sent: &[u8]) -> Vec<String> {
    let answers = common::answers_in(parameters, sent);
    let mut lines: Vec<String> = answers
        .iter()
        .map(|answer| {
            let mut bhs = answer.response.encode();
            bhs[24..36].fill(0);
            format!("{:?} {:?}", iscsi::pdu::Response::parse(&bhs), answer.data)
        })
        .collect();
    lines.sort();
    lines
}

/// Plays a write in two long data segments by an owner that puts what it reads where it
/// belongs, `step` bytes at a time at most; gives the answers, and the bytes that were
/// not copied.
fn placed(parameters: &Parameters, step: usize) -> (Vec<u8>, usize) {
    let data = pattern(170_002);
    let mut session = Session::with(parameters.clone(), Limits::default());
    let order = session.order();
    let write = Request::ScsiCommand(write_command(order, 1, 170_002, false));
    let more = Request::DataOut(unsolicited(1, 0, 100_001, true));
    let (first, second) = data.split_at(100_001);
    let bytes = [(write, first), (more, second)]
        .map(|(pdu, data)| bytes_with(parameters, pdu.encode(), data))
        .concat();
    let (mut rest, mut saved, mut taken) = (&bytes[..], 0, None);
    while !rest.is_empty() {
        let space = session.connection.space();
        let len = step.min(rest.len());
        if space.is_empty() {
            session.connection.receive(&rest[..len]);
            rest = &rest[len..];
        } else {
            let len = len.min(space.len());
            space[..len].copy_from_slice(&rest[..len]);
            session.connection.received(len);
            (saved, rest) = (saved + len, &rest[len..]);
        }
        while let Some(event) = session.connection.next_event() {
            match event {
                Event::Command { task, .. } => session.connection.accept(task, 170_002),
                Event::DataOut { task, data } => taken = Some((task, data)),
                other => panic!("{other:?}"),
            }
        }
    }
    let (task, came) = taken.expect("all data has come");
    assert!(came.bytes().unwrap() == data, "in steps of {step}");
    session.complete_good(task, &[], 170_002);
    (session.sent(), saved)
}

#[test]
fn data_that_is_read_right_to_its_place_is_the_same() {
    for digests in [false, true] {
        let parameters = Parameters {
            first_burst_bytes: 256 << 10,
            max_burst_bytes: 256 << 10,
            ..parameters(digests)
        };
        let (expected, _) = placed(&parameters, usize::MAX);
        for step in [47, 48, 1000, 4096, 65_537] {
            let (sent, saved) = placed(&parameters, step);
            assert_eq!(sent, expected, "in steps of {step}");
            assert!(saved + 2 * step >= 170_002, "{saved} in steps of {step}");
        }
    }
}

fn sorted(mut events: Vec<String>) -> Vec<String> {
    events.sort();
    events
}

#[test]
fn one_cut_anywhere_changes_nothing() {
    for digests in [false, true] {
        let parameters = parameters(digests);
        let bytes = conversation(&parameters);
        // Byte by byte: every piece is as short as it can be.
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let (events, sent) = played(&parameters, &single);
        assert_eq!(events.len(), 4, "{events:?}");
        let expected = (sorted(events), without_window(&parameters, &sent));
        // The first R2T must be out before the peer answers it, so the cut is
        // tried from there on, and everything before comes byte by byte.
        let lead = bytes.len() - tail_bytes(&parameters);
        for cut in lead..=bytes.len() {
            let mut pieces: Vec<&[u8]> = bytes[..lead].chunks(1).collect();
            pieces.extend([&bytes[lead..cut], &bytes[cut..]]);
            let (events, sent) = played(&parameters, &pieces);
            let found = (sorted(events), without_window(&parameters, &sent));
            assert_eq!(found, expected, "cut at {cut}");
        }
    }
}

/// Length of what comes after the last Data-Out.
fn tail_bytes(parameters: &Parameters) -> usize {
    let digest = if parameters.header_digest { 4 } else { 0 };
    let data_digest = if parameters.data_digest { 4 } else { 0 };
    2 * (48 + digest) + text_of(&[("X-key", "value")]).len().next_multiple_of(4) + data_digest
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cuts_change_nothing(
        digests in any::<bool>(),
        sizes in proptest::collection::vec(1usize..200, 1..40),
    ) {
        let parameters = parameters(digests);
        let bytes = conversation(&parameters);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let (expected, sent_singly) = played(&parameters, &single);
        let mut pieces = Vec::new();
        let (mut rest, mut sizes) = (&bytes[..], sizes.iter().cycle());
        while !rest.is_empty() {
            let size = sizes.next().copied().unwrap_or(1).min(rest.len());
            let (piece, tail) = rest.split_at(size);
            pieces.push(piece);
            rest = tail;
        }
        let (events, sent) = played(&parameters, &pieces);
        prop_assert_eq!(sorted(events), sorted(expected));
        let found = without_window(&parameters, &sent);
        prop_assert_eq!(found, without_window(&parameters, &sent_singly));
    }
}
