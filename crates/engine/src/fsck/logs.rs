//! The check of both rings: superblocks and chains, equal on all their drives, and the entries that
//! wait in them.

use super::chain::Chain;
use super::held::LogContents;
use super::report::Severity;
use super::subject::{Subject, unreadable};
use crate::drives::Member;
use crate::ring::RingSpec;
use crate::ring::format::Superblock;
use crate::store::entry::{decode_intents, decode_items};
use crate::world::World;
use base::BLOCK_BYTES;

/// Looks at both rings and gives what they hold.
pub(super) async fn check<W: World>(subject: &Subject<W>) -> LogContents {
    let mut held = LogContents::default();
    let (log, intents) = subject.drives.identity().ring_specs();
    let log = follow(subject, log).await;
    let intents = follow(subject, intents).await;
    if let Some(log) = log {
        let entries = take_up_items(subject, &log, &mut held);
        subject.count(|counts| counts.log_entries = entries);
    }
    if let Some(intents) = intents {
        let entries = take_up_intents(subject, &intents, &mut held);
        subject.count(|counts| counts.intent_entries = entries);
    }
    let counts = subject.counts();
    if counts.log_entries + counts.intent_entries > 0 {
        let text = format!(
            "{} entries wait in the data log and {} in the intent log for the next opening",
            counts.log_entries, counts.intent_entries
        );
        subject.say(Severity::Note, subject.pool(), text);
    }
    held
}

async fn follow<W: World>(subject: &Subject<W>, spec: RingSpec) -> Option<Chain<W>> {
    let members = subject.drives.log_members();
    let place = format!("{}, {}", subject.pool(), spec.label);
    if members.is_empty() {
        let text = "no drive that carries it is in use";
        subject.say(Severity::Loss, place, text);
        return None;
    }
    let mut found = Vec::new();
    for member in &members {
        found.push(newest_superblock(subject, &spec, member).await);
    }
    let newest = found.iter().flatten().max_by_key(|found| found.version);
    let Some(newest) = newest.copied() else {
        let text = "no superblock is whole on any drive: what is in it is lost";
        subject.say(Severity::Loss, place, text);
        return None;
    };
    for (member, found) in members.iter().zip(&found) {
        judge(subject, &spec, member, found.as_ref(), &newest);
    }
    Some(Chain::follow(subject, spec, members, newest).await)
}

async fn newest_superblock<W: World>(
    subject: &Subject<W>,
    spec: &RingSpec,
    member: &Member<W>,
) -> Option<Superblock> {
    let mut newest: Option<Superblock> = None;
    for slot in 0..2 {
        let at = spec.superblock_at(slot);
        match subject.read(member, at, BLOCK_BYTES).await {
            Ok(block) => {
                let found = Superblock::decode(block.bytes().unwrap_or_default(), spec);
                newest = newest.into_iter().chain(found).max_by_key(|s| s.version);
            }
            Err(error) => {
                let text = format!("{}: superblock: {}", spec.label, unreadable(&error));
                subject.say_at(Severity::Damage, member, at, BLOCK_BYTES as u64, text);
            }
        }
    }
    newest
}

/// Whether a drive has the newest superblock.
fn judge<W: World>(
    subject: &Subject<W>,
    spec: &RingSpec,
    member: &Member<W>,
    found: Option<&Superblock>,
    newest: &Superblock,
) {
    let (severity, text) = match found {
        Some(found) if found == newest => return,
        Some(found) if found.version == newest.version => (
            Severity::Damage,
            "superblock differs from that of another drive".to_owned(),
        ),
        Some(found) if found.version + 1 == newest.version => (
            subject.unless_crashed(),
            format!("superblock {} is not whole here", newest.version),
        ),
        Some(found) => (
            Severity::Damage,
            format!(
                "superblock {} is the newest here, and {} is on another drive",
                found.version, newest.version
            ),
        ),
        None => (Severity::Damage, "no superblock is whole here".to_owned()),
    };
    let at = spec.superblock_at(newest.version);
    let text = format!("{}: {text}", spec.label);
    subject.say_at(severity, member, at, BLOCK_BYTES as u64, text);
}

fn take_up_items<W: World>(subject: &Subject<W>, log: &Chain<W>, held: &mut LogContents) -> u64 {
    let numbers = subject.drives.numbers();
    let page_blocks = subject.drives.page_bytes() / BLOCK_BYTES as u64;
    let mut entries = 0;
    for (head, _) in log.batches.iter().flat_map(|batch| &batch.entries) {
        entries += 1;
        match decode_items(head) {
            Some(items) => items
                .iter()
                .for_each(|item| held.item(item, numbers, page_blocks)),
            None => no_head(subject, log),
        }
    }
    entries
}

fn take_up_intents<W: World>(subject: &Subject<W>, log: &Chain<W>, held: &mut LogContents) -> u64 {
    let mut entries = 0;
    for (head, _) in log.batches.iter().flat_map(|batch| &batch.entries) {
        entries += 1;
        match decode_intents(head) {
            Some(intents) => intents.iter().for_each(|intent| held.intent(intent)),
            None => no_head(subject, log),
        }
    }
    entries
}

fn no_head<W: World>(subject: &Subject<W>, log: &Chain<W>) {
    let text = "an entry is whole and not to be understood: no opening takes it";
    subject.say(Severity::Loss, log.place(subject), text);
}
