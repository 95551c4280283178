//! The laws that hold in every run, whatever the models say: asserted at the end of each.
//!
//! - **Flow balance**: what began has ended, at VMs, engine and drives; the engine has
//!   counted what the VMs asked for, but for what a host that lost its power had not sent:
//!   that has ended with an error.
//! - **Little's law**, exact: operations under way, added up over time, are the response
//!   times, added up over operations. It holds to the nanosecond for what begins and ends in
//!   a run; a lost or doubled operation or a clock that jumps breaks it.
//! - **Conservation of writes**: each block that came to go in place was replaced before it did, went there, or waits.
//!   Drives got each that went there, on all its copies, and no others but those on their way.
//! - **Utilisation law**: nothing is busy for more than all of the time, and a station's busy
//!   time is what its jobs took.

use super::share::Share;
use crate::error::{RehearseError, RehearseErrorKind};
use crate::parts::pool::PoolRig;
use crate::rig::Rig;
use crate::rig::vm::Balance;
use base::BLOCK_BYTES;
use engine::GroupRole;
use engine::raid::Level;

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
    drives(rig)?;
    rig.pools.iter().try_for_each(|pool| writes(pool))?;
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

/// Little's law at each drive that has nothing to do.
fn drives(rig: &Rig) -> Result<(), RehearseError> {
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
    Ok(())
}

/// Whether all that a pool accepted is on its drives, was replaced, or is owed. Of a pool that has lost a drive
/// nothing is said: its drives get less, or what is rebuilt besides.
fn writes(pool: &PoolRig) -> Result<(), RehearseError> {
    let copies: Vec<u64> = data_copies(pool);
    let [copies] = copies[..] else {
        return Ok(());
    };
    if pool.drives.iter().any(|drive| drive.is_dead()) {
        return Ok(());
    }
    for lane in &pool.lanes {
        let (flow, written) = (lane.store().flow(), lane.store().io().data_writes.bytes);
        let known =
            flow.replaced_blocks + flow.placed_blocks + flow.forgotten_blocks + flow.waiting_blocks;
        let bytes = |blocks: u64, bypass: u64| copies * (blocks * BLOCK_BYTES as u64 + bypass);
        let placed = bytes(flow.placed_blocks, flow.bypassed_bytes);
        let on_the_way = bytes(flow.waiting_blocks, flow.bypassing_bytes);
        if known != flow.came_blocks || !(placed..=placed + on_the_way).contains(&written) {
            return broken(format!(
                "conservation of writes in lane {} of pool '{}': {flow:?}, {copies} copies, and drives got {written} bytes",
                lane.lane(),
                pool.name,
            ));
        }
    }
    Ok(())
}

/// On how many drives data lies; one number where all groups for data are alike.
fn data_copies(pool: &PoolRig) -> Vec<u64> {
    let groups = pool.info().groups.into_iter();
    let for_data = groups.filter(|group| group.role == GroupRole::Data);
    let mut copies: Vec<u64> = for_data
        .map(|group| match group.level {
            Level::Raid10 { copies } => u64::from(copies),
            Level::Simple | Level::Raid5 | Level::Raid50 | Level::Raid6 => 1,
        })
        .collect();
    copies.sort_unstable();
    copies.dedup();
    copies
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
