//! Outages of a run: those of single sessions, put together where they overlap.

use super::schema::{OutageReport, VmOutageReport};
use crate::kpi::Window;
use crate::outcome::Outage;
use base::Time;

/// The outages of a run, from those of the sessions of each VM, in the order of time. One
/// that had not ended is told until the end of the window.
pub fn outages<'a>(
    of_vms: impl Iterator<Item = (&'a str, &'a [Outage])>,
    window: Window,
) -> Vec<OutageReport> {
    let mut sessions: Vec<(&str, &Outage)> = of_vms
        .flat_map(|(vm, outages)| outages.iter().map(move |outage| (vm, outage)))
        .collect();
    sessions.sort_by_key(|(_, outage)| outage.from);
    let mut merged: Vec<OutageReport> = Vec::new();
    // Until when the last of them lasts.
    let mut last_until = None;
    for (vm, outage) in sessions {
        let until = outage.until.unwrap_or(Time(u64::MAX));
        match merged.last_mut() {
            Some(open) if last_until.is_some_and(|last| outage.from <= last) => {
                last_until = last_until.max(Some(until));
                add(open, vm, outage, window);
            }
            _ => {
                last_until = Some(until);
                let mut open = OutageReport {
                    from_s: seconds(outage.from),
                    until_s: Some(0.0),
                    seconds: 0.0,
                    operations_lost: 0,
                    why: outage.why.clone(),
                    vms: Vec::new(),
                };
                add(&mut open, vm, outage, window);
                merged.push(open);
            }
        }
    }
    merged
}

fn add(open: &mut OutageReport, vm: &str, outage: &Outage, window: Window) {
    let until_s = outage.until.map(seconds);
    open.until_s = later(open.until_s, until_s);
    let until = open.until_s.unwrap_or(seconds(window.end));
    open.seconds = (until - open.from_s).max(0.0);
    open.operations_lost += outage.operations_lost;
    if let Some(known) = open.vms.iter_mut().find(|known| known.name == vm) {
        known.until_s = later(known.until_s, until_s);
        known.operations_lost += outage.operations_lost;
        if !known.targets.contains(&outage.target) {
            known.targets.push(outage.target.clone());
        }
        return;
    }
    open.vms.push(VmOutageReport {
        name: vm.to_owned(),
        targets: vec![outage.target.clone()],
        from_s: seconds(outage.from),
        until_s,
        operations_lost: outage.operations_lost,
    });
}

/// `None` is never.
fn later(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    Some(a?.max(b?))
}

fn seconds(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn outage(from_s: u64, until_s: Option<u64>, operations_lost: u64) -> Outage {
        Outage {
            target: format!("file:/t{from_s}"),
            from: Time(from_s * S),
            until: until_s.map(|until| Time(until * S)),
            operations_lost,
            why: format!("lost at {from_s}"),
        }
    }

    #[test]
    fn outages_that_overlap_are_one_with_its_vms() {
        let window = Window {
            start: Time(0),
            end: Time(60 * S),
        };
        let a = [outage(10, Some(14), 3), outage(40, None, 1)];
        let b = [outage(12, Some(17), 4), outage(20, Some(21), 0)];
        let of_vms = [("A", &a[..]), ("B", &b[..])];
        let told = outages(of_vms.into_iter(), window);
        let times: Vec<_> = told
            .iter()
            .map(|outage| (outage.from_s, outage.until_s, outage.seconds))
            .collect();
        assert_eq!(
            times,
            [
                (10.0, Some(17.0), 7.0),
                (20.0, Some(21.0), 1.0),
                (40.0, None, 20.0)
            ]
        );
        assert_eq!(told[0].operations_lost, 7);
        assert_eq!(told[0].why, "lost at 10");
        let vms: Vec<_> = told[0]
            .vms
            .iter()
            .map(|vm| (vm.name.as_str(), vm.until_s, vm.operations_lost))
            .collect();
        assert_eq!(vms, [("A", Some(14.0), 3), ("B", Some(17.0), 4)]);
    }

    #[test]
    fn two_sessions_of_a_vm_are_one_line_of_it() {
        let window = Window {
            start: Time(0),
            end: Time(60 * S),
        };
        let of_vm = [outage(10, Some(14), 3), outage(11, None, 4)];
        let told = outages([("A", &of_vm[..])].into_iter(), window);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].until_s, told[0].seconds), (None, 50.0));
        assert_eq!(told[0].vms.len(), 1);
        assert_eq!(told[0].vms[0].targets, ["file:/t10", "file:/t11"]);
        assert_eq!(told[0].vms[0].operations_lost, 7);
    }
}
