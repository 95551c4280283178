//! The memory of all connections is bounded, whatever initiators do, and one that behaves is
//! served beside those that do not: answers that nobody takes, data that never comes.

use crate::served::initiator::{Initiator, NAME, read10, write10};
use crate::served::{Served, TARGET, limits};
use server::front::{FrontLimits, Timeouts};
use std::time::Duration;

const GREEDY: &str = "iqn.2026-11.test:greedy";
const MIB: u64 = 1 << 20;
/// The longest transfer: 16 MiB.
const LONGEST_BLOCKS: u16 = 32768;
const LONGEST_BYTES: u32 = 16 << 20;

/// The smallest budget, and the fewest seats.
const BUDGET_BYTES: u64 = 128 * MIB;

/// Nobody is pinged or parted with for being slow, as on a machine that has much to do.
fn small() -> FrontLimits {
    let timeouts = Timeouts {
        silence: Duration::from_secs(3600),
        data: Duration::from_secs(3600),
        ..limits().timeouts
    };
    FrontLimits {
        timeouts,
        memory_bytes: BUDGET_BYTES,
        sessions_max: 12,
        ..limits()
    }
}

/// Peers have so long to send data and to take answers.
fn impatient() -> FrontLimits {
    let timeouts = Timeouts {
        data: Duration::from_millis(100),
        ..small().timeouts
    };
    FrontLimits {
        timeouts,
        ..small()
    }
}

/// Sessions of one initiator, as many as leave one of another.
async fn greedy_sessions(served: &Served) -> Vec<Initiator> {
    let mut all = Vec::new();
    for isid in 0..11 {
        let mut one = Initiator::login(served.address(), GREEDY, isid, TARGET).await;
        one.settle().await;
        all.push(one);
    }
    all
}

/// Waits until commands hold so much and more.
async fn until_held(served: &Served, bytes: u64) {
    while served.front.budget().used().commands < bytes {
        tokio::task::yield_now().await;
    }
}

async fn until_nothing_is_held(served: &Served) {
    while served.front.budget().used().commands > 0 {
        tokio::task::yield_now().await;
    }
}

/// Reads the longest there is, and takes all of it.
async fn read_longest(initiator: &mut Initiator) {
    let cdb = read10(0, LONGEST_BLOCKS);
    let tag = initiator.command(&cdb, LONGEST_BYTES, 0, &[]).await;
    let mut len = 0;
    loop {
        let part = initiator.receive().await.unwrap();
        assert_eq!((part.opcode(), part.tag()), (0x25, tag));
        len += part.data.len();
        if part.header[1] & 1 == 1 {
            assert_eq!(part.header[3], 0);
            break;
        }
    }
    assert_eq!(len, LONGEST_BYTES as usize);
}

/// A host is served, with long and short commands, and all memory stays within its bound.
async fn is_served(served: &Served) {
    let mut host = Initiator::settled(served, 1).await;
    for turn in 0..4 {
        read_longest(&mut host).await;
        let data = vec![turn; 8192];
        let answer = host.run(&write10(8, 16), 0, &data).await;
        assert_eq!((answer.opcode(), answer.header[3]), (0x21, 0));
        let answer = host.run(&read10(8, 16), 8192, &[]).await;
        assert!(answer.data == data);
    }
    let peak = served.front.budget().peak_bytes();
    assert!(peak <= BUDGET_BYTES, "{peak} bytes were held");
}

async fn answers_are_not_taken(served: Served) {
    let mut greedy = greedy_sessions(&served).await;
    for session in &mut greedy {
        for _ in 0..8 {
            let cdb = read10(0, LONGEST_BLOCKS);
            session.command(&cdb, LONGEST_BYTES, 0, &[]).await;
        }
    }
    until_held(&served, 32 * MIB).await;
    is_served(&served).await;
    drop(greedy);
    until_nothing_is_held(&served).await;
    served.stop().await;
}

#[tokio::test]
async fn answers_that_nobody_takes_leave_room_for_others() {
    answers_are_not_taken(Served::with_limits(small()).await).await;
}

#[tokio::test]
async fn also_between_two_shards() {
    answers_are_not_taken(Served::on_shards(2, small()).await).await;
}

#[tokio::test]
async fn data_is_asked_for_only_where_there_is_room_for_it() {
    let served = Served::with_limits(small()).await;
    let mut greedy = greedy_sessions(&served).await;
    for session in &mut greedy {
        for _ in 0..8 {
            let cdb = write10(0, LONGEST_BLOCKS);
            session.command(&cdb, 0, LONGEST_BYTES, &[]).await;
        }
    }
    until_held(&served, 32 * MIB).await;
    is_served(&served).await;
    drop(greedy);
    until_nothing_is_held(&served).await;
    served.stop().await;
}

/// Takes the answers of three reads. Whether the window was narrower meanwhile than the other
/// commands in progress make it.
async fn take_three(mut session: Initiator) -> (Initiator, bool) {
    let (mut ended, mut is_narrowed) = (0, false);
    while ended < 3 {
        let part = session.receive().await.unwrap();
        assert_eq!(part.opcode(), 0x25);
        if part.header[1] & 1 == 0 {
            continue;
        }
        ended += 1;
        let number = |at: usize| {
            let bytes = &part.header[at..at + 4];
            u32::from_be_bytes(bytes.try_into().unwrap())
        };
        let open = number(32).wrapping_add(1).wrapping_sub(number(28));
        is_narrowed |= open < 128 - (3 - ended);
    }
    (session, is_narrowed)
}

#[tokio::test]
async fn commands_that_waited_for_memory_all_run_at_last() {
    let served = Served::with_limits(small()).await;
    let mut greedy = greedy_sessions(&served).await;
    for session in &mut greedy {
        for _ in 0..3 {
            let cdb = read10(0, LONGEST_BLOCKS);
            session.command(&cdb, LONGEST_BYTES, 0, &[]).await;
        }
    }
    until_held(&served, 32 * MIB).await;
    let reading = greedy
        .into_iter()
        .map(|session| tokio::spawn(take_three(session)));
    let mut is_narrowed = false;
    let mut sessions = Vec::new();
    for read in reading.collect::<Vec<_>>() {
        let (session, narrowed) = read.await.unwrap();
        is_narrowed |= narrowed;
        sessions.push(session);
    }
    assert!(is_narrowed, "MaxCmdSN stands still for a while");
    let peak = served.front.budget().peak_bytes();
    assert!(peak <= BUDGET_BYTES, "{peak} bytes were held");
    until_nothing_is_held(&served).await;
    served.stop().await;
}

/// Whether the peer hears that its connection is dropped (asynchronous event 2), and is.
async fn is_dropped(initiator: &mut Initiator) -> bool {
    let mut last = None;
    while let Some(pdu) = initiator.receive().await {
        last = Some((pdu.opcode(), pdu.header[36]));
    }
    last == Some((0x32, 2))
}

#[tokio::test]
async fn a_command_whose_data_never_comes_is_ended_with_its_session() {
    let served = Served::with_limits(impatient()).await;
    let mut silent = Initiator::settled(&served, 1).await;
    silent.command(&write10(0, 128), 0, 65536, &[]).await;
    assert_eq!(silent.receive().await.unwrap().opcode(), 0x31, "an R2T");
    assert!(is_dropped(&mut silent).await);
    while !served.sessions().await.is_empty() {}
    until_nothing_is_held(&served).await;
    served.stop().await;
}

#[tokio::test]
async fn so_is_one_whose_unsolicited_data_never_comes() {
    let served = Served::with_limits(impatient()).await;
    let mut silent = Initiator::connect(served.address()).await;
    let keys = [
        ("InitiatorName", NAME),
        ("TargetName", TARGET),
        ("SessionType", "Normal"),
        ("AuthMethod", "None"),
        ("InitialR2T", "No"),
        ("ImmediateData", "Yes"),
    ];
    assert_eq!(silent.negotiate(0x87, &keys).await.0, (0, 0));
    silent.settle().await;
    // More is announced, by the F bit that is not there, and never sent.
    let mut header = [0; 48];
    (header[0], header[1]) = (0x01, 0x21);
    header[16..20].copy_from_slice(&99_u32.to_be_bytes());
    header[20..24].copy_from_slice(&65536_u32.to_be_bytes());
    header[24..28].copy_from_slice(&silent.cmd_sn.to_be_bytes());
    header[32..42].copy_from_slice(&write10(0, 128));
    silent.send(header, &[7; 512]).await;
    assert!(is_dropped(&mut silent).await);
    while !served.sessions().await.is_empty() {}
    served.stop().await;
}

/// Writes that wait for a command which never comes, more than there is memory for.
async fn writes_behind_a_gap(session: &mut Initiator) {
    session.cmd_sn += 1;
    for _ in 0..40 {
        let cdb = write10(0, 128);
        session.command(&cdb, 0, 65536, &[7; 65536]).await;
    }
}

#[tokio::test]
async fn so_are_commands_behind_one_that_never_comes() {
    let served = Served::with_limits(impatient()).await;
    let mut silent = Initiator::settled(&served, 1).await;
    silent.cmd_sn += 1;
    silent.command(&read10(0, 8), 4096, 0, &[]).await;
    assert!(is_dropped(&mut silent).await);
    while !served.sessions().await.is_empty() {}
    served.stop().await;
}

/// Nothing is read of what they sent, for want of memory, and they are gone all the same.
#[tokio::test]
async fn who_closes_while_nothing_is_read_is_gone() {
    let limits = FrontLimits {
        sessions_max: 43,
        ..impatient()
    };
    let served = Served::with_limits(limits).await;
    let mut greedy = Vec::new();
    for isid in 0..42 {
        greedy.push(Initiator::login(served.address(), GREEDY, isid, TARGET).await);
    }
    for session in &mut greedy {
        session.settle().await;
    }
    for session in &mut greedy {
        // The rest stays in the sockets.
        let soon = Duration::from_millis(50);
        let _ = tokio::time::timeout(soon, writes_behind_a_gap(session)).await;
    }
    drop(greedy);
    while !served.sessions().await.is_empty() {}
    until_nothing_is_held(&served).await;
    is_served(&served).await;
    served.stop().await;
}

#[tokio::test]
async fn who_does_not_take_its_answers_is_parted_with() {
    let served = Served::with_limits(impatient()).await;
    let mut silent = Initiator::settled(&served, 1).await;
    for _ in 0..4 {
        let cdb = read10(0, LONGEST_BLOCKS);
        silent.command(&cdb, LONGEST_BYTES, 0, &[]).await;
    }
    while !served.sessions().await.is_empty() {}
    until_nothing_is_held(&served).await;
    served.stop().await;
}
