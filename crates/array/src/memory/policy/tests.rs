//! Tests of the shares and bounds of one initiator, of several, and over long runs.

use super::*;
use base::Prng;

const MIB: u64 = 1 << 20;

/// A policy with 64 seats, and what commands may hold of it.
fn policy(budget_mib: u64) -> (Policy, u64) {
    let policy = Policy::new(budget_mib * MIB, 64);
    let most = policy.commands_most;
    (policy, most)
}

/// Takes pieces of `piece` bytes until there are no more.
fn take_all(policy: &mut Policy, id: AccountId, piece: u64) -> u64 {
    while policy.want_commands(id, policy.commands(id) + piece) {}
    policy.withdraw(id);
    policy.commands(id)
}

#[test]
fn one_alone_has_most_of_it_and_another_still_its_first_command() {
    let (mut policy, most) = policy(1024);
    let greedy = policy.open("iqn.greedy");
    let held = take_all(&mut policy, greedy, MIB);
    assert!(held > most / 4 * 3, "{held} of {most}");
    let other = policy.open("iqn.other");
    assert!(policy.want_commands(other, 32 * MIB), "at once");
    assert!(policy.used().commands <= most);
}

#[test]
fn the_smallest_budget_has_room_for_the_longest_command() {
    let sessions = seats(BUDGET_BYTES_MIN);
    let mut policy = Policy::new(BUDGET_BYTES_MIN, sessions);
    assert!(policy.commands_most >= COMMAND_BYTES_MAX);
    let greedy = policy.open("iqn.greedy");
    assert!(policy.want_commands(greedy, COMMAND_BYTES_MAX));
}

#[test]
fn sessions_of_one_initiator_have_its_share_together() {
    let (mut policy, most) = policy(1024);
    let many: Vec<_> = (0..8).map(|_| policy.open("iqn.many")).collect();
    let one = policy.open("iqn.one");
    assert!(policy.want_commands(one, MIB));
    for id in &many {
        take_all(&mut policy, *id, 16 * MIB);
    }
    let (share, reserve) = (policy.share(), policy.reserve());
    let held: u64 = many.iter().map(|id| policy.commands(*id)).sum();
    assert!(held > share && held <= most - reserve, "{held} of {most}");
    // Whatever comes back is given to the one that is within its share.
    assert!(!policy.want_commands(many[1], 16 * MIB));
    assert!(!policy.want_commands(one, 64 * MIB));
    let left = policy.commands(many[0]) - 64 * MIB;
    assert_eq!(policy.keep_commands(many[0], left), [one]);
}

#[test]
fn what_is_within_a_share_is_served_in_the_order_of_asking() {
    let (mut policy, most) = policy(256);
    let greedy = policy.open("iqn.greedy");
    take_all(&mut policy, greedy, MIB);
    let first = policy.open("iqn.first");
    let left = most - policy.used().commands;
    assert!(
        !policy.want_commands(first, left + MIB),
        "its first command"
    );
    let second = policy.open("iqn.second");
    assert!(
        !policy.want_commands(second, MIB),
        "it would fit, but the first would wait for longer"
    );
    assert!(!policy.want_commands(greedy, policy.commands(greedy) + 1));
    let held = policy.commands(greedy);
    assert_eq!(policy.keep_commands(greedy, held - MIB), [first]);
    assert_eq!(policy.keep_commands(greedy, held - 2 * MIB), [second]);
    assert_eq!(policy.close(greedy), []);
}

#[test]
fn who_waits_no_more_lets_others_by() {
    let (mut policy, most) = policy(256);
    let holder = policy.open("iqn.holder");
    assert!(policy.want_commands(holder, most - MIB));
    let first = policy.open("iqn.first");
    let second = policy.open("iqn.second");
    assert!(!policy.want_commands(first, 8 * MIB));
    assert!(!policy.want_commands(second, MIB));
    assert_eq!(policy.give_way(first), [second]);
    let third = policy.open("iqn.third");
    assert!(!policy.want_commands(third, MIB));
    assert_eq!(policy.close(second), [third]);
}

#[test]
fn what_comes_unasked_has_a_bound_and_each_initiator_a_part_of_it() {
    let (mut policy, _) = policy(1024);
    let most = 128 * MIB;
    let greedy = policy.open("iqn.greedy");
    let mut held = 0;
    while policy.want_unasked(greedy, held + MIB) {
        held += MIB;
    }
    assert_eq!(held, most, "alone it has all of it");
    let other = policy.open("iqn.other");
    assert!(!policy.want_unasked(other, MIB));
    assert_eq!(policy.hold_unasked(greedy, held - 8 * MIB), [greedy, other]);
    assert!(!policy.want_unasked(greedy, held - 7 * MIB), "above half");
    assert!(policy.want_unasked(other, 8 * MIB));
    assert_eq!(policy.used().unasked, most);
    assert_eq!(policy.close(greedy), []);
    assert!(policy.want_unasked(other, most), "it is alone now");
}

#[test]
fn windows_shrink_only_when_memory_is_short_and_stay_open() {
    let (mut policy, most) = policy(1024);
    let greedy = policy.open("iqn.greedy");
    let small = policy.open("iqn.small");
    assert!(policy.want_commands(greedy, most / 2));
    assert_eq!(policy.window(greedy, 128), 128);
    take_all(&mut policy, greedy, MIB);
    assert!(policy.window(greedy, 128) < 32);
    assert_eq!(policy.window(small, 128), 128);
    let other = policy.open("iqn.other");
    assert!(policy.want_commands(other, MIB));
    assert_eq!(policy.window(greedy, 128), 1, "beyond its share");
    assert!(policy.window(other, 128) > 100);
    policy.close(greedy);
    assert_eq!(policy.window(other, 128), 128);
}

/// One connection of a run.
struct Peer {
    id: AccountId,
    /// Never gives anything back, until its time is over.
    holds: bool,
    wants: Option<(u64, u32)>,
    ends: Vec<(u32, u64)>,
    done: u32,
}

/// Runs many initiators over the policy: some give nothing back for long. Gives how long a
/// command of one that behaves has waited at most, and the least that one has done.
fn run(seed: u64) -> (u32, u32) {
    const DEADLINE: u32 = 300;
    const STEPS: u32 = 3000;
    let mut random = Prng::from_seed(seed);
    let (mut policy, most) = policy(random.between(200, 600));
    let mut peers: Vec<Peer> = (0..random.between(2, 40))
        .map(|_| {
            let name = random.below(12);
            Peer {
                id: policy.open(&format!("iqn.{name}")),
                holds: name < 4,
                wants: None,
                ends: Vec::new(),
                done: 0,
            }
        })
        .collect();
    let mut longest = 0;
    for step in 0..STEPS {
        let mut granted = Vec::new();
        for peer in &mut peers {
            peer.ends.retain(|(end, bytes)| {
                let over = *end <= step;
                if over {
                    let left = policy.commands(peer.id) - bytes;
                    granted.extend(policy.keep_commands(peer.id, left));
                    peer.done += 1;
                }
                !over
            });
            if peer.wants.is_none() && peer.ends.len() < 4 && random.chance(1, 3) {
                let bytes = random.between(1, 32 << 20);
                let held = policy.commands(peer.id);
                peer.wants = Some((bytes, step));
                if policy.want_commands(peer.id, held + bytes) {
                    granted.push(peer.id);
                }
            } else if peer.wants.is_some() && !granted.contains(&peer.id) && random.chance(1, 200) {
                peer.wants = None;
                granted.extend(policy.give_way(peer.id));
            }
        }
        for id in granted {
            let peer = peers.iter_mut().find(|peer| peer.id == id).unwrap();
            let (bytes, since) = peer.wants.take().unwrap();
            let last = if peer.holds { DEADLINE } else { 5 };
            let end = step + random.between(1, u64::from(last)) as u32;
            peer.ends.push((end, bytes));
            if !peer.holds {
                longest = longest.max(step - since);
            }
        }
        let used = policy.used().commands;
        let held: u64 = peers
            .iter()
            .flat_map(|one| &one.ends)
            .map(|end| end.1)
            .sum();
        assert_eq!(used, held, "seed {seed}, step {step}");
        assert!(used <= most, "seed {seed}, step {step}: {used} of {most}");
    }
    let well = peers.iter().filter(|peer| !peer.holds);
    (
        longest,
        well.map(|peer| peer.done).min().unwrap_or(u32::MAX),
    )
}

#[test]
fn whoever_holds_on_to_what_others_behave() {
    for seed in 0..30 {
        let (longest, done) = run(seed);
        // What is within a share waits until those that hold on to theirs give it back.
        assert!(
            longest <= 4 * 300,
            "seed {seed}: waited for {longest} steps"
        );
        assert!(done > 10, "seed {seed}: one has done {done} commands");
    }
}
