//! The power loss of a controller, and the takeover of its pools by its partner.

use super::Scene;
use super::log::count;
use engine::World;
use std::rc::Rc;
use std::time::Duration;

/// Until a partner has noticed and serves: NetApp's default (`storage failover modify`,
/// `-detection-time`, 15 s); taken for other makes, too.
const TAKEOVER: Duration = Duration::from_secs(15);

/// A controller loses its power. What it had acknowledged is in its partner's copy of the write
/// cache; what was under way waits, as hosts repeat what is not answered.
pub(super) async fn controller_fails(scene: &Rc<Scene>, name: &str, takeover: Option<Duration>) {
    let controller = scene.controller(name);
    if !controller.is_up() {
        return scene
            .log
            .tell(format!("controller {name} fails, which is down already"));
    }
    let of_it = scene.pools.iter();
    let of_it = of_it.filter(|pool| pool.controller.serving().name == name);
    let more = format!("{} wait", count(of_it.count(), "pool"));
    let outage = scene
        .log
        .begin(format!("outage of controller {name}"), &more);
    let partner = scene.partner(name).filter(|partner| partner.is_up());
    let Some(partner) = partner else {
        controller.lose();
        return outage.fail("it has no partner that is up: its pools are lost until it is back");
    };
    controller.stop();
    let takeover = takeover.unwrap_or(TAKEOVER);
    scene.world.sleep(takeover).await;
    if !partner.is_up() {
        controller.lose();
        return outage.fail("its partner failed before it had taken its pools");
    }
    controller.taken_by(&partner);
    let mut disks = 0;
    for vm in &scene.vms {
        for disk in &vm.disks {
            let is_taken = disk.pool.borrow().controller.serving().name == partner.name;
            if is_taken
                && scene
                    .wiring
                    .reaches(&disk.host.borrow().name, &partner.name)
            {
                vm.connect(disk, &scene.wiring);
                disks += 1;
            }
        }
    }
    let who = &partner.name;
    outage.end(&format!(
        "controller {who} serves its pools, {} in all, and mirrors its write cache no more",
        count(disks, "disk")
    ));
}
