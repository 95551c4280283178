//! Commands, their order, and data-in.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod common;

use common::{Answer, Session, pattern, read_command};
use iscsi::connection::{Completion, Event};
use iscsi::login::{Limits, Parameters};
use iscsi::pdu::request::Order;
use iscsi::pdu::response::{DataIn, Residual, Response, ScsiResponse};
use iscsi::pdu::{NO_TAG, RejectReason, Request};

fn data_in(answer: &Answer) -> DataIn {
    match answer.response {
        Response::DataIn(pdu) => pdu,
        other => panic!("{other:?} instead of data-in"),
    }
}

fn scsi_response(answer: &Answer) -> ScsiResponse {
    match answer.response {
        Response::ScsiResponse(pdu) => pdu,
        other => panic!("{other:?} instead of a SCSI response"),
    }
}

fn rejected(answer: &Answer) -> u8 {
    match answer.response {
        Response::Reject(pdu) => pdu.reason,
        other => panic!("{other:?} instead of a reject"),
    }
}

#[test]
fn a_read_is_answered_with_data_and_status_in_one_pdu() {
    let mut session = Session::new();
    let command = read_command(session.order(), 5, 4096);
    session.send(Request::ScsiCommand(command), &[]);
    let Event::Command {
        task,
        lun,
        cdb,
        attribute,
        write,
        read,
        expected_bytes,
    } = session.event()
    else {
        panic!("no command");
    };
    assert_eq!((lun, cdb, attribute), (command.lun, command.cdb, 1));
    assert_eq!((write, read, expected_bytes), (false, true, 4096));
    let data = pattern(4096);
    session.complete_good(task, &data, 4096);
    let answer = session.answer();
    assert_eq!(answer.data, data);
    let pdu = data_in(&answer);
    assert_eq!(pdu.status, Some((0, Residual::None)));
    assert!(pdu.is_final);
    assert_eq!(
        (pdu.task_tag, pdu.target_tag, pdu.data_sn, pdu.offset),
        (5, NO_TAG, 0, 0)
    );
    assert_eq!((pdu.numbers.stat_sn, pdu.numbers.exp_cmd_sn), (10, 101));
    assert_eq!(pdu.numbers.max_cmd_sn, 101 + 127);
}

#[test]
fn data_is_cut_at_segments_and_bursts() {
    let parameters = Parameters {
        peer_max_recv_data_segment_bytes: 1000,
        max_burst_bytes: 2500,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let task = session.read(5, 6000);
    let data = pattern(6000);
    session.complete_good(task, &data, 6000);
    let answers = session.answers();
    let cuts: Vec<_> = answers
        .iter()
        .map(|answer| {
            (
                data_in(answer).offset,
                answer.data.len(),
                data_in(answer).is_final,
            )
        })
        .collect();
    let expected = [
        (0, 1000, false),
        (1000, 1000, false),
        (2000, 500, true),
        (2500, 1000, false),
        (3500, 1000, false),
        (4500, 500, true),
        (5000, 1000, true),
    ];
    assert_eq!(cuts, expected);
    let numbers: Vec<u32> = answers
        .iter()
        .map(|answer| data_in(answer).data_sn)
        .collect();
    assert_eq!(numbers, (0..7).collect::<Vec<_>>());
    let with_status = answers
        .iter()
        .filter(|answer| data_in(answer).status.is_some())
        .count();
    assert_eq!(with_status, 1);
    assert!(data_in(&answers[6]).status.is_some());
    let all: Vec<u8> = answers
        .iter()
        .flat_map(|answer| answer.data.clone())
        .collect();
    assert_eq!(all, data);
}

/// (expected, wanted, given) and the residual.
#[test]
fn residuals_of_reads_are_exact() {
    let cases = [
        (512, 512, 512, Residual::None),
        (10_000, 512, 512, Residual::Under(9488)),
        (200, 512, 512, Residual::Over(312)),
        (512, 1024, 512, Residual::Over(512)),
        (0, 512, 512, Residual::Over(512)),
        (0, 512, 0, Residual::Over(512)),
        // INQUIRY with room for more than there is.
        (255, 255, 36, Residual::Under(219)),
        (36, 36, 36, Residual::None),
    ];
    for (expected, wanted, given, residual) in cases {
        let mut session = Session::new();
        let task = session.read(5, expected);
        session.complete_good(task, &pattern(given), wanted);
        let answer = session.answer();
        let sent = given.min(expected as usize);
        assert_eq!(answer.data.len(), sent);
        let found = match answer.response {
            Response::DataIn(pdu) => pdu.status.expect("the status rides on the data").1,
            _ => scsi_response(&answer).residual,
        };
        assert_eq!(
            found, residual,
            "expected {expected}, wanted {wanted}, given {given}"
        );
    }
}

#[test]
fn sense_data_comes_in_a_response_of_its_own() {
    let mut session = Session::new();
    let task = session.read(5, 512);
    let sense = vec![0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0];
    let data = session.pool.copy_of(&[1, 2, 3]).freeze().into();
    let completion = Completion {
        status: 2,
        sense: sense.clone(),
        data,
        wanted_bytes: 512,
        ..Completion::default()
    };
    session.connection.complete(task, completion);
    let answers = session.answers();
    assert_eq!(answers.len(), 2);
    assert!(data_in(&answers[0]).is_final && data_in(&answers[0]).status.is_none());
    let pdu = scsi_response(&answers[1]);
    assert_eq!(
        (pdu.status, pdu.exp_data_sn, pdu.residual),
        (2, 1, Residual::Under(509))
    );
    assert_eq!(answers[1].data, [&[0, 18][..], &sense].concat());
}

#[test]
fn a_command_without_data_gets_a_response() {
    let mut session = Session::new();
    let mut command = read_command(session.order(), 5, 0);
    command.read = false;
    session.send(Request::ScsiCommand(command), &[]);
    let task = session.command_task();
    session.connection.complete(task, Completion::default());
    let pdu = scsi_response(&session.answer());
    assert_eq!(
        (pdu.status, pdu.residual, pdu.exp_data_sn),
        (0, Residual::None, 0)
    );
}

#[test]
fn a_bidirectional_command_has_two_residuals() {
    let mut session = Session::new();
    let command = iscsi::pdu::request::ScsiCommand {
        write: true,
        ..read_command(session.order(), 5, 512)
    };
    let mut bytes = common::bytes_of(Request::ScsiCommand(command).encode(), &[]);
    bytes[4] = 2;
    bytes.extend([0, 5, 2, 0, 0, 0, 4, 0]);
    session.connection.receive(&bytes);
    let task = session.command_task();
    session.complete_good(task, &pattern(100), 512);
    let answers = session.answers();
    assert_eq!(answers[0].data.len(), 100);
    assert!(data_in(&answers[0]).status.is_none());
    let pdu = scsi_response(&answers[1]);
    let residuals = (pdu.residual, pdu.bidirectional_residual);
    assert_eq!(residuals, (Residual::None, Residual::Under(924)));
}

#[test]
fn commands_ahead_wait_until_the_gap_closes() {
    let mut session = Session::new();
    let orders: Vec<Order> = (0..4).map(|_| session.order()).collect();
    for (at, tag) in [(2, 52), (3, 53), (1, 51)] {
        session.send(
            Request::ScsiCommand(read_command(orders[at], tag, 512)),
            &[],
        );
        assert!(session.events().is_empty(), "there is a gap");
    }
    let looked: Vec<_> = (0..3).map(|_| session.connection.look_for_gap()).collect();
    let due = orders[0].cmd_sn;
    assert_eq!(looked, [Some((due, 0)), Some((due, 1)), Some((due, 2))]);
    assert_eq!(
        session.connection.tasks().count(),
        0,
        "the owner knows of none"
    );
    session.send(Request::ScsiCommand(read_command(orders[2], 99, 512)), &[]);
    session.send(Request::ScsiCommand(read_command(orders[0], 50, 512)), &[]);
    let events = session.events();
    assert_eq!(events.len(), 4, "{events:?}");
    assert_eq!(session.connection.look_for_gap(), None);
    for event in events {
        let Event::Command { task, .. } = event else {
            panic!("{event:?}")
        };
        session.complete_good(task, &[1; 512], 512);
    }
    let tags: Vec<u32> = session
        .answers()
        .iter()
        .map(|a| data_in(a).task_tag)
        .collect();
    assert_eq!(tags, [50, 51, 52, 53]);
}

#[test]
fn commands_outside_the_window_are_ignored_with_their_data() {
    let limits = Limits {
        queue_depth: 4,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    for cmd_sn in [99, 104, 0x8000_0000, 0] {
        let order = Order {
            immediate: false,
            cmd_sn,
            exp_stat_sn: 0,
        };
        let write = common::write_command(order, cmd_sn, 512, true);
        session.send(Request::ScsiCommand(write), &[1; 512]);
        assert!(session.events().is_empty(), "{cmd_sn}");
    }
    assert!(session.answers().is_empty());
    session.read(1, 512);
}

#[test]
fn the_window_closes_with_commands_in_progress() {
    let limits = Limits {
        queue_depth: 2,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    let first = session.read(1, 512);
    session.read(2, 512);
    let third = read_command(session.order(), 3, 512);
    session.send(Request::ScsiCommand(third), &[]);
    assert!(session.events().is_empty(), "the window is closed");
    session.complete_good(first, &[0; 512], 512);
    assert_eq!(data_in(&session.answer()).numbers.max_cmd_sn, 102);
    session.send(Request::ScsiCommand(third), &[]);
    assert!(matches!(session.event(), Event::Command { .. }));
}

#[test]
fn cmd_sn_wraps() {
    let mut negotiated = common::negotiated(Parameters::default());
    negotiated.cmd_sn = u32::MAX - 1;
    negotiated.stat_sn = u32::MAX;
    let mut session = Session::from(negotiated, Limits::default());
    for tag in 0..4 {
        let task = session.read(tag, 512);
        session.complete_good(task, &[0; 512], 512);
        let numbers = data_in(&session.answer()).numbers;
        assert_eq!(numbers.exp_cmd_sn, (u32::MAX - 1).wrapping_add(tag + 1));
        assert_eq!(numbers.stat_sn, u32::MAX.wrapping_add(tag));
    }
}

#[test]
fn immediate_commands_do_not_consume_cmd_sn_and_are_few() {
    let limits = Limits {
        queue_depth: 1,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    session.read(1000, 512);
    for tag in 0..20 {
        let order = session.immediate();
        session.send(Request::ScsiCommand(read_command(order, tag, 512)), &[]);
    }
    assert_eq!(session.events().len(), 16);
    let answers = session.answers();
    assert_eq!(answers.len(), 4);
    for answer in &answers {
        assert_eq!(rejected(answer), RejectReason::ImmediateCommandReject as u8);
    }
}

#[test]
fn a_tag_in_use_is_rejected_and_may_be_used_again_later() {
    let mut session = Session::new();
    let task = session.read(5, 512);
    let again = Request::ScsiCommand(read_command(session.order(), 5, 512));
    session.send(again, &[]);
    assert!(session.events().is_empty());
    let answer = session.answer();
    assert_eq!(rejected(&answer), RejectReason::TaskInProgress as u8);
    assert_eq!(answer.data, again.encode(), "the header is copied");
    session.complete_good(task, &[0; 512], 512);
    session.answers();
    assert_ne!(session.read(5, 512), task, "the same tag, another task");
    session.complete_good(task, &[0; 512], 512);
    assert!(session.answers().is_empty(), "the first task is gone");
}

#[test]
fn aborted_tasks_get_no_answer_and_give_their_place_back() {
    let limits = Limits {
        queue_depth: 1,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    let task = session.read(1, 512);
    assert_eq!(
        session.connection.tasks().collect::<Vec<_>>(),
        [(task, [0, 1, 0, 0, 0, 0, 0, 0])]
    );
    session.connection.abort(task);
    session.complete_good(task, &[0; 512], 512);
    assert!(session.answers().is_empty());
    assert_eq!(session.connection.tasks().count(), 0);
    session.read(2, 512);
}

#[test]
fn commands_with_wrong_fields_are_rejected_and_their_cmd_sn_is_consumed() {
    let mut session = Session::new();
    let no_tag = read_command(session.order(), NO_TAG, 512);
    session.send(Request::ScsiCommand(no_tag), &[]);
    assert_eq!(
        rejected(&session.answer()),
        RejectReason::InvalidPduField as u8
    );
    let data_on_a_read = read_command(session.order(), 1, 512);
    session.send(Request::ScsiCommand(data_on_a_read), &[1; 8]);
    assert_eq!(
        rejected(&session.answer()),
        RejectReason::ProtocolError as u8
    );
    let more_than_expected = common::write_command(session.order(), 1, 4, true);
    session.send(Request::ScsiCommand(more_than_expected), &[1; 8]);
    assert_eq!(
        rejected(&session.answer()),
        RejectReason::InvalidPduField as u8
    );
    let more_than_first_burst = common::write_command(session.order(), 1, 100_000, true);
    session.send(Request::ScsiCommand(more_than_first_burst), &[1; 70_000]);
    assert_eq!(
        rejected(&session.answer()),
        RejectReason::ProtocolError as u8
    );
    let bad_ahs = read_command(session.order(), 1, 512);
    let mut bytes = common::bytes_of(Request::ScsiCommand(bad_ahs).encode(), &[]);
    bytes[4] = 1;
    bytes.extend([0, 9, 1, 0]);
    session.connection.receive(&bytes);
    assert_eq!(
        rejected(&session.answer()),
        RejectReason::InvalidPduField as u8
    );
    session.read(1, 512);
}

#[test]
fn length_only_data_is_zeroes_on_the_wire() {
    for data_digest in [false, true] {
        let parameters = Parameters {
            data_digest,
            ..Parameters::default()
        };
        let mut session = Session::with(parameters, Limits::default());
        let task = session.read(5, 5000);
        let data = base::BufPool::length_only().data(5000).freeze().into();
        let completion = Completion {
            data,
            wanted_bytes: 5000,
            ..Completion::default()
        };
        session.connection.complete(task, completion);
        assert_eq!(session.answer().data, [0; 5000]);
    }
}
