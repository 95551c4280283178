//! Report files of a rehearsal, created before the runs so that errors show at once.

use crate::failure::Failure;
use crate::output;
use rehearse::report::schema::Document;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Files that reports of a rehearsal are written to; JSON may go to standard output.
pub struct Files {
    json: Option<Json>,
    html: Option<(PathBuf, File)>,
}

enum Json {
    StandardOutput,
    File(PathBuf, File),
}

impl Files {
    /// Creates them.
    ///
    /// # Errors
    /// `Failed` for one that can't be.
    pub fn create(json: Option<&Path>, html: Option<&Path>) -> Result<Files, Failure> {
        let json = match json {
            Some(path) if path == Path::new("-") => Some(Json::StandardOutput),
            Some(path) => Some(Json::File(path.to_owned(), create(path)?)),
            None => None,
        };
        let html = html.map(|path| Ok((path.to_owned(), create(path)?)));
        Ok(Files {
            json,
            html: html.transpose()?,
        })
    }

    /// Writes them; whether standard output has had one of them.
    ///
    /// # Errors
    /// `Failed` for one that can't be written.
    pub fn write(self, document: &Document) -> Result<bool, Failure> {
        if let Some((path, file)) = self.html {
            write(&path, file, &rehearse::report::html::html(document))?;
        }
        let Some(json) = self.json else {
            return Ok(false);
        };
        let text = serde_json::to_string_pretty(document)
            .map_err(|error| Failure::Failed(format!("can't write JSON: {error}")))?;
        match json {
            Json::StandardOutput => output::print(&format!("{text}\n")).map(|()| true),
            Json::File(path, file) => write(&path, file, &format!("{text}\n")).map(|()| false),
        }
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("can't write {}: {error}", path.display()))
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot(path, &error))
}

fn write(path: &Path, mut file: File, text: &str) -> Result<(), Failure> {
    let written = file.write_all(text.as_bytes());
    written.map_err(|error| cannot(path, &error))
}
