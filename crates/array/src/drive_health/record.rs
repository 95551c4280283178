//! What is known of a drive's health by all that it has said.
//!
//! Invariants:
//! - One answer changes nothing: a warning counts once [`BEGINS_AFTER`] answers in a row have it, and
//!   ends once [`ENDS_AFTER`] in a row lack it.
//! - A drive that does not answer keeps its warnings.

use super::reading::Reading;
use super::warning::{Warning, WarningKind, warnings};
use base::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// A warning counts after so many answers.
const BEGINS_AFTER: u32 = 2;

/// It ends after so many.
const ENDS_AFTER: u32 = 3;

/// How often a drive is asked: as often as smartd asks at most.
pub const ASK_EVERY: Duration = Duration::from_secs(3600);

/// A drive with a warning that does not count yet is asked again so soon.
pub const ASK_AGAIN: Duration = Duration::from_secs(60);

/// What to tell people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthNews {
    /// The drive warns of this from now on.
    Warns(Warning),
    /// It does not any more.
    WarnsNoMore(Warning),
}

/// What is known of a drive's health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriveHealth {
    /// Its last answer, and when that was, in seconds since 1970.
    pub last: Option<(Reading, u64)>,
    /// Why there was none when it was asked last.
    pub unread: Option<String>,
    /// By what they warn of.
    signs: BTreeMap<WarningKind, Sign>,
    /// When it was asked last.
    asked: Option<Time>,
}

/// Something that the drive has warned of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sign {
    warning: Warning,
    counts: bool,
    /// So many answers in a row would have it otherwise.
    contrary: u32,
}

impl DriveHealth {
    /// What the drive warns of, by kind.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        let counting = self.signs.values().filter(|sign| sign.counts);
        counting.map(|sign| &sign.warning)
    }

    /// Whether to ask it now.
    pub fn is_due(&self, now: Time) -> bool {
        let answers = self.unread.is_none();
        let is_open = answers && self.signs.values().any(|sign| !sign.counts);
        let pause = if is_open { ASK_AGAIN } else { ASK_EVERY };
        self.asked.is_none_or(|asked| now.since(asked) >= pause)
    }

    /// Takes in what came of asking it; tells what that changes.
    pub fn take(
        &mut self,
        answer: Result<Reading, String>,
        (now, unix_s): (Time, u64),
    ) -> Vec<HealthNews> {
        self.asked = Some(now);
        let reading = match answer {
            Ok(reading) => reading,
            Err(why) => {
                self.unread = Some(why);
                return Vec::new();
            }
        };
        let found = warnings(&reading);
        self.unread = None;
        self.last = Some((reading, unix_s));
        self.weigh(found)
    }

    fn weigh(&mut self, found: Vec<Warning>) -> Vec<HealthNews> {
        let mut news = Vec::new();
        let found: BTreeMap<WarningKind, Warning> = found
            .into_iter()
            .map(|warning| (warning.kind, warning))
            .collect();
        self.signs.retain(|kind, sign| {
            let is_there = found.contains_key(kind);
            if is_there || !sign.counts {
                // What did not count is forgotten by one answer.
                return is_there;
            }
            sign.contrary += 1;
            let is_over = sign.contrary >= ENDS_AFTER;
            if is_over {
                news.push(HealthNews::WarnsNoMore(sign.warning.clone()));
            }
            !is_over
        });
        for (kind, warning) in found {
            let sign = self.signs.entry(kind).or_insert_with(|| Sign {
                warning: warning.clone(),
                counts: false,
                contrary: 0,
            });
            sign.warning = warning;
            if sign.counts {
                sign.contrary = 0;
                continue;
            }
            sign.contrary += 1;
            if sign.contrary >= BEGINS_AFTER {
                (sign.counts, sign.contrary) = (true, 0);
                news.push(HealthNews::Warns(sign.warning.clone()));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive with so many pending sectors, and with a predicted failure.
    fn reading(pending: u64, is_failing: bool) -> Reading {
        Reading {
            passed: Some(!is_failing),
            pending_sectors: Some(pending),
            ..Reading::default()
        }
    }

    fn minute(at: u64) -> Time {
        Time(at * 60_000_000_000)
    }

    /// The kinds that begin and end with each answer.
    fn told(health: &mut DriveHealth, answers: &[(u64, bool)]) -> Vec<(Vec<bool>, usize)> {
        let take = |(pending, is_failing): &(u64, bool)| {
            let news = health.take(Ok(reading(*pending, *is_failing)), (minute(1), 1));
            let begins = news.iter().map(|one| matches!(one, HealthNews::Warns(_)));
            (begins.collect(), health.warnings().count())
        };
        answers.iter().map(take).collect()
    }

    #[test]
    fn one_answer_changes_nothing() {
        let mut health = DriveHealth::default();
        let good = (0, false);
        let flaps = [(1, false), good, (1, false), good];
        for (news, warnings) in told(&mut health, &flaps) {
            assert_eq!((news, warnings), (Vec::new(), 0));
        }
        let begins = told(&mut health, &[(1, false), (2, false)]);
        assert_eq!(begins, [(vec![], 0), (vec![true], 1)]);
        let text = |health: &DriveHealth| health.warnings().next().unwrap().text.clone();
        assert!(text(&health).starts_with("2 sectors"));
        // The number is the last one, and no news.
        assert_eq!(told(&mut health, &[(9, false)]), [(vec![], 1)]);
        assert!(text(&health).starts_with("9 sectors"));
        let stays = [good, good, (1, false), good, good];
        assert!(
            told(&mut health, &stays)
                .iter()
                .all(|one| *one == (vec![], 1))
        );
        assert_eq!(told(&mut health, &[good]), [(vec![false], 0)]);
    }

    #[test]
    fn each_warning_begins_and_ends_by_itself() {
        let mut health = DriveHealth::default();
        let both = [(1, false), (1, true), (1, true), (0, true), (0, true)];
        let told_of = told(&mut health, &both);
        let warnings: Vec<usize> = told_of.iter().map(|(_, warnings)| *warnings).collect();
        assert_eq!(warnings, [0, 1, 2, 2, 2]);
        assert_eq!(told(&mut health, &[(0, true)]), [(vec![false], 1)]);
    }

    #[test]
    fn a_drive_that_does_not_answer_keeps_its_warnings() {
        let mut health = DriveHealth::default();
        told(&mut health, &[(1, false), (1, false)]);
        for _ in 0..2 * ENDS_AFTER {
            let silent = health.take(Err("it sleeps".to_owned()), (minute(2), 2));
            assert_eq!(silent, []);
        }
        assert_eq!(health.warnings().count(), 1);
        assert_eq!(health.unread.as_deref(), Some("it sleeps"));
        assert_eq!(
            health.last.as_ref().unwrap().1,
            1,
            "the last answer is kept"
        );
        told(&mut health, &[(1, false)]);
        assert_eq!(health.unread, None);
    }

    #[test]
    fn a_drive_is_asked_each_hour_and_sooner_while_a_warning_is_open() {
        let mut health = DriveHealth::default();
        assert!(health.is_due(minute(0)));
        health.take(Ok(reading(0, false)), (minute(0), 0));
        assert!(!health.is_due(minute(59)) && health.is_due(minute(60)));
        health.take(Ok(reading(1, false)), (minute(60), 0));
        assert!(health.is_due(minute(61)));
        health.take(Ok(reading(1, false)), (minute(61), 0));
        assert!(!health.is_due(minute(62)) && health.is_due(minute(121)));
        health.take(Err("gone".to_owned()), (minute(121), 0));
        assert!(!health.is_due(minute(122)));
        // One that sleeps after a first sign is not asked each minute.
        health.take(Ok(reading(0, true)), (minute(181), 0));
        assert!(health.is_due(minute(182)));
        health.take(Err("asleep".to_owned()), (minute(182), 0));
        assert!(!health.is_due(minute(183)) && health.is_due(minute(242)));
    }
}
