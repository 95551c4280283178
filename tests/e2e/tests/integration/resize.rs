//! Volumes that grow and shrink under hosts that are logged in.

use e2e::array::{Array, TARGET};
use e2e::initiator::{Answer, Initiator, SECTOR};
use e2e::site_text::OnePool;

const POOL: OnePool = OnePool {
    level: "10",
    drives: 2,
    spares: 0,
    drive_mib: 128,
    volume_mib: 16,
};
const MIB_SECTORS: u64 = (1 << 20) / SECTOR as u64;

const CAPACITY_CHANGED: Option<(u8, (u8, u8))> = Some((6, (0x2a, 0x09)));
const OUT_OF_RANGE: Option<(u8, (u8, u8))> = Some((5, (0x21, 0x00)));

fn resize(array: &Array, size: &str, more: &[&str]) -> Option<i32> {
    let resize = [&["volume", "resize", "v", "--size", size][..], more].concat();
    array.command(&resize).code
}

#[test]
fn hosts_are_told_of_a_new_size_once_and_find_what_is_there() {
    let array = Array::start_with(&POOL.text());
    let login = |name: &str| Initiator::login(array.portal(), name, TARGET).unwrap();
    let mut hosts = [
        login("iqn.2026-11.test:one"),
        login("iqn.2026-11.test:other"),
    ];
    let (first, last) = (vec![1; 4096], vec![9; 4096]);
    let near_the_end = 15 * MIB_SECTORS;
    let [one, _] = &mut hosts;
    one.write(0, first.clone()).unwrap();
    one.write(near_the_end, last.clone()).unwrap();
    let behind = 16 * MIB_SECTORS;
    assert_eq!(one.read(behind, 8).unwrap().sense(), OUT_OF_RANGE);

    assert_eq!(resize(&array, "20 MiB", &[]), Some(0));
    for host in &mut hosts {
        assert_eq!(host.read(0, 8).unwrap().sense(), CAPACITY_CHANGED);
        assert_eq!(host.read(behind, 8).unwrap(), Answer::Good(vec![0; 4096]));
        let there = host.read(near_the_end, 8).unwrap();
        assert_eq!(there, Answer::Good(last.clone()));
    }

    // By force only, and nobody hears of what was refused.
    assert_ne!(resize(&array, "8 MiB", &[]), Some(0));
    for host in &mut hosts {
        assert_eq!(host.read(0, 8).unwrap(), Answer::Good(first.clone()));
    }
    assert_eq!(
        resize(&array, "8 MiB", &["--force-shrink", "--yes"]),
        Some(0)
    );
    for host in &mut hosts {
        assert_eq!(host.read(0, 8).unwrap().sense(), CAPACITY_CHANGED);
        assert_eq!(host.read(0, 8).unwrap(), Answer::Good(first.clone()));
        for lba in [8 * MIB_SECTORS, near_the_end] {
            assert_eq!(host.read(lba, 8).unwrap().sense(), OUT_OF_RANGE);
        }
        let refused = host.write(near_the_end, last.clone()).unwrap();
        assert_eq!(refused.sense(), OUT_OF_RANGE);
    }

    // What was behind the end does not come back.
    assert_eq!(resize(&array, "16 MiB", &[]), Some(0));
    for host in &mut hosts {
        assert_eq!(host.read(0, 8).unwrap().sense(), CAPACITY_CHANGED);
        let there = host.read(near_the_end, 8).unwrap();
        assert_eq!(there, Answer::Good(vec![0; 4096]));
    }
}
