//! What happens at a time of the run: faults and operations of the plan, and the engine's
//! own events.

use crate::rig::Rig;
use crate::run::Told;
use engine::World;
use site::plan::{Event, Happening, Plan};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// What has been told so far.
pub type Log = Rc<RefCell<Vec<Told>>>;

/// Sets the events of `plan` to happen.
pub fn start(plan: &Plan, rig: &Rig) -> Log {
    let log = Log::default();
    for event in &plan.events {
        match &event.what {
            Happening::DriveFails { drive } => {
                let failing = rig.drives().find(|other| other.name == *drive).cloned();
                let text = format!("drive {drive} fails");
                at(rig, event, &log, text, move || {
                    if let Some(drive) = failing {
                        drive.fail();
                    }
                });
            }
            Happening::LinkDown { host, network } | Happening::LinkUp { host, network } => {
                let down = matches!(event.what, Happening::LinkDown { .. });
                let port = rig.fabric.host_ports(host, network).into_iter().next();
                let word = if down { "goes down" } else { "comes up" };
                let text = format!("a link of host {host} into {network} {word}");
                at(rig, event, &log, text, move || {
                    if let Some(port) = port {
                        port.set_down(down);
                    }
                });
            }
            _ => {}
        }
    }
    log
}

fn at(rig: &Rig, event: &Event, log: &Log, text: String, happen: impl FnOnce() + 'static) {
    let (world, log, after) = (rig.world.clone(), Rc::clone(log), event.at);
    rig.world.spawn(async move {
        world.sleep(after).await;
        tell(&log, after, text);
        happen();
    });
}

fn tell(log: &Log, at: Duration, text: String) {
    log.borrow_mut().push(Told { at, text });
}
