//! Asks the user before a command destroys or changes something.

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
    /// Has somebody at the terminal type `word` before `what` is deleted, unless told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when something else is typed: it is kept.
    pub fn deletion(self, what: &str, word: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::Wrong(format!(
                "{what} is kept: there is no terminal to ask at; --yes deletes it"
            )));
        }
        match typed(&format!("Delete {what}"), word)? {
            true => Ok(()),
            false => Err(Failure::Failed(format!("{what} is kept"))),
        }
    }
}

impl Confirm {
    /// Has somebody at the terminal agree to a change, unless told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when nobody agrees: nothing is changed.
    pub fn change(self, what: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            let why = "nothing is changed: there is no terminal to ask at; --yes changes it";
            return Err(Failure::Wrong(why.to_owned()));
        }
        match typed(&format!("Change {what}"), "yes")? {
            true => Ok(()),
            false => Err(Failure::Failed("nothing is changed".to_owned())),
        }
    }
}

impl Confirm {
    /// Has somebody at the terminal agree to what `loss`, a line for each thing, says, unless
    /// told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when nobody agrees: nothing is changed.
    pub fn loss(self, loss: &str, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::Wrong(format!(
                "{loss}\nnothing is changed: there is no terminal to ask at; --yes does it"
            )));
        }
        eprintln!("{loss}");
        match typed(question, "yes")? {
            true => Ok(()),
            false => Err(Failure::Failed("nothing is changed".to_owned())),
        }
    }
}

impl Confirm {
    /// Whether nobody wants to be asked.
    pub fn is_given(self) -> bool {
        self.yes
    }

    /// Has somebody at the terminal agree that `held`, a line for each target, is overwritten,
    /// unless told not to ask.
    ///
    /// # Errors
    /// `Wrong` where there is no terminal, `Failed` when nobody agrees: nothing is written.
    pub fn overwriting(self, held: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::Wrong(format!(
                "{held}\nnothing is written: there is no terminal to ask at; --yes overwrites it"
            )));
        }
        eprintln!("{held}");
        match typed("Overwrite it", "yes")? {
            true => Ok(()),
            false => Err(Failure::Failed("nothing is written".to_owned())),
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
