//! Which zone is rebuilt next.

use crate::common::{DRIVE_BYTES, PAGE, Shelf, content, thin};
use crate::log_group::{RAID10, blank, doors, until};
use base::VolumeOffset;
use engine::pool::maintenance::Rates;
use engine::{Lane, MemberState};
use world_sim::SimWorld;

const PAGES: usize = 64;

fn done_bytes(pool: &Lane<SimWorld>, drive: &str) -> u64 {
    let tasks = pool.info().tasks;
    let task = tasks.iter().find(|task| task.subject == drive);
    task.map_or(0, |task| task.done_bytes)
}

fn is(pool: &Lane<SimWorld>, drive: &str, state: MemberState) -> bool {
    let members = pool.info().members;
    let mut members = members.iter();
    members.any(|member| member.name == drive && member.state == state)
}

/// Another pair lacks a drive as urgently, and has all of it before it.
#[test]
fn a_drive_that_is_nearly_rebuilt_does_not_wait_for_a_new_one() {
    let shelf = Shelf::with_pool(4, RAID10);
    shelf.open(async |pool| {
        let bytes = (PAGES * PAGE) as u64;
        let volume = pool.create_volume(thin("w", bytes)).await.unwrap();
        let data = content(pool.world(), 3, PAGES * PAGE);
        volume.write(VolumeOffset(0), data).await.unwrap();
        pool.set_rates(Rates {
            rebuild_bytes_per_s: Some(64 << 10),
            ..Rates::default()
        });
        let mut new = doors(pool.world(), &blank("n", 2, DRIVE_BYTES));
        pool.replace_drive("d0", new.remove(0)).await.unwrap();
        until(&pool, |pool| done_bytes(pool, "n0") > bytes / 4).await;
        pool.replace_drive("d2", new.remove(0)).await.unwrap();
        until(&pool, |pool| is(pool, "n0", MemberState::Healthy)).await;
        assert!(is(&pool, "n1", MemberState::Rebuilding));
        until(&pool, |pool| is(pool, "n1", MemberState::Healthy)).await;
    });
}
