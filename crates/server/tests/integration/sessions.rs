//! Sessions: bad peers, reinstatement, task management, changes while connected.

use crate::served::initiator::{Initiator, LUN0, NAME, read10, write10};
use crate::served::{Served, TARGET, VOLUME_BYTES, limits};
use server::directory::Portal;
use server::front::{Front, FrontLimits};
use server::shard::SessionInfo;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn data_goes_round_and_is_counted() {
    let served = Served::start().await;
    let mut initiator = Initiator::settled(&served, 1).await;
    let data: Vec<u8> = (0..1024).map(|at| (at % 251) as u8).collect();
    let written = initiator.run(&write10(7, 2), 0, &data).await;
    assert_eq!((written.opcode(), written.header[3]), (0x21, 0));
    let read = initiator.run(&read10(7, 2), 1024, &[]).await;
    assert_eq!(
        (read.opcode(), read.header[1] & 1, read.header[3]),
        (0x25, 1, 0)
    );
    assert_eq!(read.data, data);
    let sessions = served.sessions().await;
    let [session] = &sessions[..] else {
        panic!("{sessions:?}")
    };
    assert_eq!(
        (session.initiator.as_str(), session.target.as_str()),
        (NAME, TARGET)
    );
    assert_eq!((session.commands, session.reads, session.writes), (4, 1, 1));
    assert_eq!((session.read_bytes, session.written_bytes), (1024, 1024));
    served.stop().await;
    assert!(
        initiator.is_shown_out().await,
        "a stopped server closes its connections"
    );
}

#[tokio::test]
async fn wrong_commands_get_sense_and_the_session_goes_on() {
    let served = Served::start().await;
    let mut initiator = Initiator::settled(&served, 1).await;
    assert_eq!(
        initiator.run(&[0xc1; 16], 0, &[]).await.sense(),
        (5, 0x20, 0)
    );
    let last = (VOLUME_BYTES / 512) as u32;
    assert_eq!(
        initiator.run(&read10(last, 1), 512, &[]).await.sense(),
        (5, 0x21, 0)
    );
    let mut protected = read10(0, 1);
    protected[1] = 0x20;
    assert_eq!(
        initiator.run(&protected, 512, &[]).await.sense(),
        (5, 0x24, 0)
    );
    assert_eq!(initiator.run(&[0; 6], 0, &[]).await.header[3], 0);
    served.stop().await;
}

#[tokio::test]
async fn a_peer_that_breaks_the_rules_does_not_disturb_the_others() {
    let served = Served::start().await;
    let mut good = Initiator::settled(&served, 1).await;
    // Garbage instead of a login, and a login cut in the middle.
    let mut garbage = Initiator::connect(served.address()).await;
    garbage.send_bytes(&[0xff; 4096]).await;
    while garbage.receive().await.is_some() {}
    let mut cut = Initiator::connect(served.address()).await;
    cut.send_bytes(&[0x43, 0x87, 0, 0, 0, 0, 1]).await;
    drop(cut);
    // A session that announces more data than was agreed on.
    let mut flood = Initiator::settled(&served, 2).await;
    let mut header = [0; 48];
    header[0] = 0x01;
    header[5..8].copy_from_slice(&[0xff; 3]);
    flood.send_bytes(&header).await;
    while flood.receive().await.is_some() {}
    assert_eq!(good.run(&[0; 6], 0, &[]).await.header[3], 0);
    served.stop().await;
}

#[tokio::test]
async fn a_session_is_reinstated_by_the_same_initiator_and_isid() {
    let served = Served::start().await;
    let mut old = Initiator::settled(&served, 1).await;
    let other = Initiator::settled(&served, 2).await;
    let mut new = Initiator::settled(&served, 1).await;
    assert!(
        old.receive().await.is_none(),
        "the old connection is closed"
    );
    assert_eq!(served.sessions().await.len(), 2);
    assert_eq!(new.run(&[0; 6], 0, &[]).await.header[3], 0);
    // Names compare without case: it is the same host still.
    let shouted = NAME.to_uppercase();
    let again = Initiator::login(served.address(), &shouted, 1, TARGET).await;
    assert!(new.receive().await.is_none(), "it is closed as well");
    let sessions = served.sessions().await;
    assert_eq!(sessions.len(), 2);
    assert!(sessions.iter().all(|session| session.initiator == NAME));
    drop((other, again));
    served.stop().await;
}

#[tokio::test]
async fn a_session_through_another_portal_group_is_another_one() {
    let at = |group| Portal {
        group,
        ..SocketAddr::from(([127, 0, 0, 1], 0)).into()
    };
    let served = Served::at(&[at(1), at(2)]).await;
    let [one, two] = served.front.portals() else {
        panic!("{:?}", served.front.portals())
    };
    let mut first = Initiator::login(*one, NAME, 1, TARGET).await;
    let second = Initiator::login(*two, NAME, 1, TARGET).await;
    assert_eq!(served.sessions().await.len(), 2);
    first.settle().await;
    assert_eq!(first.run(&[0; 6], 0, &[]).await.header[3], 0);
    drop(second);
    served.stop().await;
}

#[tokio::test]
async fn a_write_that_waits_for_data_is_aborted_and_its_data_comes_too_late() {
    let served = Served::start().await;
    let mut initiator = Initiator::settled(&served, 1).await;
    let write = initiator.command(&write10(0, 2), 0, 1024, &[]).await;
    let r2t = initiator.receive().await.unwrap();
    assert_eq!((r2t.opcode(), r2t.tag()), (0x31, write));
    let abort = initiator.manage(1, LUN0, write).await;
    let answer = initiator.receive().await.unwrap();
    assert_eq!(
        (answer.opcode(), answer.tag(), answer.header[2]),
        (0x22, abort, 0)
    );
    let again = initiator.manage(1, LUN0, write).await;
    let answer = initiator.receive().await.unwrap();
    assert_eq!(
        (answer.tag(), answer.header[2]),
        (again, 1),
        "there is no such task any more"
    );
    let read = initiator.run(&read10(0, 2), 1024, &[]).await;
    assert_eq!(read.data, [0; 1024], "nothing was written");
    served.stop().await;
}

#[tokio::test]
async fn a_long_command_is_aborted_and_others_are_answered_meanwhile() {
    let served = Served::start().await;
    let mut initiator = Initiator::settled(&served, 1).await;
    // WRITE SAME of the most there may be, over all the unit has; not of zeroes.
    let mut same = write10(0, 0x8000);
    same[0] = 0x41;
    for function in [1, 5] {
        let long = initiator.command(&same, 0, 512, &[7; 512]).await;
        let read = initiator.command(&read10(0xffff, 1), 512, 0, &[]).await;
        let managed = initiator.manage(function, LUN0, long).await;
        let mut answered = Vec::new();
        let all_of = |answered: &[u32]| match function {
            1 => answered.contains(&read) && answered.contains(&managed),
            _ => answered.contains(&managed),
        };
        while !all_of(&answered) {
            let answer = initiator.receive().await.unwrap();
            let good = match answer.opcode() {
                // A task that had ended is not there to be aborted.
                0x22 => matches!((function, answer.header[2]), (_, 0) | (1, 1)),
                _ => answer.header[3] == 0,
            };
            assert!(good && [long, read, managed].contains(&answer.tag()));
            answered.push(answer.tag());
        }
        if function == 5 {
            // Who asked for a reset hears of it, too.
            assert_eq!(initiator.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
        }
        assert_eq!(initiator.run(&[0; 6], 0, &[]).await.header[3], 0);
    }
    served.stop().await;
}

#[tokio::test]
async fn a_reset_is_answered_and_every_nexus_hears_of_it() {
    let served = Served::start().await;
    served.allow_affecting_others().await;
    let mut by = Initiator::settled(&served, 1).await;
    let mut other = Initiator::settled(&served, 2).await;
    let pending = other.command(&write10(0, 2), 0, 1024, &[]).await;
    assert_eq!(other.receive().await.unwrap().tag(), pending);
    for (function, expected) in [(5, 0), (6, 0), (4, 0), (2, 0), (3, 5), (8, 4), (99, 255)] {
        let tag = by.manage(function, LUN0, 0xffff_ffff).await;
        let answer = by.receive().await.unwrap();
        assert_eq!(
            (answer.tag(), answer.header[2]),
            (tag, expected),
            "function {function}"
        );
    }
    let absent = by.manage(5, [0, 9, 0, 0, 0, 0, 0, 0], 0xffff_ffff).await;
    let answer = by.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[2]), (absent, 2), "no such LUN");
    assert_eq!(other.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    assert_eq!(by.run(&[0; 6], 0, &[]).await.sense(), (6, 0x29, 3));
    assert_eq!(by.run(&[0; 6], 0, &[]).await.header[3], 0);
    served.stop().await;
}

#[tokio::test]
async fn one_host_resets_no_target_of_others_unless_that_is_allowed() {
    let served = Served::start().await;
    let mut by = Initiator::settled(&served, 1).await;
    let mut other = Initiator::settled(&served, 2).await;
    let pending = other.command(&write10(0, 2), 0, 1024, &[]).await;
    let wanted = other.receive().await.unwrap();
    assert_eq!(wanted.tag(), pending);
    for function in [6, 7] {
        let tag = by.manage(function, LUN0, 0xffff_ffff).await;
        let answer = by.receive().await.unwrap();
        assert_eq!((answer.tag(), answer.header[2]), (tag, 6), "{function}");
        // TRS is not shown, either.
        let functions = by
            .run(&[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0], 4, &[])
            .await;
        assert_eq!(functions.data, [0xd8, 0, 0, 0]);
    }
    // What the other one has running goes on, and he has heard of nothing.
    other.give(&wanted, &[7; 1024]).await;
    let answer = other.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[3]), (pending, 0));
    assert_eq!(other.run(&[0; 6], 0, &[]).await.header[3], 0);
    served.stop().await;
}

#[tokio::test]
async fn a_cold_reset_ends_every_connection_to_the_target() {
    let served = Served::start().await;
    served.allow_affecting_others().await;
    let mut by = Initiator::settled(&served, 1).await;
    let mut other = Initiator::settled(&served, 2).await;
    let tag = by.manage(7, LUN0, 0xffff_ffff).await;
    let answer = by.receive().await.unwrap();
    assert_eq!((answer.tag(), answer.header[2]), (tag, 0));
    assert!(other.receive().await.is_none());
    assert!(by.receive().await.is_none());
    served.stop().await;
}

#[tokio::test]
async fn cold_resets_at_once_end_all_sessions_too() {
    let served = Served::start().await;
    served.allow_affecting_others().await;
    let mut all = Vec::new();
    for isid in 1..5 {
        all.push(Initiator::settled(&served, isid).await);
    }
    for one in &mut all {
        one.manage(7, LUN0, 0xffff_ffff).await;
    }
    for one in &mut all {
        while one.receive().await.is_some() {}
    }
    while !served.sessions().await.is_empty() {}
    served.stop().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_holds_little_and_loses_nothing() {
    const READS: u32 = 100;
    let served = Served::start().await;
    let mut lazy = Initiator::settled(&served, 1).await;
    let mut good = Initiator::settled(&served, 2).await;
    let data: Vec<u8> = (0..2048 * 512).map(|at| (at % 253) as u8).collect();
    for at in 0..16u32 {
        let run = &data[at as usize * 65536..][..65536];
        let written = good.run(&write10(at * 128, 128), 0, run).await;
        assert_eq!(written.header[3], 0);
    }
    // The target stops to read once many answers wait: a command that came later would not be
    // counted.
    lazy.commands_at_once(READS, &read10(0, 2048), 2048 * 512)
        .await;
    assert_eq!(good.run(&[0; 6], 0, &[]).await.header[3], 0);
    // Until all have come: the session counts those that ended and those in progress.
    let came = |session: &SessionInfo| session.commands + session.in_flight;
    let expected = 2 + u64::from(READS);
    while !served
        .sessions()
        .await
        .iter()
        .any(|session| came(session) == expected)
    {}
    let held = served
        .shard
        .handle()
        .call(|state| async move { engine::World::buffers(state.world()).outstanding_bytes() });
    assert!(
        held.await.unwrap() < 64 << 20,
        "of the {READS} MiB that were asked for"
    );
    let mut read: std::collections::BTreeMap<u32, Vec<u8>> = Default::default();
    let mut ended = 0;
    while ended < READS {
        let part = lazy.receive().await.unwrap();
        assert_eq!(part.opcode(), 0x25);
        ended += u32::from(part.header[1] & 1);
        read.entry(part.tag()).or_default().extend(part.data);
    }
    assert_eq!(read.len(), READS as usize);
    assert!(read.values().all(|whole| *whole == data));
    served.stop().await;
}

#[tokio::test]
async fn changes_are_told_by_unit_attention() {
    let served = Served::start().await;
    let mut initiator = Initiator::settled(&served, 1).await;
    let changed = served.shard.handle().call(|state| async move {
        let pool = state.pool("p").unwrap();
        pool.resize_volume("v", 2 * VOLUME_BYTES).await.unwrap();
        let info = pool.volume("v").unwrap().info();
        state.volume_resized(info.uuid, info.size_bytes);
        assert!(
            state.export(TARGET, 0, pool.volume("v").unwrap()).is_err(),
            "LUN 0 is taken"
        );
        state.export(TARGET, 1, pool.volume("v").unwrap()).unwrap();
        assert_eq!(state.luns(TARGET).len(), 2);
    });
    changed.await.unwrap();
    assert_eq!(initiator.run(&[0; 6], 0, &[]).await.sense(), (6, 0x2a, 9));
    assert_eq!(
        initiator.run(&[0; 6], 0, &[]).await.sense(),
        (6, 0x3f, 0x0e)
    );
    assert_eq!(initiator.run(&[0; 6], 0, &[]).await.header[3], 0);
    let removed = served.shard.handle().call(|state| async move {
        state.unexport(TARGET, 0).await.unwrap();
        assert!(state.unexport(TARGET, 0).await.is_err());
    });
    removed.await.unwrap();
    assert_eq!(initiator.run(&[0; 6], 0, &[]).await.sense(), (5, 0x25, 0));
    served.stop().await;
}

#[tokio::test]
async fn a_session_is_dropped_and_a_target_removed_on_demand() {
    let served = Served::start().await;
    let mut first = Initiator::settled(&served, 1).await;
    let tsih = served.sessions().await[0].tsih;
    let shard = served.shard.handle();
    assert!(
        shard
            .call(move |state| async move { state.drop_session(tsih).await })
            .await
            .unwrap()
    );
    assert!(first.is_shown_out().await);
    assert!(
        !shard
            .call(move |state| async move { state.drop_session(tsih).await })
            .await
            .unwrap()
    );
    let mut second = Initiator::settled(&served, 1).await;
    served.directory.remove_target(TARGET);
    let removed = shard.call(|state| async move { state.remove_target(TARGET).await });
    removed.await.unwrap().unwrap();
    assert!(second.is_shown_out().await);
    let mut third = Initiator::connect(served.address()).await;
    third.send_login(NAME, 1, TARGET).await;
    let refused = third.receive().await.unwrap();
    assert_eq!(
        (refused.header[36], refused.header[37]),
        (2, 3),
        "target not found"
    );
    served.stop().await;
}

#[tokio::test]
async fn a_login_that_lingers_is_cut() {
    let login_timeout = Duration::from_millis(50);
    let served = Served::with_limits(FrontLimits {
        login_timeout,
        ..limits()
    })
    .await;
    let mut lingering = Initiator::connect(served.address()).await;
    lingering.send_bytes(&[0x43]).await;
    assert!(lingering.receive().await.is_none());
    served.stop().await;
}

#[tokio::test]
async fn a_taken_port_is_named_with_what_to_do() {
    let served = Served::start().await;
    let portals = [served.address()];
    let shared = (Arc::clone(&served.directory), server::offload::begin());
    let error = Front::open(&portals, shared, Vec::new(), FrontLimits::default())
        .await
        .err();
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains(&served.address().to_string()), "{said}");
    assert!(said.contains("another program"), "{said}");
    served.stop().await;
}
