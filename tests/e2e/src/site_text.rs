//! Site files for pools of one volume.

use crate::array::TARGET;

/// A pool `p` of one group of drives `d0`, `d1` and so on in files of the same name,
/// with spares `s0` and so on, and one thin volume `v` behind [`TARGET`].
#[derive(Clone, Copy, Debug)]
pub struct OnePool {
    /// As the site file writes it.
    pub level: &'static str,
    /// How many drives.
    pub drives: usize,
    /// How many spares.
    pub spares: usize,
    /// Size of each.
    pub drive_mib: u64,
    /// Size of the volume.
    pub volume_mib: u64,
}

impl OnePool {
    /// The site file.
    pub fn text(self) -> String {
        let names = |first: char, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{first}{n}")).collect()
        };
        let (drives, spares) = (names('d', self.drives), names('s', self.spares));
        let all: Vec<(String, String)> = drives
            .iter()
            .chain(&spares)
            .map(|name| (name.clone(), format!("{name}.img")))
            .collect();
        self.text_with(&all, &drives, &spares)
    }

    /// The site file, with these drives (name and file).
    pub fn text_with(
        self,
        all: &[(String, String)],
        drives: &[String],
        spares: &[String],
    ) -> String {
        let OnePool {
            level,
            drive_mib,
            volume_mib,
            ..
        } = self;
        let mut text = "[site]\nname = \"e2e\"\n[api]\nlisten = \"127.0.0.1:0\"\n\
                        [[portal]]\naddress = \"127.0.0.1:0\"\n"
            .to_owned();
        for (name, file) in all {
            text += &format!(
                "[[drive]]\nname = \"{name}\"\nfile = \"{file}\"\nsize = \"{drive_mib} MiB\"\n"
            );
        }
        text += &format!("[[pool]]\nname = \"p\"\nlevel = \"{level}\"\ndrives = {drives:?}\n");
        if !spares.is_empty() {
            text += &format!("spares = {spares:?}\n");
        }
        text += &format!(
            "[[volume]]\nname = \"v\"\npool = \"p\"\nsize = \"{volume_mib} MiB\"\n\
             [[export]]\ntarget = \"{TARGET}\"\nvolumes = [\"v\"]\ninitiators = \"any\"\n"
        );
        text
    }
}
