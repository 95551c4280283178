//! The laws that hold in every run, whatever the models say: asserted at the end of each.
//!
//! - **Flow balance**: what began has ended, at VMs, engine and drives; the engine has
//!   counted what the VMs asked for, but for what a host that lost its power had not sent:
//!   that has ended with an error.
//! - **Little's law**, exact: operations under way, added up over time, are the response
//!   times, added up over operations. It holds to the nanosecond for what begins and ends in
//!   a run; a lost or doubled operation or a clock that jumps breaks it.
//! - **Utilisation law**: nothing is busy for more than all of the time, and a station's busy
//!   time is what its jobs took.

use super::share::Share;
use crate::error::{RehearseError, RehearseErrorKind};
use crate::rig::Rig;
use crate::rig::vm::Balance;

/// Checks all of them.
///
/// # Errors
/// `Law` with the first that does not hold: a fault of the program, not of the site.
pub fn check(rig: &Rig, balance: &Balance, shares: &[Share]) -> Result<(), RehearseError> {
    operations(balance)?;
    let (mut in_engine, mut never_sent) = (0, 0);
    for disk in rig.disks() {
        let (began, ended) = disk.in_engine.get();
        if began != ended {
            return broken(format!(
                "flow balance of the engine: {began} in and {ended} out"
            ));
        }
        in_engine += began;
        never_sent += disk.never_sent.get();
    }
    if in_engine + never_sent != balance.issued {
        let issued = balance.issued;
        return broken(format!(
            "flow balance: {issued} operations, {in_engine} in the engine and {never_sent} never sent"
        ));
    }
    for drive in rig.drives() {
        let taken = drive.taken();
        let inside = taken.arrived - taken.ended;
        if inside == 0 && taken.outstanding_ns != taken.response.as_nanos() {
            return broken(format!(
                "Little's law at drive '{}': {} command-nanoseconds in it, {} in response times",
                drive.name,
                taken.outstanding_ns,
                taken.response.as_nanos()
            ));
        }
    }
    // Rounding of a lane to whole nanoseconds may reach over the edge of the window.
    let over = shares.iter().find(|share| share.utilisation > 1.000_1);
    if let Some(share) = over {
        return broken(format!(
            "utilisation law: {} {} is busy {} of the time",
            share.part.as_str(),
            share.name,
            share.utilisation
        ));
    }
    Ok(())
}

fn broken(context: String) -> Result<(), RehearseError> {
    Err(RehearseError {
        kind: RehearseErrorKind::Law,
        line: None,
        context: format!("{context}; this is a fault of Ashlar's, please report it"),
    })
}

/// Those of operations alone, once none is under way.
///
/// # Errors
/// As [`check`].
pub fn operations(balance: &Balance) -> Result<(), RehearseError> {
    if balance.issued != balance.ended {
        let Balance { issued, ended, .. } = balance;
        return broken(format!(
            "flow balance: {issued} operations began and {ended} ended"
        ));
    }
    if balance.outstanding_ns != balance.response_ns {
        return broken(format!(
            "Little's law: {} operation-nanoseconds under way, {} in response times",
            balance.outstanding_ns, balance.response_ns
        ));
    }
    Ok(())
}
