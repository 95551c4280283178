//! NOP, text, task management, logout, messages, and all that must be rejected.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod common;

use common::{Session, TARGET, assert_closed, nop, read_command, rejected, text_of, visible};
use iscsi::connection::{Completion, Event};
use iscsi::login::{Limits, Parameters};
use iscsi::pdu::request::{self, Logout, Order, Snack, TaskManagement, Text};
use iscsi::pdu::response::{self, Response};
use iscsi::pdu::{BHS_BYTES, NO_TAG, RejectReason, Request};

fn text(order: Order, target_tag: u32) -> Text {
    let lun = [0; 8];
    Text {
        order,
        is_final: true,
        continues: false,
        lun,
        task_tag: 9,
        target_tag,
    }
}

fn abort_task(order: Order, referenced_tag: u32, referenced_cmd_sn: u32) -> TaskManagement {
    TaskManagement {
        order,
        function: 1,
        lun: [0; 8],
        task_tag: 77,
        referenced_tag,
        referenced_cmd_sn,
        exp_data_sn: 0,
    }
}

fn logout(order: Order, reason: u8, cid: u16) -> Request {
    Request::Logout(Logout {
        order,
        reason,
        task_tag: 8,
        cid,
    })
}

fn text_answer(session: &mut Session) -> (response::Text, String) {
    let answer = session.answer();
    match answer.response {
        Response::Text(pdu) => (pdu, String::from_utf8(answer.data).unwrap()),
        other => panic!("{other:?} instead of text"),
    }
}

fn management_answer(session: &mut Session) -> u8 {
    match session.answer().response {
        Response::TaskManagement(pdu) => {
            assert_eq!(pdu.task_tag, 77);
            pdu.response
        }
        other => panic!("{other:?} instead of a task management response"),
    }
}

#[test]
fn a_ping_comes_back_with_its_data() {
    let mut session = Session::new();
    for immediate in [true, false] {
        let order = if immediate {
            session.immediate()
        } else {
            session.order()
        };
        session.send(nop(order, 4, NO_TAG), b"echo!");
        let answer = session.answer();
        let Response::NopIn(pdu) = answer.response else {
            panic!("{answer:?}")
        };
        assert_eq!(
            (pdu.task_tag, pdu.target_tag, &answer.data[..]),
            (4, NO_TAG, &b"echo!"[..])
        );
    }
    session.read(5, 512);
}

#[test]
fn the_echo_is_no_longer_than_the_peer_takes() {
    let parameters = Parameters {
        peer_max_recv_data_segment_bytes: 512,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let order = session.immediate();
    session.send(nop(order, 4, NO_TAG), &[3; 600]);
    assert_eq!(session.answer().data, [3; 512]);
}

#[test]
fn a_silent_peer_is_pinged_once() {
    let mut session = Session::new();
    assert!(session.connection.nop_in());
    let Response::NopIn(ping) = session.answer().response else {
        panic!("no ping")
    };
    assert_eq!((ping.task_tag, ping.numbers.stat_sn), (NO_TAG, 10));
    assert_ne!(ping.target_tag, NO_TAG);
    assert!(!session.connection.nop_in(), "the last one is not answered");
    let order = session.immediate();
    session.send(nop(order, NO_TAG, ping.target_tag ^ 1), &[]);
    assert!(!session.connection.nop_in(), "that answered another one");
    session.send(nop(order, NO_TAG, ping.target_tag), &[]);
    assert!(session.answers().is_empty(), "an answer is not answered");
    assert!(session.connection.nop_in());
    let Response::NopIn(again) = session.answer().response else {
        panic!("no ping")
    };
    assert_eq!(again.numbers.stat_sn, 10, "pings take no StatSN");
    assert_ne!(again.target_tag, ping.target_tag);
}

#[test]
fn a_discovery_session_lists_all_targets() {
    let mut session = Session::discovery();
    let order = session.order();
    session.send(
        Request::Text(text(order, NO_TAG)),
        &text_of(&[("SendTargets", "All")]),
    );
    let event = session.event();
    assert!(
        matches!(event, Event::SendTargets { target: None }),
        "{event:?}"
    );
    session.connection.answer_targets(&visible());
    let (pdu, text) = text_answer(&mut session);
    assert!(pdu.is_final && !pdu.continues && pdu.target_tag == NO_TAG);
    let expected = "TargetName=iqn.2026-11.dev.ashlar:disk\0\
         TargetAddress=127.0.0.1:3260,1\0TargetAddress=[::1]:3261,2\0\
         TargetName=iqn.2026-11.dev.ashlar:other\0TargetAddress=127.0.0.1:3260,1\0";
    assert_eq!(text, expected);
    session.connection.answer_targets(&visible());
    assert!(session.answers().is_empty(), "nobody asked again");
}

#[test]
fn targets_are_found_by_name_and_a_normal_session_sees_its_own() {
    for (mut session, value) in [
        (Session::discovery(), TARGET.to_owned()),
        (Session::discovery(), TARGET.to_uppercase()),
        (Session::new(), String::new()),
    ] {
        let order = session.order();
        session.send(
            Request::Text(text(order, NO_TAG)),
            &text_of(&[("SendTargets", &value)]),
        );
        let event = session.event();
        assert!(
            matches!(&event, Event::SendTargets { target: Some(n) } if n.eq_ignore_ascii_case(TARGET))
        );
        session.connection.answer_targets(&visible());
        let (_, text) = text_answer(&mut session);
        assert_eq!(text.matches("TargetName=").count(), 1, "{text}");
    }
}

#[test]
fn all_targets_are_for_discovery_only() {
    let mut session = Session::new();
    let order = session.order();
    session.send(
        Request::Text(text(order, NO_TAG)),
        &text_of(&[("SendTargets", "All")]),
    );
    assert_eq!(text_answer(&mut session).1, "SendTargets=Reject\0");
    assert!(session.events().is_empty());
}

#[test]
fn other_keys_are_answered_by_their_rules() {
    let mut session = Session::new();
    let order = session.order();
    let keys = [
        ("MaxRecvDataSegmentLength", "512"),
        ("InitiatorAlias", "host"),
        ("HeaderDigest", "CRC32C"),
        ("X-own", "1"),
    ];
    session.send(Request::Text(text(order, NO_TAG)), &text_of(&keys));
    assert_eq!(
        text_answer(&mut session).1,
        "HeaderDigest=Reject\0X-own=NotUnderstood\0"
    );
    let task = session.read(5, 1024);
    session.complete_good(task, &[0; 1024], 1024);
    assert_eq!(session.answers().len(), 2, "the new length holds");
    let order = session.order();
    let keys = text_of(&[("MaxRecvDataSegmentLength", "1")]);
    session.send(Request::Text(text(order, NO_TAG)), &keys);
    assert_eq!(
        text_answer(&mut session).1,
        "MaxRecvDataSegmentLength=Reject\0"
    );
}

#[test]
fn a_long_list_goes_on_over_several_responses() {
    let mut session = Session::discovery();
    let order = session.order();
    session.send(
        Request::Text(text(order, NO_TAG)),
        &text_of(&[("SendTargets", "All")]),
    );
    session.event();
    let portals = visible()[0].portals.clone();
    let rows: Vec<_> = (0..500)
        .map(|n| iscsi::login::VisibleTarget {
            name: format!("{TARGET}{n}"),
            portals: portals.clone(),
        })
        .collect();
    session.connection.answer_targets(&rows);
    let mut all = String::new();
    loop {
        let (pdu, piece) = text_answer(&mut session);
        all.push_str(&piece);
        if pdu.is_final {
            break;
        }
        assert!(pdu.continues && piece.len() == 8192);
        let order = session.order();
        session.send(Request::Text(text(order, pdu.target_tag)), &[]);
    }
    assert_eq!(all.matches("TargetName=").count(), 500);
}

#[test]
fn a_text_request_may_go_on_over_several_pdus() {
    let mut session = Session::discovery();
    let bytes = text_of(&[("SendTargets", "All")]);
    let first = Text {
        is_final: false,
        continues: true,
        ..text(session.order(), NO_TAG)
    };
    session.send(Request::Text(first), &bytes[..5]);
    let (pdu, piece) = text_answer(&mut session);
    assert!(!pdu.is_final && piece.is_empty());
    let order = session.order();
    session.send(Request::Text(text(order, pdu.target_tag)), &bytes[5..]);
    assert!(matches!(
        session.event(),
        Event::SendTargets { target: None }
    ));
}

#[test]
fn text_requests_that_break_the_rules_are_rejected() {
    let mut session = Session::discovery();
    let unknown_tag = text(session.order(), 5);
    session.send(Request::Text(unknown_tag), &[]);
    assert_eq!(
        rejected(&mut session).0,
        RejectReason::InvalidPduField as u8
    );
    let both = Text {
        continues: true,
        ..text(session.order(), NO_TAG)
    };
    session.send(Request::Text(both), &[]);
    assert_eq!(rejected(&mut session).0, RejectReason::ProtocolError as u8);
    let malformed = text(session.order(), NO_TAG);
    session.send(Request::Text(malformed), b"no value\0");
    assert_eq!(rejected(&mut session).0, RejectReason::ProtocolError as u8);
    let asked = text(session.order(), NO_TAG);
    session.send(Request::Text(asked), &text_of(&[("SendTargets", "All")]));
    session.event();
    let too_early = text(session.order(), NO_TAG);
    session.send(
        Request::Text(too_early),
        &text_of(&[("SendTargets", "All")]),
    );
    assert_eq!(rejected(&mut session).0, RejectReason::ProtocolError as u8);
    session.connection.answer_targets(&visible());
    assert!(
        text_answer(&mut session).0.is_final,
        "the first one is still answered"
    );
}

#[test]
fn text_that_never_ends_closes_the_connection() {
    let limits = Limits {
        max_text_bytes: 1000,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    let mut tag = NO_TAG;
    for _ in 0..2 {
        let go_on = Text {
            is_final: false,
            continues: true,
            ..text(session.order(), tag)
        };
        session.send(Request::Text(go_on), &[b'x'; 500]);
        tag = text_answer(&mut session).0.target_tag;
    }
    let go_on = Text {
        is_final: false,
        continues: true,
        ..text(session.order(), tag)
    };
    session.send(Request::Text(go_on), b"x");
    assert_eq!(rejected(&mut session).0, RejectReason::ProtocolError as u8);
    assert_closed(&mut session);
}

#[test]
fn abort_task_names_the_task() {
    let mut session = Session::new();
    let read = session.read(5, 512);
    let order = session.immediate();
    session.send(Request::TaskManagement(abort_task(order, 5, 100)), &[]);
    let Event::TaskManagement {
        task,
        function,
        referenced,
        ..
    } = session.event()
    else {
        panic!("no task management")
    };
    assert_eq!((function, referenced), (1, Some(read)));
    assert_eq!(
        session.connection.tasks().count(),
        1,
        "the function is not a command"
    );
    session.complete_good(task, &[], 0);
    assert!(
        session.answers().is_empty(),
        "the function is not a command"
    );
    session.connection.managed(read, 0);
    assert!(session.answers().is_empty(), "a command is not a function");
    session.connection.abort(read);
    session.connection.managed(task, 0);
    assert_eq!(management_answer(&mut session), 0);
    session.connection.managed(task, 0);
    assert!(session.answers().is_empty(), "one answer");
}

#[test]
fn abort_task_for_what_is_not_there_needs_no_owner() {
    let mut session = Session::new();
    session.read(5, 512);
    let order = session.immediate();
    session.send(Request::TaskManagement(abort_task(order, 6, 100)), &[]);
    assert_eq!(
        management_answer(&mut session),
        1,
        "it was there and is over"
    );
    assert!(session.events().is_empty());
}

/// The reset of another host has ended it, and its own has not heard of that.
#[test]
fn abort_task_finds_what_was_aborted_until_it_has_ended() {
    let mut session = Session::new();
    let read = session.read(5, 512);
    session.connection.abort_running(read);
    assert_eq!(session.connection.tasks().count(), 0);
    let order = session.immediate();
    session.send(Request::TaskManagement(abort_task(order, 5, 100)), &[]);
    let Event::TaskManagement {
        task, referenced, ..
    } = session.event()
    else {
        panic!("no task management")
    };
    assert_eq!(referenced, Some(read));
    session.connection.aborted_ended(read);
    session.connection.managed(task, 0);
    assert_eq!(management_answer(&mut session), 0);
    let order = session.immediate();
    session.send(Request::TaskManagement(abort_task(order, 5, 100)), &[]);
    assert_eq!(management_answer(&mut session), 1, "it has ended");
    // The tag is free again at once.
    let next = session.read(5, 512);
    session.connection.abort_running(next);
    let last = session.read(5, 512);
    let order = session.immediate();
    session.send(Request::TaskManagement(abort_task(order, 5, 100)), &[]);
    assert!(
        matches!(session.event(), Event::TaskManagement { referenced, .. } if referenced == Some(last))
    );
}

#[test]
fn abort_task_counts_a_command_that_never_came() {
    let mut session = Session::new();
    let lost = session.order();
    let held = read_command(session.order(), 6, 512);
    session.send(Request::ScsiCommand(held), &[]);
    assert!(session.events().is_empty());
    let order = session.immediate();
    session.send(
        Request::TaskManagement(abort_task(order, 5, lost.cmd_sn)),
        &[],
    );
    assert!(
        matches!(session.event(), Event::Command { .. }),
        "the gap is closed"
    );
    assert_eq!(management_answer(&mut session), 0);
    session.send(Request::ScsiCommand(read_command(lost, 5, 512)), &[]);
    assert!(session.events().is_empty(), "too late");
}

#[test]
fn abort_task_takes_out_a_command_that_waits_its_turn() {
    let mut session = Session::new();
    let first = session.order();
    let held = session.order();
    session.send(Request::ScsiCommand(read_command(held, 6, 512)), &[]);
    let order = session.immediate();
    session.send(
        Request::TaskManagement(abort_task(order, 6, held.cmd_sn)),
        &[],
    );
    assert_eq!(management_answer(&mut session), 0);
    session.send(Request::ScsiCommand(read_command(first, 5, 512)), &[]);
    session.command_task();
    session.read(7, 512);
}

#[test]
fn other_functions_go_to_the_owner_or_are_refused() {
    for (function, response) in [(8, 4), (0, 255), (9, 255), (127, 255)] {
        let mut session = Session::new();
        let pdu = TaskManagement {
            function,
            ..abort_task(session.order(), NO_TAG, 0)
        };
        session.send(Request::TaskManagement(pdu), &[]);
        assert_eq!(management_answer(&mut session), response, "{function}");
        assert!(session.events().is_empty());
    }
    for function in 2..=7 {
        let mut session = Session::new();
        let pdu = TaskManagement {
            function,
            ..abort_task(session.order(), NO_TAG, 0)
        };
        session.send(Request::TaskManagement(pdu), &[]);
        let event = session.event();
        assert!(
            matches!(event, Event::TaskManagement { function: f, referenced: None, .. } if f == function)
        );
    }
}

#[test]
fn commands_behind_a_lun_reset_are_not_among_its_tasks() {
    let mut session = Session::new();
    let before = session.read(5, 512);
    let pdu = TaskManagement {
        function: 5,
        ..abort_task(session.immediate(), NO_TAG, 0)
    };
    session.send(Request::TaskManagement(pdu), &[]);
    let after = read_command(session.order(), 6, 512);
    session.send(Request::ScsiCommand(after), &[]);
    assert!(matches!(
        session.connection.next_event(),
        Some(Event::TaskManagement { .. })
    ));
    let tasks: Vec<_> = session.connection.tasks().map(|(task, _)| task).collect();
    assert_eq!(tasks, [before]);
    session.command_task();
}

#[test]
fn task_management_with_a_tag_in_use_is_rejected() {
    let mut session = Session::new();
    session.read(77, 512);
    let pdu = abort_task(session.immediate(), 77, 100);
    session.send(Request::TaskManagement(pdu), &[]);
    assert_eq!(rejected(&mut session).0, RejectReason::TaskInProgress as u8);
}

#[test]
fn logout_closes() {
    for (reason, cid) in [(0, 0), (1, 3)] {
        let mut session = Session::new();
        session.read(5, 512);
        let order = session.order();
        session.send(logout(order, reason, cid), &[]);
        let Response::Logout(pdu) = session.answer().response else {
            panic!("no logout")
        };
        assert_eq!((pdu.response, pdu.task_tag), (0, 8));
        assert_closed(&mut session);
    }
}

#[test]
fn tasks_that_a_logout_has_cut_off_stay_silent() {
    let mut session = Session::new();
    let write = session.write(5, 1024, &[1; 512], true);
    let empty = session.write(6, 1024, &[1; 1024], true);
    let order = session.order();
    session.send(logout(order, 0, 0), &[]);
    session.answers();
    assert!(matches!(session.event(), Event::Close { .. }));
    session.connection.accept(write, 1024);
    session.connection.accept(empty, 0);
    session.connection.complete(write, Completion::default());
    assert!(session.events().is_empty() && session.answers().is_empty());
}

#[test]
fn logouts_that_are_not_possible_leave_the_session_alone() {
    let mut session = Session::new();
    for (reason, cid, response) in [(1, 4, 1), (2, 3, 2)] {
        let order = session.order();
        session.send(logout(order, reason, cid), &[]);
        let Response::Logout(pdu) = session.answer().response else {
            panic!("no logout")
        };
        assert_eq!(pdu.response, response);
    }
    let order = session.order();
    session.send(logout(order, 3, 3), &[]);
    assert_eq!(
        rejected(&mut session).0,
        RejectReason::InvalidPduField as u8
    );
    session.read(5, 512);
}

#[test]
fn a_logout_waits_its_turn() {
    let mut session = Session::new();
    let first = session.order();
    let second = session.order();
    session.send(logout(second, 0, 0), &[]);
    assert!(session.events().is_empty() && session.answers().is_empty());
    session.send(Request::ScsiCommand(read_command(first, 5, 512)), &[]);
    let events = session.events();
    assert!(
        matches!(events[..], [Event::Command { .. }, Event::Close { .. }]),
        "{events:?}"
    );
}

#[test]
fn the_peer_is_asked_to_log_out() {
    let mut session = Session::new();
    session.connection.request_logout(30);
    let Response::Async(pdu) = session.answer().response else {
        panic!("no message")
    };
    assert_eq!((pdu.event, pdu.parameters), (1, [0, 0, 30]));
    session.connection.announce_drop();
    let Response::Async(pdu) = session.answer().response else {
        panic!("no message")
    };
    let cid = 3;
    assert_eq!((pdu.event, pdu.parameters), (2, [cid, 0, 0]));
}

#[test]
fn a_pdu_that_has_begun_has_a_number_until_it_is_whole() {
    let mut session = Session::new();
    let order = session.immediate();
    let pdu = request::NopOut {
        order,
        lun: [0; 8],
        task_tag: 5,
        target_tag: NO_TAG,
    };
    let bytes = common::bytes_of(Request::NopOut(pdu).encode(), &[7; 100]);
    let mut numbers = Vec::new();
    for _ in 0..2 {
        for part in bytes.chunks(30) {
            session.connection.receive(part);
            numbers.push(session.connection.unfinished());
        }
    }
    let [one, two] = [Some(0), Some(1)];
    let expected = [one, one, one, one, None, two, two, two, two, None];
    assert_eq!(numbers, expected);
}

#[test]
fn what_waits_for_its_turn_is_bounded() {
    let mut session = Session::new();
    // Nobody sends the first: all pings wait for it.
    session.order();
    let mut sent = 0;
    while session.events().is_empty() && sent < 50 {
        let order = session.order();
        let pdu = request::NopOut {
            order,
            lun: [0; 8],
            task_tag: 5 + sent,
            target_tag: NO_TAG,
        };
        session.send(Request::NopOut(pdu), &[7; 50 << 10]);
        sent += 1;
    }
    assert_eq!(sent, 6, "five of them are within 256 KiB");
}

#[test]
fn a_discovery_session_takes_no_commands() {
    let mut session = Session::discovery();
    let command = read_command(session.order(), 5, 512);
    session.send(Request::ScsiCommand(command), &[]);
    assert_eq!(
        rejected(&mut session).0,
        RejectReason::CommandNotSupported as u8
    );
    let pdu = abort_task(session.order(), 5, 100);
    session.send(Request::TaskManagement(pdu), &[]);
    assert_eq!(
        rejected(&mut session).0,
        RejectReason::CommandNotSupported as u8
    );
}

#[test]
fn snack_and_unknown_opcodes_are_rejected_with_their_header() {
    let mut session = Session::new();
    let snack = Request::Snack(Snack {
        kind: 0,
        lun: [0; 8],
        task_tag: 1,
        target_tag: NO_TAG,
        exp_stat_sn: 0,
        begin: 0,
        run_length: 0,
    });
    session.send(snack, &[]);
    assert_eq!(
        rejected(&mut session),
        (RejectReason::SnackReject as u8, snack.encode().to_vec())
    );
    for opcode in [0x07, 0x11, 0x1c, 0x20, 0x3f] {
        let mut bhs = [0; BHS_BYTES];
        bhs[0] = opcode;
        let bytes = common::bytes_of(bhs, b"with data");
        session.connection.receive(&bytes);
        let expected = (
            RejectReason::CommandNotSupported as u8,
            bytes[..BHS_BYTES].to_vec(),
        );
        assert_eq!(rejected(&mut session), expected);
    }
    session.read(5, 512);
}

#[test]
fn a_second_login_closes() {
    let mut session = Session::new();
    session.send(Request::Login(common::login_request(0, 1, true)), &[]);
    assert_eq!(rejected(&mut session).0, RejectReason::ProtocolError as u8);
    assert_closed(&mut session);
}

#[test]
fn lengths_beyond_the_limits_close_before_anything_is_stored() {
    let mut too_long = [0; BHS_BYTES];
    iscsi::pdu::set_data_segment_bytes(&mut too_long, (256 << 10) + 1);
    let mut too_many_headers = [0; BHS_BYTES];
    too_many_headers[4] = 71;
    for bhs in [too_long, too_many_headers] {
        let mut session = Session::new();
        session.connection.receive(&bhs);
        assert_eq!(rejected(&mut session).0, RejectReason::ProtocolError as u8);
        assert_closed(&mut session);
    }
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from_and_then_closed() {
    let parameters = Parameters {
        peer_max_recv_data_segment_bytes: 0xff_ffff,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let order = session.immediate();
    let mut sent = 0;
    while session.connection.takes_input() {
        session.send(nop(order, 1, NO_TAG), &[0; 200_000]);
        sent += 1;
        assert!(sent < 1000);
    }
    assert!(session.events().is_empty(), "the owner stops in time");
    for _ in 0..100 {
        session.send(nop(order, 1, NO_TAG), &[0; 200_000]);
    }
    assert!(matches!(session.event(), Event::Close { .. }));
    assert!(session.connection.output().len() < 20 << 20);
}
