//! A pool that gets full under its initiators: they are warned, then refused what needs
//! space and nothing else, and go on when space is given back.

use e2e::array::{Array, TARGET};
use e2e::initiator::{Answer, Initiator, SECTOR};
use e2e::site_text::OnePool;

const POOL: OnePool = OnePool {
    level: "10",
    drives: 2,
    spares: 0,
    drive_mib: 128,
    volume_mib: 256,
};
const PAGE: u64 = 256 << 10;
const PAGE_SECTORS: u64 = PAGE / SECTOR as u64;

fn block(page: u64) -> Vec<u8> {
    vec![(page % 100) as u8 + 1; 4096]
}

const SOFT_THRESHOLD: Option<(u8, (u8, u8))> = Some((6, (0x38, 0x07)));
const NO_SPACE: Option<(u8, (u8, u8))> = Some((7, (0x27, 0x07)));

#[test]
fn a_pool_that_gets_full_warns_refuses_and_goes_on() {
    let array = Array::start_with(&POOL.text());
    let thick = [
        "volume", "create", "other", "--pool", "p", "--size", "8 MiB", "--thick",
    ];
    array.command(&thick).ok();
    let login = |name: &str| Initiator::login(array.portal(), name, TARGET).unwrap();
    let mut one = login("iqn.2026-11.test:one");
    let mut other = login("iqn.2026-11.test:other");
    let pages = array.json(&["pool", "show", "p"])["free_bytes"]
        .as_u64()
        .unwrap()
        / PAGE;

    let mut page = 0;
    let write =
        |one: &mut Initiator, page: u64| one.write(page * PAGE_SECTORS, block(page)).unwrap();
    while page * 100 < pages * 82 {
        match write(&mut one, page) {
            Answer::Good(_) => page += 1,
            answer => assert_eq!(answer.sense(), SOFT_THRESHOLD, "{answer:?}"),
        }
    }
    // Both hear of it, once: what is there can be read before and after.
    array.wait_for(&["pool", "show", "p"], |pool| pool["fullness"] == "warn");
    let mut warned = 0;
    for _ in 0..200 {
        match other.read(0, 8).unwrap() {
            Answer::Good(data) => assert!(data == block(0)),
            answer => {
                assert_eq!(answer.sense(), SOFT_THRESHOLD, "{answer:?}");
                warned += 1;
            }
        }
        if warned == 0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    assert_eq!(warned, 1);

    loop {
        match write(&mut one, page) {
            Answer::Good(_) => page += 1,
            answer if answer.sense() == SOFT_THRESHOLD => {}
            answer => {
                assert_eq!(answer.sense(), NO_SPACE, "{answer:?}");
                break;
            }
        }
    }
    assert_eq!(
        page, pages,
        "all that was free, and nothing of what is promised"
    );
    array.wait_for(&["pool", "show", "p"], |pool| pool["fullness"] == "full");
    let status = array.command(&["status"]);
    assert_eq!(status.code, Some(7), "{status:?}");
    for part in ["health    full", "pool p: full: ", "new pages are refused"] {
        assert!(status.stdout.contains(part), "{status:?}");
    }
    // What is there is read and overwritten.
    let again = one.write(3 * PAGE_SECTORS, vec![200; 4096]).unwrap();
    assert_eq!(again, Answer::Good(Vec::new()));
    assert_eq!(
        other.read(3 * PAGE_SECTORS, 8).unwrap(),
        Answer::Good(vec![200; 4096])
    );
    assert_eq!(write(&mut one, page).sense(), NO_SPACE);

    // The other volume was promised its pages; deleted, they are anybody's.
    array
        .command(&["volume", "delete", "other", "--yes", "--at-once"])
        .ok();
    assert_eq!(write(&mut one, page), Answer::Good(Vec::new()));
    let events = array.events("space");
    assert!(
        events.iter().any(|text| text.contains("of 80 %")),
        "{events:?}"
    );
    // A look at the pool may come before the write that is refused: the event begins otherwise then.
    let is_full = "writes that need space fail";
    assert!(
        events.iter().any(|text| text.contains(is_full)),
        "{events:?}"
    );
}

/// Writes pages from `next` on as fast as it goes, several at a time, until there is no
/// room. How many have been written.
fn write_until_full(host: &mut Initiator, mut next: u64) -> u64 {
    let mut good = 0;
    let refused = loop {
        while host.under_way() < 16 {
            host.start_write(next * PAGE_SECTORS, block(next)).unwrap();
            next += 1;
        }
        match host.next_end().unwrap().1 {
            Answer::Good(_) => good += 1,
            answer => break answer,
        }
    };
    assert_eq!(refused.sense(), NO_SPACE, "{refused:?}");
    while host.under_way() > 0 {
        let (_, answer) = host.next_end().unwrap();
        good += u64::from(answer == Answer::Good(Vec::new()));
    }
    good
}

/// What is in the trash is room for whoever writes, however fast: nothing is refused before
/// it is empty.
#[test]
fn the_trash_gives_way_before_a_write_is_refused() {
    let array = Array::start_with(&POOL.text());
    let trashed = ["one", "other"];
    for (number, name) in trashed.into_iter().enumerate() {
        let create = ["volume", "create", name, "--pool", "p", "--size", "64 MiB"];
        array.command(&create).ok();
        let target = format!("iqn.2026-11.test:{number}");
        let create = ["export", "create", "--any", &target, "--volume", name];
        array.command(&create).ok();
        let mut host = Initiator::login(array.portal(), "iqn.2026-11.test:host", &target).unwrap();
        for page in 0..100 {
            let answer = host.write(page * PAGE_SECTORS, block(page)).unwrap();
            assert_eq!(answer, Answer::Good(Vec::new()));
        }
        drop(host);
        array
            .command(&["volume", "delete", name, "--yes", "--force"])
            .ok();
    }
    let pool = array.json(&["pool", "show", "p"]);
    let bytes = |key: &str| pool[key].as_u64().unwrap();
    assert_eq!(bytes("mapped_bytes"), 200 * PAGE, "still there");
    let pages = (bytes("mapped_bytes") + bytes("free_bytes")) / PAGE;

    let mut host = Initiator::login(array.portal(), "iqn.2026-11.test:fast", TARGET)
        .unwrap()
        .heeding_warnings();
    let good = write_until_full(&mut host, 0);
    assert_eq!(good, pages, "all of the pool, and what was in the trash");
    let told = array.events("trash");
    for name in trashed {
        let gone = format!("volume '{name}' is gone from the trash: the pool has no room left");
        assert!(told.contains(&gone), "{told:?}");
    }
}

/// Pages that are there only because others lie over them are room for whoever writes: a
/// snapshot's, once it is gone.
#[test]
fn what_only_backs_others_gives_way_before_a_write_is_refused() {
    let array = Array::start_with(&POOL.text());
    let mut host = Initiator::login(array.portal(), "iqn.2026-11.test:fast", TARGET)
        .unwrap()
        .heeding_warnings();
    let overwritten = 150;
    let mut write_all = || {
        for page in 0..overwritten {
            let answer = host.write(page * PAGE_SECTORS, block(page)).unwrap();
            assert_eq!(answer, Answer::Good(Vec::new()));
        }
    };
    write_all();
    array.command(&["snapshot", "create", "v@s"]).ok();
    write_all();
    array
        .command(&["snapshot", "delete", "--yes", "--at-once", "v@s"])
        .ok();
    let pool = array.json(&["pool", "show", "p"]);
    let bytes = |key: &str| pool[key].as_u64().unwrap();
    let pages = (bytes("mapped_bytes") + bytes("free_bytes")) / PAGE;
    let good = write_until_full(&mut host, overwritten);
    assert_eq!(good, pages - overwritten);
}
