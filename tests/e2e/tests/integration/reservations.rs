//! Persistent reservations that are to be kept: over a kill, a move to another pool while the
//! volume is served, and an export that goes and comes back.

use e2e::array::Array;
use e2e::initiator::{Answer, Initiator};

const TARGET: &str = "iqn.2026-11.dev.ashlar:one";
const HOSTS: [&str; 2] = ["iqn.2026-11.test:one", "iqn.2026-11.test:two"];
const SITE: &str = r#"
[site]
name = "reserved"
shards = 2
trash = 0
[api]
listen = "127.0.0.1:0"
[[portal]]
address = "127.0.0.1:0"
[[drive]]
name = "d0"
file = "d0.img"
size = "224 MiB"
[[drive]]
name = "d1"
file = "d1.img"
size = "224 MiB"
[[pool]]
name = "p"
level = "simple"
drives = ["d0"]
[[pool]]
name = "q"
level = "simple"
drives = ["d1"]
[[volume]]
name = "v"
pool = "p"
size = "16 MiB"
"#;

fn login(array: &Array, host: usize) -> Initiator {
    Initiator::login(array.portal(), HOSTS[host], TARGET).unwrap()
}

fn good(answer: Answer) -> Vec<u8> {
    match answer {
        Answer::Good(data) => data,
        answer => panic!("{answer:?}"),
    }
}

/// PERSISTENT RESERVE OUT, to be kept (APTPL).
fn out(initiator: &mut Initiator, action: u8, kind: u8, keys: [u64; 2]) {
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
    let mut list = keys.map(u64::to_be_bytes).concat();
    list.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    good(initiator.execute(&cdb, 0, list).unwrap());
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// Keys that are registered, and key and type of what is held.
fn reserved(initiator: &mut Initiator) -> (Vec<u64>, Option<(u64, u8)>) {
    let mut ask = |action| {
        let cdb = [0x5e, action, 0, 0, 0, 0, 0, 1, 0, 0];
        let said = good(initiator.execute(&cdb, 256, Vec::new()).unwrap());
        // What follows the length is not all that there was room for.
        let len = number(&said[4..8]) as usize;
        said[8..8 + len].to_vec()
    };
    let (keys, held) = (ask(0), ask(1));
    let held = held.first_chunk::<16>();
    let held = held.map(|held| (number(&held[..8]), held[13]));
    (keys.chunks(8).map(number).collect(), held)
}

/// Whether a write of this host meets the reservation of another.
fn is_shut_out(initiator: &mut Initiator) -> bool {
    const CONFLICT: u8 = 0x18;
    match initiator.write(0, vec![1; 512]).unwrap() {
        Answer::Good(_) => false,
        Answer::Status(CONFLICT) => true,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn what_is_to_be_kept_outlives_kills_moves_and_exports() {
    let mut array = Array::start_with(SITE);
    let export = ["export", "create", "--any", TARGET, "--volume", "v"];
    assert_eq!(array.command(&export).code, Some(0));
    {
        let (mut one, mut two) = (login(&array, 0), login(&array, 1));
        out(&mut one, 6, 0, [0, 11]);
        out(&mut two, 6, 0, [0, 22]);
        out(&mut one, 1, 3, [11, 0]);
        assert!(is_shut_out(&mut two));
    }
    let expected = (vec![11, 22], Some((11, 3)));
    array.kill();
    array.start_again();
    assert_eq!(reserved(&mut login(&array, 1)), expected);
    assert!(is_shut_out(&mut login(&array, 1)));
    assert!(!is_shut_out(&mut login(&array, 0)));

    let mut two = login(&array, 1);
    let moved = array.command(&["volume", "move", "v", "--pool", "q"]);
    assert_eq!(moved.code, Some(0), "{moved:?}");
    assert_eq!(reserved(&mut two), expected, "the same session");
    assert!(is_shut_out(&mut two));
    // What changes now is kept in the other pool.
    out(&mut two, 4, 5, [22, 11]);
    drop(two);
    let expected = (vec![22], Some((22, 5)));
    array.kill();
    array.start_again();
    assert_eq!(reserved(&mut login(&array, 0)), expected);

    // Unexported, it is not deleted by mistake, and exported again it is as it was.
    assert_eq!(
        array.command(&["export", "delete", "--yes", TARGET]).code,
        Some(0)
    );
    let refused = array.command(&["volume", "delete", "v", "--yes"]);
    assert_eq!(refused.code, Some(6), "busy");
    let said = format!("{refused:?}");
    assert!(said.contains("persistent reservations"), "{said}");
    assert_eq!(array.command(&export).code, Some(0));
    let mut two = login(&array, 1);
    assert_eq!(reserved(&mut two), expected);
    out(&mut two, 3, 0, [22, 0]);
    drop(two);
    assert_eq!(
        array.command(&["export", "delete", "--yes", TARGET]).code,
        Some(0)
    );
    let deleted = array.command(&["volume", "delete", "v", "--yes"]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
}
