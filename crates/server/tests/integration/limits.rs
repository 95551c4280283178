//! What peers can make the server hold is bounded, and who is beyond a bound is told so:
//! floods of logins, peers that are slow, silent or endless, and how sessions part.

use crate::served::initiator::{Initiator, NAME};
use crate::served::{Served, TARGET, limits};
use server::front::{FrontLimits, Timeouts};
use std::time::Duration;

/// For peers that are to be given up.
const SOON: Duration = Duration::from_millis(60);

/// 03/02: out of resources.
const FULL: (u8, u8) = (3, 2);

/// The status of a login.
async fn status(served: &Served, name: &str, isid: u8) -> (u8, u8) {
    let mut initiator = Initiator::connect(served.address()).await;
    initiator.send_login(name, isid, TARGET).await;
    let answer = initiator.receive().await.unwrap();
    (answer.header[36], answer.header[37])
}

async fn is_alive(initiator: &mut Initiator) -> bool {
    initiator.run(&[0; 6], 0, &[]).await.header[3] == 0
}

#[tokio::test]
async fn sessions_are_bounded_and_who_comes_back_is_not_one_more() {
    let one = FrontLimits {
        sessions_max: 1,
        ..limits()
    };
    let served = Served::with_limits(one).await;
    let mut first = Initiator::settled(&served, 1).await;
    assert_eq!(status(&served, NAME, 2).await, FULL);
    assert_eq!(status(&served, "iqn.2026-11.test:other", 1).await, FULL);
    assert!(is_alive(&mut first).await);
    // The same host again, whose old session may be dead for all it knows.
    let mut again = Initiator::settled(&served, 1).await;
    assert!(first.receive().await.is_none());
    assert!(is_alive(&mut again).await);
    assert_eq!(served.sessions().await.len(), 1);
    served.stop().await;
}

#[tokio::test]
async fn sessions_of_one_initiator_are_bounded() {
    let two = FrontLimits {
        sessions_per_initiator_max: 2,
        ..limits()
    };
    let served = Served::with_limits(two).await;
    let _first = Initiator::settled(&served, 1).await;
    let second = Initiator::settled(&served, 2).await;
    assert_eq!(status(&served, NAME, 3).await, FULL);
    assert_eq!(status(&served, "iqn.2026-11.test:other", 3).await, (0, 0));
    drop(second);
    while status(&served, NAME, 3).await == FULL {}
    served.stop().await;
}

#[tokio::test]
async fn logins_under_way_are_bounded_and_who_is_too_many_is_told() {
    let none = FrontLimits {
        half_open_max: 0,
        ..limits()
    };
    let served = Served::with_limits(none).await;
    assert_eq!(status(&served, NAME, 1).await, FULL);
    // Who says something else is not answered.
    let mut lost = Initiator::connect(served.address()).await;
    lost.send_bytes(&[0xff; 64]).await;
    assert!(lost.receive().await.is_none());
    served.stop().await;
}

#[tokio::test]
async fn a_flood_of_logins_keeps_no_host_out() {
    let few = FrontLimits {
        half_open_max: 8,
        half_open_per_address_max: 4,
        ..limits()
    };
    let served = Served::with_limits(few).await;
    let mut session = Initiator::settled(&served, 1).await;
    let mut half_open = Vec::new();
    for _ in 0..4 {
        let mut begun = Initiator::connect(served.address()).await;
        let names = [("InitiatorName", NAME), ("TargetName", TARGET)];
        assert_eq!(begun.negotiate(0, &names).await.0, (0, 0));
        half_open.push(begun);
    }
    let mut silent = Vec::new();
    for isid in 0..100 {
        silent.push(Initiator::connect(served.address()).await);
        if isid % 10 == 0 {
            assert_eq!(
                status(&served, NAME, 2).await,
                (0, 0),
                "it has the oldest's permit"
            );
            assert!(is_alive(&mut session).await);
        }
        silent.truncate(20);
    }
    for mut begun in half_open {
        assert!(begun.receive().await.is_none(), "its permit was given away");
    }
    assert!(is_alive(&mut session).await);
    served.stop().await;
}

/// Peers are pinged after so long.
fn pinging_after(silence: Duration) -> FrontLimits {
    FrontLimits {
        timeouts: Timeouts {
            silence,
            ..limits().timeouts
        },
        ..limits()
    }
}

#[tokio::test]
async fn a_silent_peer_is_pinged_and_given_up() {
    let served = Served::with_limits(pinging_after(SOON)).await;
    let mut silent = Initiator::login(served.address(), NAME, 1, TARGET).await;
    let ping = silent.receive().await.unwrap();
    assert_eq!((ping.opcode(), ping.tag()), (0x20, u32::MAX));
    assert!(silent.receive().await.is_none());
    while !served.sessions().await.is_empty() {}
    served.stop().await;
}

#[tokio::test]
async fn a_peer_that_answers_pings_stays() {
    // Long enough for an answer, whatever else the machine does.
    let served = Served::with_limits(pinging_after(Duration::from_secs(1))).await;
    let mut idle = Initiator::login(served.address(), NAME, 1, TARGET).await;
    for _ in 0..3 {
        let ping = idle.receive().await.unwrap();
        assert_eq!(ping.opcode(), 0x20);
        let mut pong = [0; 48];
        (pong[0], pong[1]) = (0x40, 0x80);
        pong[16..20].copy_from_slice(&[0xff; 4]);
        pong[20..24].copy_from_slice(&ping.header[20..24]);
        idle.send(pong, &[]).await;
    }
    idle.settle().await;
    served.stop().await;
}

#[tokio::test]
async fn a_pdu_that_comes_byte_by_byte_is_cut() {
    let served = Served::with_limits(pinging_after(SOON)).await;
    let slow = Initiator::login(served.address(), NAME, 1, TARGET).await;
    let (mut reader, mut writer) = slow.into_halves();
    // A NOP-Out with a data segment that would take minutes.
    let mut header = [0; 48];
    (header[0], header[1], header[6]) = (0x40, 0x80, 0x20);
    let trickle = async {
        let mut pace = tokio::time::interval(Duration::from_millis(3));
        for byte in header.iter().chain(std::iter::repeat(&0)) {
            pace.tick().await;
            if tokio::io::AsyncWriteExt::write_all(&mut writer, &[*byte])
                .await
                .is_err()
            {
                break;
            }
        }
    };
    let mut heard = Vec::new();
    let listen = tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut heard);
    let (_, ended) = tokio::join!(trickle, listen);
    // Closed, or reset as bytes were still on their way; no ping was left unanswered.
    assert!(ended.is_ok_and(|bytes| bytes == 0) || heard.is_empty());
    assert!(served.sessions().await.is_empty());
    served.stop().await;
}

#[tokio::test]
async fn text_without_an_end_closes_the_login() {
    let served = Served::start().await;
    let mut endless = Initiator::connect(served.address()).await;
    let long = "x".repeat(7000);
    let mut rounds = 0;
    // The C bit says each time that more is to come.
    let refused = loop {
        let (status, text) = endless.negotiate(0x40, &[("X-long", &long)]).await;
        assert!(text.is_empty());
        rounds += 1;
        if status != (0, 0) {
            break status;
        }
    };
    assert_eq!(
        (refused, rounds),
        ((2, 0), 10),
        "64 KiB are all that is held"
    );
    assert!(endless.receive().await.is_none());
    let mut giant = Initiator::connect(served.address()).await;
    let key = "K".repeat(2000);
    assert_eq!(giant.negotiate(0, &[(&key, "1")]).await.0, (2, 0));
    let mut value = Initiator::connect(served.address()).await;
    assert_eq!(value.negotiate(0, &[("CHAP_C", &long)]).await.0, (2, 0));
    served.stop().await;
}

#[tokio::test]
async fn an_initiator_that_is_asked_to_log_out_may_end_what_it_does() {
    let patient = FrontLimits {
        timeouts: Timeouts {
            logout: Duration::from_secs(60),
            ..Timeouts::default()
        },
        ..limits()
    };
    let served = Served::with_limits(patient).await;
    let mut polite = Initiator::settled(&served, 1).await;
    let tsih = served.sessions().await[0].tsih;
    let shard = served.shard.handle().clone();
    let dropping = tokio::spawn(async move {
        shard
            .call(move |state| async move { state.drop_session(tsih).await })
            .await
    });
    let asked = polite.receive().await.unwrap();
    assert_eq!((asked.opcode(), asked.header[36]), (0x32, 1));
    let seconds = u16::from_be_bytes([asked.header[42], asked.header[43]]);
    assert_eq!(seconds, 60, "parameter 3");
    assert!(is_alive(&mut polite).await, "until it has logged out");
    let mut logout = [0; 48];
    (logout[0], logout[1]) = (0x46, 0x80);
    logout[24..28].copy_from_slice(&polite.cmd_sn.to_be_bytes());
    polite.send(logout, &[]).await;
    let answer = polite.receive().await.unwrap();
    assert_eq!((answer.opcode(), answer.header[2]), (0x26, 0));
    assert!(
        polite.receive().await.is_none(),
        "nothing is said of a dropped connection"
    );
    assert!(dropping.await.unwrap().unwrap());
    served.stop().await;
}
