//! Failures and their exit codes.

use server::api::types::{Problem, ProblemKind};
use std::io::{self, Write};
use std::process::ExitCode;

/// What the help says of them. Scripts rely on it.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line, a request or a site file is wrong; nothing was changed
  3  a limit failed, or a rate missed its target (load); no mix is good enough (plan)
  4  the array can't be reached
  5  no such thing
  6  there is such a thing already, or it is in use
  7  the array is not ok (status)";

/// A command that failed.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 1.
    Failed(String),
    /// Exit code 2: what the user gave is wrong.
    Wrong(String),
    /// Exit code 4.
    Unreachable(String),
    /// Exit code 7: what was asked is shown, and somebody has to look.
    Unwell(String),
    /// What the array said.
    Refused(Problem),
}

impl Failure {
    /// Says it on standard error and gives the exit code.
    pub fn report(self) -> ExitCode {
        let code = self.code();
        let message = match self {
            Failure::Failed(message)
            | Failure::Wrong(message)
            | Failure::Unreachable(message)
            | Failure::Unwell(message) => message,
            Failure::Refused(problem) => problem.message,
        };
        for line in message.lines() {
            // Where nobody can be told, the code says it.
            let _ = writeln!(io::stderr(), "error: {line}");
        }
        ExitCode::from(code)
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => 1,
            Failure::Wrong(_) => 2,
            Failure::Unreachable(_) => 4,
            Failure::Unwell(_) => 7,
            Failure::Refused(problem) => match problem.kind {
                ProblemKind::Invalid | ProblemKind::TooLarge | ProblemKind::MediaType => 2,
                ProblemKind::NotFound => 5,
                ProblemKind::Exists | ProblemKind::Busy => 6,
                ProblemKind::Forbidden
                | ProblemKind::MethodNotAllowed
                | ProblemKind::Full
                | ProblemKind::Unavailable
                | ProblemKind::Overdue
                | ProblemKind::Internal => 1,
            },
        }
    }
}
