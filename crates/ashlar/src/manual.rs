//! The manual of the commands: pages for `man`, completions for shells, and the references of
//! `docs/reference`.
//!
//! Invariant: all of it is made from the definitions that the program reads its arguments with.

use crate::failure::Failure;
use clap::Command;
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Write the manual: man pages, completions for shells, references of commands and of the site file
#[derive(clap::Args)]
pub struct Args {
    /// Directory to write to: `man`, `completions`, `cli.md` and `site-file.md`
    directory: PathBuf,
}

/// Shells that completions are made for, with the names that these look for.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "ashlar"),
    (Shell::Zsh, "_ashlar"),
    (Shell::Fish, "ashlar.fish"),
];

/// Writes everything.
///
/// # Errors
/// `Failed`, with the file that can't be written.
pub fn run(command: Command, args: &Args) -> Result<(), Failure> {
    let pages = args.directory.join("man");
    make(&pages)?;
    for (words, command) in with_those_below(&built(command.clone()), "") {
        let name = words.replace(' ', "-");
        let mut page = Vec::new();
        let man = clap_mangen::Man::new(command.display_name(&name));
        man.render(&mut page)
            .map_err(|error| failed(&pages, &error))?;
        write(&pages.join(format!("{name}.1")), &page)?;
    }
    let completions = args.directory.join("completions");
    make(&completions)?;
    for (shell, name) in SHELLS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), "ashlar", &mut script);
        write(&completions.join(name), &script)?;
    }
    write(
        &args.directory.join("cli.md"),
        reference(command).as_bytes(),
    )?;
    let site_file = site::reference::reference();
    write(&args.directory.join("site-file.md"), site_file.as_bytes())
}

fn make(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))
}

fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    fs::write(file, content).map_err(|error| failed(file, &error))
}

fn failed(file: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("can't write {}: {error}", file.display()))
}

/// The command with everything that is added to it when arguments are read, such as `--help`, and
/// with the width that does not depend on a terminal.
fn built(command: Command) -> Command {
    let mut command = command.term_width(crate::HELP_WIDTH);
    command.build();
    command
}

/// A command and all below it, each with its words. Hidden ones and `help` are left out.
fn with_those_below(command: &Command, words: &str) -> Vec<(String, Command)> {
    let words = format!("{words} {}", command.get_name()).trim().to_owned();
    let below = command.get_subcommands();
    let below = below.filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let below: Vec<_> = below
        .flat_map(|one| with_those_below(one, &words))
        .collect();
    [(words, command.clone())]
        .into_iter()
        .chain(below)
        .collect()
}

/// The reference of all commands, as Markdown.
fn reference(command: Command) -> String {
    let mut text = String::from(
        "# Commands\n\n\
         This page is for everybody who types or scripts `ashlar`. It lists every command with its help,\n\
         as `ashlar COMMAND --help` prints it. [Exit codes](exit-codes.md) have a page of their own.\n\n\
         `make docs` writes this page. A test compares it with the program.\n",
    );
    for (words, mut command) in with_those_below(&built(command), "") {
        let level = "#".repeat((words.split(' ').count() + 1).min(4));
        let help = command.render_long_help().to_string();
        let help = help
            .lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n");
        text += &format!("\n{level} {words}\n\n```text\n{}\n```\n", help.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_what_the_program_says() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
        let kept = fs::read_to_string(&file).unwrap_or_default();
        let made = reference(crate::command());
        let differing = kept
            .lines()
            .zip(made.lines())
            .find(|(kept, made)| kept != made);
        assert!(
            kept == made,
            "docs/reference/cli.md is old: run `make docs`; first difference: {differing:?}"
        );
    }

    #[test]
    fn help_fits_its_width() {
        let text = reference(crate::command());
        let wide = text
            .lines()
            .find(|line| line.chars().count() > crate::HELP_WIDTH);
        assert_eq!(wide, None);
    }

    #[test]
    fn each_command_has_a_page_and_shells_complete_it() {
        let directory = tempfile::tempdir().unwrap();
        let args = Args {
            directory: directory.path().to_owned(),
        };
        run(crate::command(), &args).unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        for (name, part) in [
            ("man/ashlar.1", "ashlar\\-volume(1)"),
            ("man/ashlar-volume-copy.1", "overwrite"),
            ("completions/ashlar", "host-group"),
            ("completions/_ashlar", "host-group"),
            ("completions/ashlar.fish", "host-group"),
            ("cli.md", "#### ashlar volume copy\n"),
        ] {
            assert!(read(name).contains(part), "{part:?} in {name}");
        }
    }
}
