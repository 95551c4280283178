//! The settings of the array: pools and drives, portals, directories, limits, the trash.
//!
//! They are what a site file says beside volumes, exports and hosts, and are kept in that form
//! (`configuration`). The first start takes them from the site file; from then on they change by
//! commands, and count over any file.
//!
//! Invariants:
//! - Settings are kept before they count, and keep every rule of a site file.
//! - What the settings say of the groups and drives of a pool may be behind: its labels count.
//!   Where its drives are is looked for at all places that the settings and the drives' record
//!   name.

use super::{ArrayError, ArrayErrorKind, ControlPlane};
use engine::World;
use site::{Setting, Site, human};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<W: World> ControlPlane<W> {
    /// Changes the settings. What can follow at once does; limits, the name and the number of
    /// shards count from the next start on.
    ///
    /// # Errors
    /// What `change` says; they would break a rule of a site file, or can't be kept.
    pub async fn change_settings(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Site) -> Result<(), ArrayError> + Send + 'static,
    ) -> Result<(), ArrayError> {
        let planted = "settings are changed from those before the turn";
        let before = self.runtime.planted(planted).then(|| self.settings());
        self.change(move |array| async move {
            let now = before.unwrap_or_else(|| array.settings());
            let mut settings = now.as_ref().clone();
            change(&mut settings)?;
            array.keep_settings(settings).await
        })
        .await
    }

    /// Changes settings by table and key; `None` takes the default.
    ///
    /// # Errors
    /// There is no such key, it can't be so, or it can't be kept.
    pub async fn edit_settings(
        self: &Arc<Self>,
        changes: BTreeMap<String, BTreeMap<String, Option<Setting>>>,
    ) -> Result<(), ArrayError> {
        self.change_settings(move |settings| {
            *settings = site::edited(settings, &changes).map_err(wrong)?;
            Ok(())
        })
        .await
    }

    /// That settings could be changed so, as far as that is known before they are kept.
    ///
    /// # Errors
    /// There is no such key, or it can't be so.
    pub fn check_edit(
        &self,
        changes: &BTreeMap<String, BTreeMap<String, Option<Setting>>>,
    ) -> Result<(), ArrayError> {
        let edited = site::edited(&self.settings(), changes).map_err(wrong)?;
        check(&edited)?;
        match edited.limits == self.settings().limits {
            true => Ok(()),
            false => self.check_memory(&edited),
        }
    }

    /// Has the settings be these. For a change whose turn it is.
    ///
    /// # Errors
    /// As for [`ControlPlane::change_settings`].
    pub async fn keep_settings(&self, settings: Site) -> Result<(), ArrayError> {
        let settings = Arc::new(settings);
        // A write that failed may have changed the record all the same.
        if self.settings() == settings && !self.is_unkept.load(Ordering::Relaxed) {
            return Ok(());
        }
        check(&settings)?;
        if settings.limits != self.settings().limits {
            self.check_memory(&settings)?;
        }
        let mut configuration = self.configuration();
        configuration.settings = Some(Arc::clone(&settings));
        match self
            .runtime
            .planted("settings are acknowledged before they are kept")
        {
            true => drop(self.store.keep(configuration)),
            false => self.keep(configuration).await?,
        }
        self.drives.follow(&settings);
        self.machine.follow(&settings);
        self.directory().allow_algorithms(&settings.chap);
        self.settings_are(settings);
        Ok(())
    }

    /// Keeps the groups and drives that the open pools have by now as settings: the next start
    /// looks for no others.
    ///
    /// # Errors
    /// A shard has stopped, or they can't be kept.
    pub async fn settle_settings(self: &Arc<Self>) -> Result<(), ArrayError> {
        self.change(|array| async move { array.keep_current_settings().await })
            .await
    }

    /// The same, for a change whose turn it is.
    pub async fn keep_current_settings(&self) -> Result<(), ArrayError> {
        let settings = self.current_settings().await?;
        self.keep_settings(settings).await
    }

    /// The settings, with the groups and drives that the open pools have by now.
    ///
    /// # Errors
    /// A shard has stopped.
    pub async fn current_settings(&self) -> Result<Site, ArrayError> {
        let mut settings = self.settings().as_ref().clone();
        self.name_drives(&mut settings).await?;
        Ok(settings)
    }

    /// That the machine has the memory that new settings ask for.
    fn check_memory(&self, settings: &Site) -> Result<(), ArrayError> {
        let (limits, there_is) = (&settings.limits, self.machine.memory_bytes());
        for (key, asked) in [
            ("memory", limits.memory_bytes),
            ("checksum_memory", limits.checksum_memory_bytes),
        ] {
            if let (Some(asked), Some(all)) = (asked, there_is)
                && asked > all
            {
                let context = format!(
                    "limits.{key}: found {}; allowed: at most the {} that this machine has for \
                     the array",
                    human(asked),
                    human(all)
                );
                return Err(ArrayError::new(ArrayErrorKind::Invalid, context));
            }
        }
        Ok(())
    }
}

/// That settings keep the rules of a site file.
pub(super) fn check(settings: &Site) -> Result<(), ArrayError> {
    let read = site::parse("settings", &site::text(settings)).map_err(wrong)?;
    if read == *settings {
        return Ok(());
    }
    // A path that is no text, such as that of a data directory, can't be written.
    let context = "a path is not UTF-8: rename the directory, or use another one".to_owned();
    Err(ArrayError::new(ArrayErrorKind::Invalid, context))
}

/// Which rules settings break; the lines of their text mean nothing to anybody.
fn wrong(error: site::SiteError) -> ArrayError {
    let lines = error.diagnostics.iter();
    let lines = lines.map(|one| {
        let (key, found, allowed) = (&one.key, &one.found, &one.allowed);
        format!("{key}: found {found}; allowed: {allowed}")
    });
    let mut lines: Vec<String> = lines.collect();
    // Drives of one size break one rule.
    lines.dedup();
    ArrayError::new(ArrayErrorKind::Invalid, lines.join("; "))
}
