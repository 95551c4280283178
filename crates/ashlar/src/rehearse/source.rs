//! Identifies the input of a rehearsal in its reports: the file's content, and settings.

use crate::failure::Failure;
use rehearse::report::schema::SourceReport;
use sha2::{Digest, Sha256};
use site::plan::Setting;
use std::path::Path;

/// The file's name and digest, the same of a drive's model, and the settings. Neither the files' directories
/// nor their times count, so a copy elsewhere gives the same report.
///
/// # Errors
/// `Wrong` when it can't be read.
pub fn source(
    file: &Path,
    drive_model: Option<&Path>,
    settings: &[Setting],
) -> Result<SourceReport, Failure> {
    let (name, sha256) = named(file)?;
    let mut said = Vec::new();
    if let Some(model) = drive_model {
        let (name, sha256) = named(model)?;
        said.push(format!("--drive-model {name}, sha256 {sha256}"));
    }
    let setting = |setting: &Setting| format!("{}={}", setting.key, setting.value);
    said.extend(settings.iter().map(setting));
    Ok(SourceReport {
        file: name,
        sha256,
        settings: said,
    })
}

/// The name and the digest of a file.
fn named(file: &Path) -> Result<(String, String), Failure> {
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::Wrong(format!("can't read {}: {error}", file.display())))?;
    let digest = Sha256::digest(&bytes);
    let name = file.file_name().unwrap_or(file.as_os_str());
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((name.to_string_lossy().into_owned(), sha256))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_content_and_settings_as_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("shop.toml");
        std::fs::write(&file, "abc").unwrap();
        let settings = ["network.san.mtu=9000", "pool.data.level=6 x"];
        let settings = settings.map(|setting| Setting::parse(setting).unwrap());
        let source = source(&file, None, &settings).unwrap();
        assert_eq!(source.file, "shop.toml");
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(source.sha256, abc);
        let expected = ["network.san.mtu=9000", "pool.data.level=\"6 x\""];
        assert_eq!(source.settings, expected);
    }
}
