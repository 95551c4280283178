//! Asks the user before a command destroys or changes something.

use crate::client::Client;
use crate::failure::Failure;
use std::io::{self, IsTerminal, Write};

/// The option `--yes` of commands that destroy or change something, and the questions without it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Confirm {
    /// Do not ask; required without a terminal, as in a script
    #[arg(long)]
    yes: bool,
}

impl Confirm {
    /// Whether nobody wants to be asked.
    pub fn is_given(self) -> bool {
        self.yes
    }

    /// Has somebody at the terminal type `word` before `what` is deleted, unless told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when something else is typed: it is kept.
    pub fn deletion(self, what: &str, word: &str) -> Result<(), Failure> {
        let kept = format!("{what} is kept");
        self.ask(
            None,
            (&format!("Delete {what}"), word),
            (&kept, "deletes it"),
        )
    }

    /// As [`Confirm::deletion`], of what is at a path of the API: nobody is asked where the array
    /// says that it can't be deleted.
    ///
    /// # Errors
    /// As there, and what the array says.
    pub fn deletion_at(
        self,
        client: &Client,
        (path, query): (&[&str], &[(&str, &str)]),
        (what, word): (&str, &str),
    ) -> Result<(), Failure> {
        if !self.yes {
            client.try_delete(path, query)?;
        }
        self.deletion(what, word)
    }

    /// Has somebody at the terminal agree to a change, unless told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when nobody agrees: nothing is changed.
    pub fn change(self, what: &str) -> Result<(), Failure> {
        let question = format!("Change {what}");
        self.ask(
            None,
            (&question, "yes"),
            ("nothing is changed", "changes it"),
        )
    }

    /// Has somebody at the terminal agree to what `loss`, a line for each thing, says, unless
    /// told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when nobody agrees: nothing is changed.
    pub fn loss(self, loss: &str, question: &str) -> Result<(), Failure> {
        let answers = ("nothing is changed", "does it");
        self.ask(Some(loss), (question, "yes"), answers)
    }

    /// Has somebody at the terminal agree that `held`, a line for each target, is overwritten,
    /// unless told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when nobody agrees: nothing is written.
    pub fn overwriting(self, held: &str) -> Result<(), Failure> {
        let answers = ("nothing is written", "overwrites it");
        self.ask(Some(held), ("Overwrite it", "yes"), answers)
    }

    /// Shows `first`, and has somebody type `word` to the question. `kept` says what becomes of it
    /// otherwise, `does` what --yes does.
    fn ask(
        self,
        first: Option<&str>,
        (question, word): (&str, &str),
        (kept, does): (&str, &str),
    ) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let first = first.map(|first| format!("{first}\n")).unwrap_or_default();
        if !io::stdin().is_terminal() {
            return Err(Failure::Wrong(format!(
                "{first}{kept}: there is no terminal to ask at; --yes {does}"
            )));
        }
        eprint!("{first}");
        match typed(question, word)? {
            true => Ok(()),
            false => Err(Failure::Failed(kept.to_owned())),
        }
    }
}

/// Whether somebody at the terminal types `word` when asked to.
pub fn typed(question: &str, word: &str) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("can't ask: {error}"));
    eprint!("{question}? Type {word}: ");
    io::stderr().flush().map_err(failed)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(answer.trim() == word)
}
