//! Who may log in where, as the books of a run have it. The control plane has no part in it.
//!
//! A change counts from some instant between its request and its answer. A login before the answer
//! may show that it counts: then no later login may go by the rules before it, and the next boot
//! must find it on record.

use std::collections::BTreeSet;

/// An attempt to log in: which host comes, to which target, at which portal, and what it can prove.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) host: usize,
    pub(super) target: usize,
    pub(super) portal: usize,
    /// Number of the host's secret.
    pub(super) secret: Option<u64>,
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Admitted,
    NotFound,
    WrongSecret,
}

/// What exports, hosts and the group of hosts say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// By target; none for one that has no export.
    pub(super) exports: Vec<Option<ExportRules>>,
    /// Hosts in the group.
    pub(super) group: BTreeSet<usize>,
    pub(super) hosts: Vec<HostRules>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportRules {
    pub(super) hosts: BTreeSet<usize>,
    pub(super) admits_group: bool,
    /// The portals that it is seen through; all if none is named.
    pub(super) portals: Option<BTreeSet<usize>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostRules {
    /// It has the name of an initiator that never comes, and not its own.
    pub(super) is_away: bool,
    /// Number of the secret that it has to prove.
    pub(super) secret: Option<u64>,
}

impl Rules {
    pub(super) fn verdict(&self, attempt: Attempt) -> Verdict {
        let host = &self.hosts[attempt.host];
        let admits = |export: &ExportRules| {
            let by_group = export.admits_group && self.group.contains(&attempt.host);
            let is_shown = match &export.portals {
                Some(only) => only.contains(&attempt.portal),
                None => true,
            };
            is_shown && (by_group || export.hosts.contains(&attempt.host))
        };
        let export = self.exports[attempt.target].as_ref();
        if host.is_away || !export.is_some_and(admits) {
            return Verdict::NotFound;
        }
        match host.secret {
            Some(needed) if attempt.secret != Some(needed) => Verdict::WrongSecret,
            _ => Verdict::Admitted,
        }
    }

    /// What leads from these to `others`, one thing at a time.
    pub(super) fn steps_to(&self, others: &Rules) -> Vec<Rules> {
        let mut steps = Vec::new();
        let mut now = self.clone();
        let mut step = |now: &Rules| {
            if steps.last().unwrap_or(self) != now {
                steps.push(now.clone());
            }
        };
        for (host, rules) in others.hosts.iter().enumerate() {
            now.hosts[host] = rules.clone();
            step(&now);
        }
        now.group.clone_from(&others.group);
        step(&now);
        for (target, rules) in others.exports.iter().enumerate() {
            now.exports[target].clone_from(rules);
            step(&now);
        }
        steps
    }
}

/// The rules that have been, and the one that a change is to bring about.
pub(super) struct Access {
    versions: Vec<Rules>,
    /// The last one that was acknowledged.
    settled: usize,
    /// A login has gone by the one after it.
    is_seen: bool,
}

impl Access {
    pub(super) fn new(rules: Rules) -> Self {
        Access {
            versions: vec![rules],
            settled: 0,
            is_seen: false,
        }
    }

    /// The rules that were acknowledged.
    pub(super) fn rules(&self) -> &Rules {
        &self.versions[self.settled]
    }

    /// Those that count once nothing is under way.
    pub(super) fn coming(&self) -> &Rules {
        &self.versions[self.versions.len() - 1]
    }

    /// No change is under way.
    pub(super) fn is_settled(&self) -> bool {
        self.settled + 1 == self.versions.len()
    }

    /// A change is asked for.
    pub(super) fn begin(&mut self, rules: Rules) {
        self.versions.push(rules);
    }

    /// It is acknowledged.
    pub(super) fn end(&mut self) {
        (self.settled, self.is_seen) = (self.versions.len() - 1, false);
    }

    /// The oldest rules that a login may go by which begins now.
    pub(super) fn oldest(&self) -> usize {
        self.settled + usize::from(self.is_seen)
    }

    /// Whether there were no other rules than those now since a login began at `oldest`.
    pub(super) fn is_as_at(&self, oldest: usize) -> bool {
        self.is_settled() && self.settled == oldest
    }

    /// An attempt that began at `oldest` has come to this.
    ///
    /// # Errors
    /// No rules since then explain it.
    pub(super) fn judge(
        &mut self,
        oldest: usize,
        attempt: Attempt,
        verdict: Verdict,
    ) -> Result<(), String> {
        let mut since = oldest..self.versions.len();
        let explains = |number: &usize| self.versions[*number].verdict(attempt) == verdict;
        match since.find(explains) {
            None => Err(format!("{attempt:?} comes to {verdict:?}")),
            Some(first) => {
                self.is_seen |= first > self.settled;
                Ok(())
            }
        }
    }

    /// A boot finds these.
    ///
    /// # Errors
    /// They are neither those that were acknowledged, nor those that were to come, or a login had
    /// gone by others.
    pub(super) fn begin_with(&mut self, found: Rules) -> Result<(), String> {
        if !self.versions[self.oldest()..].contains(&found) {
            let known = &self.versions[self.oldest()..];
            return Err(format!("a start finds {found:?} instead of {known:?}"));
        }
        *self = Access::new(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(admitted: &[usize]) -> Rules {
        let export = ExportRules {
            hosts: admitted.iter().copied().collect(),
            admits_group: false,
            portals: None,
        };
        let host = HostRules {
            is_away: false,
            secret: Some(1),
        };
        Rules {
            exports: vec![Some(export)],
            group: BTreeSet::from([0, 1]),
            hosts: vec![host.clone(), host],
        }
    }

    const FIRST: Attempt = Attempt {
        host: 0,
        target: 0,
        portal: 0,
        secret: Some(1),
    };

    #[test]
    fn an_attempt_is_judged_by_export_group_portal_name_and_secret() {
        let mut now = rules(&[1]);
        assert_eq!(now.verdict(FIRST), Verdict::NotFound);
        let export = now.exports[0].as_mut().unwrap();
        export.admits_group = true;
        assert_eq!(now.verdict(FIRST), Verdict::Admitted);
        now.hosts[0].secret = Some(2);
        assert_eq!(now.verdict(FIRST), Verdict::WrongSecret);
        now.hosts[0] = rules(&[]).hosts[0].clone();
        now.exports[0].as_mut().unwrap().portals = Some(BTreeSet::from([1]));
        assert_eq!(now.verdict(FIRST), Verdict::NotFound);
        now.exports[0].as_mut().unwrap().portals = None;
        now.hosts[0].is_away = true;
        assert_eq!(now.verdict(FIRST), Verdict::NotFound);
        now.exports[0] = None;
        assert_eq!(now.verdict(FIRST), Verdict::NotFound);
    }

    #[test]
    fn what_a_login_has_seen_stays_so() {
        let mut access = Access::new(rules(&[0, 1]));
        access.begin(rules(&[1]));
        let early = access.oldest();
        // Both may be, until one login is refused.
        access.judge(early, FIRST, Verdict::Admitted).unwrap();
        access.judge(early, FIRST, Verdict::NotFound).unwrap();
        let late = access.oldest();
        access.judge(late, FIRST, Verdict::Admitted).unwrap_err();
        // One that had begun before may have been admitted before.
        access.judge(early, FIRST, Verdict::Admitted).unwrap();
        access.begin_with(rules(&[0, 1])).unwrap_err();
        access.begin_with(rules(&[1])).unwrap();
        assert!(access.is_settled());
    }

    #[test]
    fn a_start_finds_either_of_two_and_no_third() {
        let mut access = Access::new(rules(&[0, 1]));
        access.begin(rules(&[1]));
        access.begin_with(rules(&[])).unwrap_err();
        access.begin_with(rules(&[0, 1])).unwrap();
        access.begin(rules(&[1]));
        access.end();
        access.begin_with(rules(&[0, 1])).unwrap_err();
    }

    #[test]
    fn steps_change_one_thing_each() {
        let (from, mut to) = (rules(&[]), rules(&[0]));
        to.hosts[1].is_away = true;
        let steps = from.steps_to(&to);
        assert_eq!(steps.len(), 2);
        assert_eq!(steps[0].exports, from.exports);
        assert_eq!(steps[1], to);
    }
}
