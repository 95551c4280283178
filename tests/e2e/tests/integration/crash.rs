//! Acknowledged writes survive `kill -9` of the server, again and again, and a server that
//! runs out of memory.

use e2e::array::Array;
use e2e::qemu_io::{QemuIo, Run, verify};
use std::sync::mpsc::{Sender, channel};

const CLIENTS: u64 = 4;
const ROUNDS: u64 = 3;
/// Writes that are acknowledged before a kill, by all clients together.
const ACKNOWLEDGED: usize = 400;
/// Each client writes in a region of its own, in slots that it overwrites.
const REGION_BYTES: u64 = 8 << 20;
const SLOTS: u64 = 61;
const SLOT_BYTES: u64 = 128 << 10;

/// What a client knows of its slots.
#[derive(Debug)]
struct KnownSlots {
    /// The last acknowledged write of each slot.
    slots: Vec<Option<Run>>,
    /// The write that was under way, which may have happened or not.
    in_doubt: Option<usize>,
}

/// The n-th write of a client: its slot, and what goes there. Successive writes of
/// a slot have the same place and another value.
fn nth_write(client: u64, n: u64) -> (usize, Run) {
    // 37 and 61 have no common divisor: all slots have their turn.
    let slot = n * 37 % SLOTS;
    let at = client * REGION_BYTES + slot * SLOT_BYTES + 512 * (slot % 9);
    let len_bytes = 512 * (1 + slot * 7 % 200);
    let value = 1 + u8::try_from((n / SLOTS * 13 + client * 53 + slot) % 255).unwrap();
    (
        usize::try_from(slot).unwrap(),
        Run {
            at,
            len_bytes,
            value,
        },
    )
}

/// Writes until the server is gone, and tells of every acknowledgement.
fn write_until_lost(
    mut qemu: QemuIo,
    client: u64,
    first: u64,
    mut known: KnownSlots,
    done: Sender<()>,
) -> KnownSlots {
    for n in first.. {
        let (slot, run) = nth_write(client, n);
        known.in_doubt = Some(slot);
        if !qemu.write(run) {
            break;
        }
        known.slots[slot] = Some(run);
        known.in_doubt = None;
        if done.send(()).is_err() {
            break;
        }
    }
    known
}

#[test]
fn acknowledged_writes_survive_kill_9() {
    let mut array = Array::start();
    let mut clients = new_clients();
    for round in 0..ROUNDS {
        clients = one_crash(&mut array, round, clients, Array::kill);
        array.start_again();
        verify_all(&array, &clients);
    }
}

/// So much is enough to start, and not for what [`one_crash`] has it remember.
const ADDRESS_KIB: u64 = 250_000;
const HUNGRY: usize = 24;

#[test]
fn acknowledged_writes_survive_the_end_of_memory() {
    let mut array = Array::start();
    array.start_within(ADDRESS_KIB);
    let clients = one_crash(&mut array, 0, new_clients(), |array| {
        let url = array.lun_url(2);
        let load = [
            "load",
            "--yes",
            "seq-write-1m",
            "--iodepth=64",
            "--duration=60s",
            "--warmup=0s",
        ];
        let hungry = || array.spawn(&[&load[..], &["--target", &url]].concat());
        let mut hungry: Vec<_> = (0..HUNGRY).map(|_| hungry()).collect();
        let ended = array.wait_for_end();
        for load in &mut hungry {
            load.kill().unwrap();
            load.wait().unwrap();
        }
        assert!(!ended.success(), "it stopped by itself: {ended}");
    });
    array.start_again();
    verify_all(&array, &clients);
}

fn new_clients() -> Vec<KnownSlots> {
    let slots = usize::try_from(SLOTS).unwrap();
    let new = |_| KnownSlots {
        slots: vec![None; slots],
        in_doubt: None,
    };
    (0..CLIENTS).map(new).collect()
}

/// What was acknowledged for certain is there.
fn verify_all(array: &Array, clients: &[KnownSlots]) {
    for known in clients {
        let sure = known.slots.iter().enumerate();
        let sure: Vec<Run> = sure
            .filter(|&(slot, _)| known.in_doubt != Some(slot))
            .filter_map(|(_, run)| *run)
            .collect();
        assert!(!sure.is_empty(), "a client had no write acknowledged");
        verify(&array.lun_url(0), &sure);
    }
}

/// Lets the clients write, has the server end in the middle, and gives what the
/// clients know.
fn one_crash(
    array: &mut Array,
    round: u64,
    clients: Vec<KnownSlots>,
    end: impl FnOnce(&mut Array),
) -> Vec<KnownSlots> {
    let (sender, acknowledgements) = channel();
    let mut processes = Vec::new();
    let mut threads = Vec::new();
    for (client, mut known) in (0..).zip(clients) {
        // What was in doubt is written again in this round before it is checked:
        // until then nothing is known of it.
        if let Some(slot) = known.in_doubt.take() {
            known.slots[slot] = None;
        }
        let qemu = QemuIo::open(&array.lun_url(0));
        processes.push(qemu.process().to_string());
        let sender = sender.clone();
        let first = round * 10_000;
        threads.push(std::thread::spawn(move || {
            write_until_lost(qemu, client, first, known, sender)
        }));
    }
    drop(sender);
    let count = acknowledgements.iter().take(ACKNOWLEDGED).count();
    assert_eq!(
        count, ACKNOWLEDGED,
        "the clients stopped writing by themselves"
    );
    end(array);
    // QEMU would go on reconnecting to a portal that never comes back.
    for process in processes {
        e2e::program::run("kill", &["-KILL", &process]);
    }
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}
