//! `--drive-model FILE`: gives all drives of a site the model that `ashlar calibrate` has written.

use crate::failure::Failure;
use crate::site_file;
use site::plan::{self, Setting};
use std::path::Path;
use toml::{Table, Value};

/// The table of models.
const MODELS: &str = "drive_model";

/// The changes of the site file at `site` that give all its drives the model in the file at `model`.
/// Names that a key of a setting can't have are refused.
///
/// # Errors
/// `Wrong` when a file can't be read, there is not one model, or it is wrong.
pub fn settings(site: &Path, model: &Path) -> Result<Vec<Setting>, Failure> {
    let wrong = |what: &str| Failure::Wrong(format!("{}: {what}", model.display()));
    plan::check_drive_models(model).map_err(site_file::wrong)?;
    let table = read(model)?;
    let models = table.get(MODELS).and_then(Value::as_array);
    let [one] = models.map_or(&[][..], Vec::as_slice) else {
        return Err(wrong(
            "it has no table [[drive_model]], or several; name a file that `ashlar calibrate` wrote",
        ));
    };
    let Some(name) = one.get("name").and_then(Value::as_str) else {
        return Err(wrong("the table [[drive_model]] has no name"));
    };
    let mut settings = vec![Setting {
        key: format!("{MODELS}.{name}"),
        value: one.clone(),
    }];
    let site = read(site)?;
    for kind in ["drive", "drives"] {
        let drives = site.get(kind).and_then(Value::as_array);
        let names = drives
            .into_iter()
            .flatten()
            .filter_map(|drive| drive.get("name"));
        for drive in names.filter_map(Value::as_str) {
            if drive.contains('.') || name.contains('.') {
                return Err(wrong(&format!(
                    "--drive-model takes no names with dots; put the table into the site file, and say model = \"{name}\" \
                     at drive {drive}"
                )));
            }
            settings.push(Setting {
                key: format!("{kind}.{drive}.model"),
                value: Value::String(name.to_owned()),
            });
        }
    }
    Ok(settings)
}

fn read(file: &Path) -> Result<Table, Failure> {
    let wrong =
        |what: &dyn std::fmt::Display| Failure::Wrong(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    text.parse::<Table>().map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = r#"[[drive_model]]
name = "here"
sizes = ["4 KiB"]
reads = [[1]]
writes = [[1]]
durable_writes = [[1]]
flushes = [1]
"#;

    #[test]
    fn all_drives_and_lots_get_the_model() {
        let directory = tempfile::tempdir().unwrap();
        let [site, model, none] = ["site", "model", "none"].map(|name| directory.path().join(name));
        std::fs::write(
            &site,
            "[[drive]]\nname = \"d0\"\n[[drives]]\nname = \"lot\"\nmodel = \"sata-1000\"\n",
        )
        .unwrap();
        std::fs::write(&model, MODEL).unwrap();
        std::fs::write(&none, "[[drive]]\nname = \"d0\"\n").unwrap();
        let keys: Vec<String> = settings(&site, &model)
            .unwrap()
            .into_iter()
            .map(|setting| setting.key)
            .collect();
        assert_eq!(
            keys,
            ["drive_model.here", "drive.d0.model", "drives.lot.model"]
        );
        let Err(Failure::Wrong(what)) = settings(&site, &none) else {
            panic!("a file without a model is wrong");
        };
        assert!(what.contains("no table [[drive_model]]"), "{what}");
        std::fs::write(&model, MODEL.replace("[[1]]", "[[0]]")).unwrap();
        let Err(Failure::Wrong(what)) = settings(&site, &model) else {
            panic!("a rate of zero is wrong");
        };
        assert!(what.contains("model:4: drive_model.reads"), "{what}");
    }
}
