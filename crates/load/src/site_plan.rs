//! The workload of a site: its VMs with their roles, and the LUNs they are on.

use site::Site;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use workload::plan::{VmPlaces, places_of_vm};
use workload::profile::{Limits, Profile, VmProfile};
use workload::url::{IscsiLun, TargetUrl};

/// The profile that a site's VMs make up, each scaled as the site says. What limits
/// all of them together is the strictest of what their profiles have.
///
/// # Errors
/// When a VM names a profile or role that does not exist, or there is no VM.
pub fn profile(site: &Site) -> Result<Profile, String> {
    let mut vms = Vec::with_capacity(site.vms.len());
    let mut names: Vec<&str> = Vec::new();
    let mut limits = Limits::default();
    for vm in &site.vms {
        let profile = Profile::named(&vm.profile).ok_or_else(|| {
            let allowed = Profile::names().join(", ");
            format!(
                "site {}: VM {}: profile {:?} does not exist; allowed: {allowed}",
                site.name, vm.name, vm.profile
            )
        })?;
        let role = profile.role(&vm.role).ok_or_else(|| {
            let allowed: Vec<&str> = profile.vms.iter().map(|vm| vm.name.as_str()).collect();
            format!(
                "site {}: VM {}: profile {} has no role {:?}; allowed: {}",
                site.name,
                vm.name,
                vm.profile,
                vm.role,
                allowed.join(", ")
            )
        })?;
        let mut of_vm = VmProfile {
            name: vm.name.clone(),
            ..role.clone()
        };
        of_vm.scale(vm.rate_scale);
        vms.push(of_vm);
        let caps = [limits.random_mean, profile.limits.random_mean];
        limits.random_mean = caps.into_iter().flatten().min();
        if !names.contains(&vm.profile.as_str()) {
            names.push(&vm.profile);
        }
    }
    if vms.is_empty() {
        return Err(format!(
            "site {} has no [[vm]]: nothing to put on it",
            site.name
        ));
    }
    Ok(Profile {
        name: names.join("+"),
        vms,
        limits,
    })
}

/// Where the disks of the VMs of [`profile`] lie. `portal` replaces the site's
/// (when the server was told another one).
///
/// # Errors
/// When the number of LUNs of a VM does not fit its role, or the portal's port
/// is only known to the server.
pub fn places(
    site: &Site,
    profile: &Profile,
    portal: Option<SocketAddr>,
) -> Result<Vec<VmPlaces>, String> {
    let first = site.portals.first().map(|portal| portal.address);
    let portal = portal
        .or(first)
        .ok_or_else(|| format!("site {} has no [[portal]]", site.name))?;
    if portal.port() == 0 {
        return Err(format!(
            "site {}: the system chooses the portal's port; say which with --portal ADDR",
            site.name
        ));
    }
    let portal = reachable(portal);
    let mut places = Vec::with_capacity(site.vms.len());
    for (vm, of_vm) in site.vms.iter().zip(&profile.vms) {
        let luns = site.export(&vm.target).into_iter();
        let url = |lun: u16| {
            TargetUrl::Iscsi(IscsiLun {
                portal: portal.to_string(),
                target: vm.target.clone(),
                lun,
                credentials: None,
            })
        };
        let luns = luns.flat_map(|export| export.luns.iter().copied());
        let urls: Vec<TargetUrl> = luns.map(url).collect();
        places.push(places_of_vm(of_vm, &urls)?);
    }
    Ok(places)
}

/// A portal that listens on all addresses is reached on this machine's own.
fn reachable(portal: SocketAddr) -> SocketAddr {
    let address = match portal.ip() {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    SocketAddr::new(address, portal.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use site::{Api, Export, Initiators, Portal, Vm};
    use workload::profile::MEAN_LATENCY_LIMIT;

    fn site(role: &str, volumes: usize) -> Site {
        let target = "iqn.2026-11.dev.ashlar:mbx01".to_string();
        Site {
            name: "s".into(),
            shards: Some(1),
            trash: std::time::Duration::ZERO,
            images: site::Images::default(),
            api: Api::default(),
            portals: vec![Portal {
                address: "0.0.0.0:3260".parse().unwrap(),
                group: 1,
            }],
            drives: Vec::new(),
            pools: Vec::new(),
            volumes: Vec::new(),
            groups: Vec::new(),
            chap: site::Chap::default(),
            limits: site::Limits::default(),
            hosts: Vec::new(),
            host_groups: Vec::new(),
            exports: vec![Export {
                physical_block_bytes: None,
                may_sanitize: false,
                may_affect_others: false,
                target: target.clone(),
                volumes: (0..volumes).map(|n| format!("v{n}")).collect(),
                luns: Export::usual_luns(volumes),
                initiators: Initiators::Any,
                hosts: Vec::new(),
                host_groups: Vec::new(),
                chap: None,
                portals: Vec::new(),
            }],
            vms: vec![Vm {
                name: "MAIL".into(),
                target,
                profile: "hetero10".into(),
                role: role.into(),
                rate_scale: 0.5,
            }],
        }
    }

    #[test]
    fn a_vm_gets_its_role_at_its_rate_and_a_lun_per_disk() {
        let site = site("MBX01", 5);
        let profile = profile(&site).unwrap();
        assert_eq!(profile.vms[0].name, "MAIL");
        assert_eq!(profile.vms[0].per_second(), 350.0);
        let places = places(&site, &profile, None).unwrap();
        assert_eq!(
            places[0].disks[4].url.to_string(),
            "iscsi://127.0.0.1:3260/iqn.2026-11.dev.ashlar:mbx01/4"
        );
        let mut with_gap = site.clone();
        with_gap.exports[0].luns = vec![0, 2, 3, 4, 9];
        let gap = super::places(&with_gap, &profile, None).unwrap();
        assert!(gap[0].disks[4].url.to_string().ends_with(":mbx01/9"));
        let elsewhere = "10.0.0.1:99".parse().unwrap();
        let places = super::places(&site, &profile, Some(elsewhere)).unwrap();
        assert!(
            places[0].disks[0]
                .url
                .to_string()
                .starts_with("iscsi://10.0.0.1:99/")
        );
    }

    #[test]
    fn a_cap_of_one_profile_is_the_sites() {
        let mut site = site("MBX01", 5);
        assert_eq!(profile(&site).unwrap().limits.random_mean, None);
        let of_shop = Vm {
            name: "SHOP".into(),
            profile: "ecommerce20".into(),
            role: "DC01".into(),
            ..site.vms[0].clone()
        };
        site.vms.insert(0, of_shop);
        let both = profile(&site).unwrap();
        assert_eq!(both.limits.random_mean, Some(MEAN_LATENCY_LIMIT));
        assert_eq!(both.name, "ecommerce20+hetero10");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let refused = profile(&site("MBX02", 5)).unwrap_err();
        assert!(
            refused.contains("MAIL") && refused.contains("MBX01"),
            "{refused}"
        );
        let few = site("MBX01", 2);
        let refused = places(&few, &profile(&few).unwrap(), None).unwrap_err();
        assert!(
            refused.contains("MAIL") && refused.contains("5"),
            "{refused}"
        );
        let mut unknown = site("MBX01", 5);
        unknown.vms[0].profile = "nonsense".into();
        assert!(profile(&unknown).unwrap_err().contains("hetero10"));
        let mut chosen = site("MBX01", 5);
        chosen.portals[0].address = "127.0.0.1:0".parse().unwrap();
        let refused = places(&chosen, &profile(&chosen).unwrap(), None).unwrap_err();
        assert!(refused.contains("--portal"), "{refused}");
        let empty = Site {
            vms: Vec::new(),
            ..site("MBX01", 5)
        };
        assert!(profile(&empty).unwrap_err().contains("[[vm]]"));
    }
}
