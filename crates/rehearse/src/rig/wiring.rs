//! LUNs: the view that a host has of a controller's volumes. They are made when something needs
//! them, so that a VM or volume that moves to another host, controller or pool finds its own.

use super::network::Fabric;
use crate::parts::host::LunRig;
use crate::plan::catalog;
use model::link::multipath::Policy;
use site::plan::{Balance, Luns, Machine, Plan, VmGroup};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Host, controller, and the LUN's name.
type Key = (String, String, String);

/// The LUNs of a site.
pub struct Wiring {
    plan: Rc<Plan>,
    fabric: Rc<Fabric>,
    luns: RefCell<BTreeMap<Key, Rc<LunRig>>>,
}

/// The host of a plan that is called so, alone or as one of several.
pub fn host_of<'a>(plan: &'a Plan, name: &str) -> &'a Machine {
    let mut hosts = plan.hosts.iter();
    match hosts.find(|host| host.names().iter().any(|other| other == name)) {
        Some(host) => host,
        None => unreachable!("a plan's names lead somewhere: {name}"),
    }
}

/// The VM group of a plan.
pub fn vm_group_of<'a>(plan: &'a Plan, name: &str) -> &'a VmGroup {
    match plan.vm_groups.iter().find(|vm_group| vm_group.name == name) {
        Some(vm_group) => vm_group,
        None => unreachable!("a plan's names lead somewhere: {name}"),
    }
}

impl Wiring {
    /// No LUN yet.
    pub(super) fn new(plan: Rc<Plan>, fabric: Rc<Fabric>) -> Wiring {
        Wiring {
            plan,
            fabric,
            luns: RefCell::default(),
        }
    }

    /// Whether a host reaches a controller.
    pub fn reaches(&self, host: &str, controller: &str) -> bool {
        !self.fabric.ways(host, controller).is_empty()
    }

    /// The LUN called `name` of a VM group.
    ///
    /// # Panics
    /// When the host does not reach the controller.
    pub fn lun(&self, host: &str, controller: &str, vm_group: &str, name: &str) -> Rc<LunRig> {
        let key = (host.to_owned(), controller.to_owned(), name.to_owned());
        let number = self.luns.borrow().len();
        if let Some(lun) = self.luns.borrow().get(&key) {
            return Rc::clone(lun);
        }
        let vm_group = vm_group_of(&self.plan, vm_group);
        let lun = Rc::new(self.make(host, controller, vm_group, number));
        self.luns.borrow_mut().insert(key, Rc::clone(&lun));
        lun
    }

    /// All ways to its controller; of a group of links, the place that the rule gives it.
    fn make(&self, host_name: &str, controller: &str, vm_group: &VmGroup, number: usize) -> LunRig {
        let host = host_of(&self.plan, host_name);
        let ways = self.fabric.ways(host_name, controller);
        assert!(!ways.is_empty(), "a LUN of a host that does not reach it");
        let is_shared = matches!(vm_group.luns, Luns::Shared(_));
        let depth = catalog::lun_queue(host, is_shared);
        match host.balance {
            Balance::RoundRobin => {
                LunRig::multipath(depth, ways, Policy::RoundRobin { ios_per_path: 1 })
            }
            Balance::LeastQueue => LunRig::multipath(depth, ways, Policy::LeastQueue),
            // One virtual port and one hardware address: one link for all.
            Balance::Port | Balance::Mac => LunRig::grouped(depth, ways, 0),
            Balance::IpHash => LunRig::grouped(depth, ways, number % usize::from(host.addresses)),
        }
    }
}
