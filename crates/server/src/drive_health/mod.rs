//! Asks drives of this machine for their health, by `smartctl` of smartmontools.
//!
//! - `place`: the device that a drive lies on. `run`: one run of smartctl. `report`: what it says.
//!
//! Invariants:
//! - Nothing waits for smartctl but the asking itself, and that for [`run::RUN_MAX`] at most.
//! - A drive has one smartctl at a time: one that hangs in the kernel costs one process.
//! - No disk is woken.

mod place;
mod report;
mod run;

use crate::programs::{self, NotStarted};
use ::array::control::HealthReader;
use ::array::drive_health::Reading;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use run::Runs;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use world_real::Reach;

/// The exit status of smartctl for a disk that sleeps; no combination of its bits is that.
const ASLEEP: &str = "255";

/// What smartctl reads beside the device: what it knows of models, and how devices are attached.
const TABLES: [&str; 5] = [
    "/usr/share/smartmontools",
    "/var/lib/smartmontools",
    "/etc/smart_drivedb.h",
    "/proc/devices",
    "/sys",
];

/// Asks drives by smartctl.
#[derive(Debug, Default)]
pub(crate) struct SmartDrives {
    runs: Arc<Runs>,
    /// The log says that smartctl can't be had.
    is_told: Arc<AtomicBool>,
}

impl HealthReader for SmartDrives {
    fn read(&self, path: &Path) -> BoxFuture<'static, Result<Reading, String>> {
        let (path, runs) = (path.to_owned(), Arc::clone(&self.runs));
        let is_told = Arc::clone(&self.is_told);
        let asked = async move {
            let device = place::device(&path).await?;
            let command = smartctl(&device).map_err(|why| told(why, &is_told))?;
            let answer = runs.run(&device, command).await?;
            report::understood(&answer)
        };
        asked.boxed()
    }
}

/// A run of smartctl that asks this device, and wakes none.
fn smartctl(device: &Path) -> Result<std::process::Command, NotStarted> {
    let there = TABLES.iter().map(PathBuf::from);
    let reach = Reach {
        read: there.filter(|table| table.exists()).collect(),
        device: Some(device.to_owned()),
        ..Reach::default()
    };
    let mut command = programs::confined("smartctl", &reach)?;
    command.args(["--json=c", &format!("--nocheck=standby,{ASLEEP}")]);
    command.args(["--info", "--health", "--attributes", "--log=error"]);
    command.args([OsStr::new("--"), device.as_os_str()]);
    Ok(command)
}

/// Why smartctl was not started; the log says it once.
fn told(why: NotStarted, is_told: &AtomicBool) -> String {
    let why = match why {
        NotStarted::Absent => {
            "smartctl is not installed (package smartmontools on Debian and Ubuntu)".to_owned()
        }
        NotStarted::Unconfined(error) => format!("can't confine smartctl: {error}"),
    };
    if !is_told.swap(true, Ordering::Relaxed) {
        tracing::warn!("the health of drives is not read: {why}");
    }
    why
}
