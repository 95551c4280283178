//! Data-out: immediate, unsolicited and solicited.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod common;

use common::{Session, pattern, unsolicited, write_command};
use iscsi::connection::{Completion, Event, TaskId};
use iscsi::login::{Limits, Parameters};
use iscsi::pdu::request::DataOut;
use iscsi::pdu::response::{ReadyToTransfer, Residual, Response, ScsiResponse};
use iscsi::pdu::{NO_TAG, RejectReason, Request};

fn r2ts(session: &mut Session) -> Vec<ReadyToTransfer> {
    let pdu = |answer: common::Answer| match answer.response {
        Response::ReadyToTransfer(pdu) => pdu,
        other => panic!("{other:?} instead of an R2T"),
    };
    session.answers().into_iter().map(pdu).collect()
}

fn data_of(session: &mut Session, expected_task: TaskId) -> Vec<u8> {
    match session.event() {
        Event::DataOut { task, data } => {
            assert_eq!(task, expected_task);
            data.bytes().expect("a pool with bytes").to_vec()
        }
        other => panic!("{other:?} instead of data-out"),
    }
}

fn response(session: &mut Session) -> (ScsiResponse, Vec<u8>) {
    let answer = session.answer();
    match answer.response {
        Response::ScsiResponse(pdu) => (pdu, answer.data),
        other => panic!("{other:?} instead of a SCSI response"),
    }
}

/// Answers an R2T in pieces of at most `step` bytes.
fn fulfil(session: &mut Session, r2t: ReadyToTransfer, data: &[u8], step: usize) {
    let (from, len) = (r2t.offset as usize, r2t.desired_bytes as usize);
    let burst = &data[from..from + len];
    let count = burst.chunks(step).count();
    for (number, chunk) in burst.chunks(step).enumerate() {
        let pdu = DataOut {
            is_final: number + 1 == count,
            lun: r2t.lun,
            task_tag: r2t.task_tag,
            target_tag: r2t.target_tag,
            exp_stat_sn: 0,
            data_sn: number as u32,
            offset: (from + number * step) as u32,
        };
        session.data_out(pdu, chunk);
    }
}

#[test]
fn immediate_data_is_enough_for_a_small_write() {
    let mut session = Session::new();
    let data = pattern(4096);
    let task = session.write(5, 4096, &data, true);
    session.connection.accept(task, 4096);
    assert!(session.answers().is_empty(), "no R2T is needed");
    assert_eq!(data_of(&mut session, task), data);
    session.connection.complete(
        task,
        Completion {
            wanted_bytes: 4096,
            ..Completion::default()
        },
    );
    let (pdu, sense) = response(&mut session);
    assert_eq!(
        (pdu.status, pdu.residual, pdu.exp_data_sn, sense),
        (0, Residual::None, 0, vec![])
    );
}

#[test]
fn data_lies_aligned() {
    let mut session = Session::new();
    let task = session.write(5, 4096, &pattern(4096), true);
    session.connection.accept(task, 4096);
    let Event::DataOut { data, .. } = session.event() else {
        panic!("no data")
    };
    assert!(data.is_aligned());
    assert_eq!(
        data.bytes().unwrap().as_ptr() as usize % base::BLOCK_BYTES,
        0
    );
}

#[test]
fn the_rest_is_asked_for_in_bursts_one_after_the_other() {
    let parameters = Parameters {
        max_burst_bytes: 1000,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let data = pattern(3300);
    let task = session.write(5, 3300, &data[..500], true);
    assert!(
        session.answers().is_empty(),
        "the owner has not said how much it wants"
    );
    session.connection.accept(task, 3300);
    for (number, (offset, len)) in [(500, 1000), (1500, 1000), (2500, 800)]
        .into_iter()
        .enumerate()
    {
        let asked = r2ts(&mut session);
        assert_eq!(asked.len(), 1, "one R2T at a time");
        let r2t = asked[0];
        assert_eq!(
            (r2t.r2t_sn, r2t.offset, r2t.desired_bytes),
            (number as u32, offset, len)
        );
        assert_eq!((r2t.task_tag, r2t.numbers.stat_sn), (5, 10));
        assert_ne!(r2t.target_tag, NO_TAG);
        assert!(session.events().is_empty());
        fulfil(&mut session, r2t, &data, 300);
    }
    assert_eq!(data_of(&mut session, task), data);
    session.connection.complete(
        task,
        Completion {
            wanted_bytes: 3300,
            ..Completion::default()
        },
    );
    let (pdu, _) = response(&mut session);
    assert_eq!(
        (pdu.exp_data_sn, pdu.numbers.stat_sn),
        (3, 10),
        "R2Ts take no StatSN"
    );
}

#[test]
fn as_many_bursts_are_asked_for_as_may_be_outstanding() {
    let parameters = Parameters {
        max_burst_bytes: 1000,
        max_outstanding_r2t: 3,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let data = pattern(5000);
    let task = session.write(5, 5000, &[], true);
    session.connection.accept(task, 5000);
    let mut asked = r2ts(&mut session);
    assert_eq!(asked.len(), 3);
    for at in 0..5 {
        fulfil(&mut session, asked[at], &data, 1000);
        asked.extend(if at < 2 { r2ts(&mut session) } else { vec![] });
    }
    assert_eq!(data_of(&mut session, task), data);
}

#[test]
fn unsolicited_data_comes_before_the_first_r2t() {
    let parameters = Parameters {
        initial_r2t: false,
        first_burst_bytes: 1024,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let data = pattern(3000);
    let task = session.write(5, 3000, &data[..256], false);
    session.connection.accept(task, 3000);
    assert!(
        session.answers().is_empty(),
        "unsolicited data is announced"
    );
    session.data_out(unsolicited(5, 0, 256, false), &data[256..512]);
    session.data_out(unsolicited(5, 1, 512, true), &data[512..1024]);
    let asked = r2ts(&mut session);
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].offset, asked[0].desired_bytes), (1024, 1976));
    fulfil(&mut session, asked[0], &data, 1976);
    assert_eq!(data_of(&mut session, task), data);
}

#[test]
fn unsolicited_data_may_come_before_and_after_the_owner_accepts() {
    for accept_after in 0..3 {
        let parameters = Parameters {
            initial_r2t: false,
            ..Parameters::default()
        };
        let mut session = Session::with(parameters, Limits::default());
        let data = pattern(1024);
        let task = session.write(5, 1024, &[], false);
        for step in 0..3 {
            if step == accept_after {
                session.connection.accept(task, 512);
            }
            match step {
                0 => session.data_out(unsolicited(5, 0, 0, false), &data[..600]),
                1 => session.data_out(unsolicited(5, 1, 600, true), &data[600..]),
                _ => {}
            }
        }
        assert_eq!(
            data_of(&mut session, task),
            data[..512],
            "only what is wanted"
        );
    }
}

/// (expected, wanted) and what comes of it.
#[test]
fn residuals_of_writes_are_exact_and_only_what_is_wanted_is_written() {
    let cases = [
        (512, 512, 512, Residual::None),
        (1024, 512, 512, Residual::Under(512)),
        (512, 1024, 512, Residual::Over(512)),
        (200, 512, 200, Residual::Over(312)),
        (0, 512, 0, Residual::Over(512)),
        (512, 0, 0, Residual::Under(512)),
    ];
    for immediate in [true, false] {
        for (expected, wanted, collected, residual) in cases {
            let mut session = Session::new();
            let data = pattern(expected);
            let sent = if immediate { &data[..] } else { &[] };
            let task = session.write(5, expected as u32, sent, true);
            session.connection.accept(task, wanted);
            for r2t in r2ts(&mut session) {
                assert_eq!(r2t.desired_bytes as usize, collected);
                fulfil(&mut session, r2t, &data, 512);
            }
            assert_eq!(data_of(&mut session, task), data[..collected]);
            let wanted_bytes = wanted;
            session.connection.complete(
                task,
                Completion {
                    wanted_bytes,
                    ..Completion::default()
                },
            );
            assert_eq!(
                response(&mut session).0.residual,
                residual,
                "{expected} and {wanted}"
            );
        }
    }
}

#[test]
fn a_transfer_is_never_longer_than_the_limit() {
    let limits = Limits {
        max_transfer_bytes: 2048,
        first_burst_bytes: 512,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    let task = session.write(5, u32::MAX, &[7; 512], true);
    session.connection.accept(task, u64::MAX);
    let asked = r2ts(&mut session);
    assert_eq!((asked[0].offset, asked[0].desired_bytes), (512, 1536));
    assert!(session.pool.outstanding_bytes() <= 4096);
    fulfil(&mut session, asked[0], &[7; 2048], 2048);
    assert_eq!(data_of(&mut session, task), [7; 2048]);
}

#[test]
fn the_data_of_few_commands_is_asked_for_at_a_time() {
    let limits = Limits {
        solicited_bytes: 2048,
        first_burst_bytes: 512,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    let tasks: Vec<TaskId> = (0..7)
        .map(|tag| {
            let task = session.write(tag, 1024, &[], true);
            session.connection.accept(task, 1024);
            session.connection.accept(task, 1024);
            task
        })
        .collect();
    let asked = r2ts(&mut session);
    let tags = |asked: &[ReadyToTransfer]| asked.iter().map(|r| r.task_tag).collect::<Vec<_>>();
    assert_eq!(tags(&asked), [0, 1]);
    session.connection.abort(tasks[2]);
    assert!(session.answers().is_empty());
    fulfil(&mut session, asked[1], &[7; 1024], 512);
    assert_eq!(data_of(&mut session, tasks[1]), [7; 1024]);
    assert_eq!(
        tags(&r2ts(&mut session)),
        [3],
        "whose data has come makes room"
    );
    let small = session.write(9, 512, &[1; 512], true);
    session.connection.accept(small, 512);
    assert_eq!(
        data_of(&mut session, small),
        [1; 512],
        "a write with its data needs no room"
    );
    session.connection.abort(tasks[0]);
    assert_eq!(tags(&r2ts(&mut session)), [4], "an aborted one makes room");
    session.connection.complete(
        tasks[1],
        Completion {
            wanted_bytes: 1024,
            ..Completion::default()
        },
    );
    let ended = session.answers();
    assert_eq!(ended.len(), 1, "its room was given before: {ended:?}");
    assert!(matches!(ended[0].response, Response::ScsiResponse(_)));
}

#[test]
fn a_command_alone_asks_for_any_amount() {
    let limits = Limits {
        solicited_bytes: 512,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    for tag in 0..2 {
        let task = session.write(tag, 4096, &[], true);
        session.connection.accept(task, 4096);
    }
    let asked = r2ts(&mut session);
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].task_tag, asked[0].desired_bytes), (0, 4096));
    fulfil(&mut session, asked[0], &[7; 4096], 4096);
    let asked = r2ts(&mut session);
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].task_tag, asked[0].desired_bytes), (1, 4096));
}

/// Ends the command with ABORTED COMMAND and these codes; the owner is told.
fn assert_failed(session: &mut Session, task: TaskId, code: (u8, u8)) {
    match session.event() {
        Event::Dropped { task: dropped } => assert_eq!(dropped, task),
        other => panic!("{other:?} instead of a dropped task"),
    }
    let (pdu, sense) = response(session);
    assert_eq!(pdu.status, 2);
    assert_eq!(
        (sense[4] & 0x0f, (sense[14], sense[15])),
        (0x0b, code),
        "{sense:?}"
    );
    session.connection.accept(task, 512);
    session.connection.complete(task, Completion::default());
    assert!(session.answers().is_empty() && session.events().is_empty());
}

const UNEXPECTED: (u8, u8) = (0x0c, 0x0c);
const AMOUNT: (u8, u8) = (0x0c, 0x0d);
const DAMAGED: (u8, u8) = (0x47, 0x05);

#[test]
fn unsolicited_data_that_was_not_agreed_on_fails_the_command() {
    let mut session = Session::new();
    let task = session.write(5, 1024, &[], false);
    session.data_out(unsolicited(5, 0, 0, true), &[1; 512]);
    assert_failed(&mut session, task, UNEXPECTED);
}

#[test]
fn a_failed_command_is_told_in_the_format_that_its_lun_had_last() {
    let mut session = Session::new();
    let mut failed = |descriptor_sense: bool| {
        let task = session.write(5, 0, &[], true);
        let completion = Completion {
            descriptor_sense,
            ..Completion::default()
        };
        session.connection.complete(task, completion);
        session.answers();
        let task = session.write(6, 1024, &[], false);
        session.data_out(unsolicited(6, 0, 0, true), &[1; 512]);
        assert!(matches!(session.event(), Event::Dropped { task: dropped } if dropped == task));
        response(&mut session).1[2..].to_vec()
    };
    assert_eq!(failed(true), [0x72, 0x0b, 0x0c, 0x0c, 0, 0, 0, 0]);
    assert_eq!(failed(false)[..3], [0x70, 0, 0x0b]);
}

#[test]
fn data_out_of_its_sequence_fails_the_command() {
    let parameters = Parameters {
        initial_r2t: false,
        first_burst_bytes: 1024,
        ..Parameters::default()
    };
    let cases = [
        (unsolicited(5, 1, 0, false), 512, DAMAGED),
        (unsolicited(5, u32::MAX, 0, false), 512, DAMAGED),
        (unsolicited(5, 0, 512, false), 512, DAMAGED),
        (unsolicited(5, 0, u32::MAX, false), 512, DAMAGED),
        (unsolicited(5, 0, 0, true), 1028, AMOUNT),
    ];
    for (pdu, len, code) in cases {
        let mut session = Session::with(parameters.clone(), Limits::default());
        let task = session.write(5, 4096, &[], false);
        session.data_out(pdu, &vec![1; len]);
        assert_failed(&mut session, task, code);
        session.data_out(unsolicited(5, 1, 512, true), &[1; 512]);
        assert!(
            session.answers().is_empty(),
            "late data for a task that is gone"
        );
    }
}

#[test]
fn a_burst_of_the_wrong_length_fails_the_command() {
    for (len, is_final) in [(512, true), (1024, false), (1028, true)] {
        let mut session = Session::new();
        let task = session.write(5, 1024, &[], true);
        session.connection.accept(task, 1024);
        let r2t = r2ts(&mut session)[0];
        let pdu = DataOut {
            target_tag: r2t.target_tag,
            ..unsolicited(5, 0, 0, is_final)
        };
        session.data_out(pdu, &vec![1; len]);
        assert_failed(&mut session, task, AMOUNT);
    }
}

#[test]
fn data_for_an_r2t_that_was_never_sent_is_rejected() {
    let mut session = Session::new();
    let task = session.write(5, 1024, &[], true);
    session.connection.accept(task, 1024);
    let r2t = r2ts(&mut session)[0];
    let wrong = DataOut {
        target_tag: r2t.target_tag ^ 1,
        ..unsolicited(5, 0, 0, true)
    };
    session.data_out(wrong, &[1; 1024]);
    let Response::Reject(reject) = session.answer().response else {
        panic!("no reject")
    };
    assert_eq!(reject.reason, RejectReason::InvalidPduField as u8);
    fulfil(&mut session, r2t, &[2; 1024], 1024);
    assert_eq!(
        data_of(&mut session, task),
        [2; 1024],
        "the command goes on"
    );
}

#[test]
fn data_after_the_last_burst_fails_the_command() {
    let mut session = Session::new();
    let task = session.write(5, 1024, &[], true);
    session.connection.accept(task, 1024);
    let r2t = r2ts(&mut session)[0];
    fulfil(&mut session, r2t, &[2; 1024], 1024);
    data_of(&mut session, task);
    let more = DataOut {
        target_tag: r2t.target_tag + 1,
        ..unsolicited(5, 0, 1024, true)
    };
    session.data_out(more, &[1; 512]);
    assert_failed(&mut session, task, AMOUNT);
}

#[test]
fn an_answer_before_all_data_is_there_ends_the_command() {
    let parameters = Parameters {
        initial_r2t: false,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let task = session.write(5, 4096, &[1; 512], false);
    let completion = Completion {
        status: 2,
        sense: vec![0x70; 18],
        ..Completion::default()
    };
    session.connection.complete(task, completion);
    assert_eq!(response(&mut session).0.status, 2);
    session.data_out(unsolicited(5, 0, 512, true), &[1; 3584]);
    assert!(session.answers().is_empty() && session.events().is_empty());
}

#[test]
fn a_task_may_be_aborted_in_the_middle_of_its_data() {
    let mut session = Session::new();
    let task = session.write(5, 1024, &[], true);
    session.connection.accept(task, 1024);
    let r2t = r2ts(&mut session)[0];
    let pdu = DataOut {
        target_tag: r2t.target_tag,
        ..unsolicited(5, 0, 0, true)
    };
    let bytes = common::bytes_of(Request::DataOut(pdu).encode(), &[1; 1024]);
    session.connection.receive(&bytes[..500]);
    session.connection.abort(task);
    session.connection.receive(&bytes[500..]);
    assert!(session.answers().is_empty() && session.events().is_empty());
    assert_eq!(
        session.pool.outstanding_bytes(),
        0,
        "its buffer is given back"
    );
}

#[test]
fn data_that_is_complete_is_not_handed_over_for_an_aborted_task() {
    let mut session = Session::new();
    let task = session.write(5, 512, &[1; 512], true);
    session.connection.accept(task, 512);
    session.connection.abort(task);
    assert!(session.events().is_empty());
}

#[test]
fn immediate_data_that_was_not_agreed_on_is_rejected() {
    let parameters = Parameters {
        immediate_data: false,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let command = write_command(session.order(), 5, 512, true);
    session.send(Request::ScsiCommand(command), &[1; 512]);
    let Response::Reject(reject) = session.answer().response else {
        panic!("no reject")
    };
    assert_eq!(reject.reason, RejectReason::ProtocolError as u8);
    assert!(session.events().is_empty());
}

#[test]
fn commands_that_nobody_has_begun_hold_little() {
    const BYTES: u32 = 4 << 20;
    let parameters = Parameters {
        first_burst_bytes: 64 << 10,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    let data = pattern(BYTES as usize);
    let tasks: Vec<_> = (0..100)
        .map(|tag| session.write(tag, BYTES, &data[..4096], true))
        .collect();
    let held = session.pool.outstanding_bytes();
    // Four have room for all of it, the others for what may come unasked.
    assert!(held <= (16 << 20) + 96 * (64 << 10), "{held}");
    // One of the others gets its room when it begins, and keeps what had come.
    let task = tasks[50];
    session.connection.accept(task, u64::from(BYTES));
    let mut at = 4096;
    while at < data.len() {
        for answer in session.answers() {
            let Response::ReadyToTransfer(r2t) = answer.response else {
                panic!("{answer:?}")
            };
            let end = (r2t.offset + r2t.desired_bytes) as usize;
            let pdu = DataOut {
                target_tag: r2t.target_tag,
                ..unsolicited(50, 0, r2t.offset, true)
            };
            session.data_out(pdu, &data[at..end]);
            at = end;
        }
    }
    let Event::DataOut { data: came, .. } = session.event() else {
        panic!("no data")
    };
    assert_eq!(came.bytes().unwrap(), data);
    drop(came);
    tasks
        .into_iter()
        .for_each(|task| session.connection.abort(task));
    assert_eq!(session.pool.outstanding_bytes(), 0);
    // What was counted is given back: those after it have all their room again.
    for tag in 200..210 {
        let task = session.write(tag, BYTES, &data[..4096], true);
        assert!(session.pool.outstanding_bytes() >= BYTES as usize);
        session.connection.accept(task, u64::from(BYTES));
        session.connection.abort(task);
    }
}

/// Sends a write with immediate data, of which the owner may not hear.
fn send_write(session: &mut Session, tag: u32, expected_bytes: u32, data: &[u8], is_final: bool) {
    let order = session.order();
    let command = write_command(order, tag, expected_bytes, is_final);
    session.send(Request::ScsiCommand(command), data);
}

const TASK_SET_FULL: u8 = 0x28;

#[test]
fn unasked_data_without_room_is_answered_task_set_full() {
    let mut session = Session::new();
    session.connection.set_unasked_room(8 << 10);
    let data = pattern(4096);
    for tag in [1, 2] {
        session.write(tag, 1 << 20, &data, true);
    }
    assert_eq!(session.connection.unasked_bytes(), 8 << 10);
    send_write(&mut session, 3, 4096, &data, true);
    assert!(session.events().is_empty(), "the owner never hears of it");
    let (pdu, sense) = response(&mut session);
    assert_eq!(
        (pdu.task_tag, pdu.status, sense),
        (3, TASK_SET_FULL, vec![])
    );
    // One without data needs no room, and the tag is free again.
    let task = session.write(3, 4096, &[], true);
    session.connection.accept(task, 4096);
    assert_eq!(session.answers().len(), 1, "an R2T");
    // What the others hold is given back with them.
    session.connection.set_unasked_room(16 << 10);
    let task = session.write(4, 4096, &data, true);
    session.connection.accept(task, 4096);
    assert_eq!(data_of(&mut session, task), data);
    assert_eq!(session.connection.unasked_bytes(), 8 << 10);
}

#[test]
fn unsolicited_data_takes_no_more_room_than_has_come_when_there_is_little() {
    let parameters = Parameters {
        initial_r2t: false,
        first_burst_bytes: 64 << 10,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    session.connection.set_unasked_room(36 << 10);
    let data = pattern(64 << 10);
    let task = session.write(5, 64 << 10, &data[..1000], false);
    assert_eq!(session.connection.unasked_bytes(), 4096);
    let part = |from: usize, number, is_final| DataOut {
        is_final,
        lun: [0, 1, 0, 0, 0, 0, 0, 0],
        task_tag: 5,
        target_tag: NO_TAG,
        exp_stat_sn: 0,
        data_sn: number,
        offset: from as u32,
    };
    session.data_out(part(1000, 0, false), &data[1000..20_000]);
    session.data_out(part(20_000, 1, false), &data[20_000..32_000]);
    assert_eq!(session.connection.unasked_bytes(), 32 << 10);
    // Once the owner wants it, there is room for all of it.
    session.connection.accept(task, 64 << 10);
    assert_eq!(session.connection.unasked_bytes(), 0);
    session.data_out(part(32_000, 2, true), &data[32_000..]);
    assert_eq!(data_of(&mut session, task), data);
}

#[test]
fn unsolicited_data_beyond_the_room_ends_its_command() {
    let parameters = Parameters {
        initial_r2t: false,
        ..Parameters::default()
    };
    let mut session = Session::with(parameters, Limits::default());
    session.connection.set_unasked_room(4096);
    let data = pattern(8192);
    let task = session.write(5, 8192, &data[..4096], false);
    let pdu = DataOut {
        is_final: true,
        lun: [0, 1, 0, 0, 0, 0, 0, 0],
        task_tag: 5,
        target_tag: NO_TAG,
        exp_stat_sn: 0,
        data_sn: 0,
        offset: 4096,
    };
    session.data_out(pdu, &data[4096..]);
    assert!(matches!(session.event(), Event::Dropped { task: gone } if gone == task));
    assert_eq!(response(&mut session).0.status, TASK_SET_FULL);
    assert_eq!(session.connection.unasked_bytes(), 0);
}

#[test]
fn a_buffer_is_no_longer_than_what_the_command_wants() {
    let mut session = Session::new();
    let data = pattern(512);
    let task = session.write(5, 1 << 20, &data, true);
    assert_eq!(session.connection.unasked_bytes(), 1 << 20);
    session.connection.accept(task, 512);
    assert_eq!(session.pool.outstanding_bytes(), 4096);
    assert_eq!(data_of(&mut session, task), data);
}

#[test]
fn looks_are_counted_while_data_that_is_due_does_not_come() {
    let mut session = Session::new();
    let data = pattern(256 << 10);
    let task = session.write(5, 256 << 10, &[], true);
    assert_eq!(
        session.connection.look_for_data(),
        None,
        "none is asked for"
    );
    session.connection.accept(task, 256 << 10);
    let r2t = r2ts(&mut session)[0];
    let looks = |session: &mut Session, count| {
        for passed in 0..count {
            assert_eq!(session.connection.look_for_data(), Some((5, passed)));
        }
    };
    looks(&mut session, 3);
    let mut number = 0;
    let mut send = |session: &mut Session, from: usize, to: usize| {
        let pdu = DataOut {
            is_final: to == data.len(),
            lun: r2t.lun,
            task_tag: 5,
            target_tag: r2t.target_tag,
            exp_stat_sn: 0,
            data_sn: number,
            offset: from as u32,
        };
        number += 1;
        session.data_out(pdu, &data[from..to]);
    };
    send(&mut session, 0, 1000);
    assert_eq!(
        session.connection.look_for_data(),
        Some((5, 3)),
        "too little"
    );
    send(&mut session, 1000, 65_536);
    looks(&mut session, 2);
    send(&mut session, 65_536, data.len());
    assert_eq!(session.connection.look_for_data(), None);
    assert_eq!(data_of(&mut session, task), data);
}

#[test]
fn a_window_that_is_narrowed_opens_as_commands_end_and_never_goes_back() {
    let limits = Limits {
        queue_depth: 4,
        ..Limits::default()
    };
    let mut session = Session::with(Parameters::default(), limits);
    session.connection.set_window(1);
    let tasks: Vec<_> = (1..5).map(|tag| session.write(tag, 0, &[], true)).collect();
    // What was promised at login, all of it used by now.
    let end = session.cmd_sn.wrapping_sub(1);
    for task in tasks {
        session.connection.complete(task, Completion::default());
    }
    let answers = session.answers();
    let ends = answers.iter().map(|answer| match answer.response {
        Response::ScsiResponse(pdu) => pdu.numbers.max_cmd_sn.wrapping_sub(end),
        other => panic!("{other:?} instead of a SCSI response"),
    });
    assert_eq!(ends.collect::<Vec<_>>(), [0, 0, 0, 1]);
}
