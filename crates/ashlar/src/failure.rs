//! Failures and their exit codes, for people and, with `--json`, for programs.

use api::{Problem, ProblemKind};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;

/// What the help says of them. Scripts rely on it.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line, a request or a site file is wrong; nothing was changed
  3  a limit failed or a rate missed its target (load); no mix meets the limits (plan);
     the site file and the array differ (site diff)
  4  the array can't be reached
  5  there is no such thing
  6  there is one already, or it is in use
  7  the array is not ok (status)

With --json, an error is one line of JSON on standard error: {\"kind\", \"message\", \"what\",
\"exit_code\"}. `kind` is a kind of the API (not_found, busy, ...), or failed, wrong, unreachable or
not_ok. `what` is the command, such as \"volume delete\". So are errors of load, rehearse and plan
with --json -. A success without an answer of the API is {\"done\"} on standard output.

Commands that destroy something ask first, unless --yes is given. Other commands never ask.";

/// A command that failed.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 1: the command failed, or somebody declined a question.
    Failed(String),
    /// Exit code 2: what the user gave is wrong.
    Wrong(String),
    /// Exit code 4: no array answers at the address.
    Unreachable(String),
    /// Exit code 7: what was asked is shown, and somebody has to look.
    Unwell(String),
    /// What the array said.
    Refused(Problem),
}

/// Who is told of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A person, who reads the message alone.
    People,
    /// Programs; with the words of the command.
    Program(String),
}

/// A failure as programs read it. Fields are only ever added.
#[derive(Debug, Serialize)]
struct FailureJson<'a> {
    /// What programs match on.
    kind: Kind,
    /// For people.
    message: &'a str,
    /// The command.
    what: &'a str,
    exit_code: u8,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Kind {
    Ours(&'static str),
    Refused(ProblemKind),
}

impl Failure {
    /// That there is no such thing, in the array's words; `list` is the command that lists those
    /// which are there.
    pub fn not_there(what: &str, list: &str) -> Self {
        Failure::Refused(Problem::not_there(what, list))
    }

    /// Says it on standard error and gives the exit code.
    pub fn report(self, reader: &Reader) -> ExitCode {
        let code = self.code();
        // Where nobody can be told, the code says it.
        let _ = io::stderr().write_all(self.told(reader).as_bytes());
        ExitCode::from(code)
    }

    fn told(&self, reader: &Reader) -> String {
        let (kind, message) = match self {
            Failure::Failed(message) => (Kind::Ours("failed"), message),
            Failure::Wrong(message) => (Kind::Ours("wrong"), message),
            Failure::Unreachable(message) => (Kind::Ours("unreachable"), message),
            Failure::Unwell(message) => (Kind::Ours("not_ok"), message),
            Failure::Refused(problem) => (Kind::Refused(problem.kind), &problem.message),
        };
        let Reader::Program(what) = reader else {
            let lines = message.lines();
            return lines.map(|line| format!("error: {line}\n")).collect();
        };
        let told = FailureJson {
            kind,
            message,
            what,
            exit_code: self.code(),
        };
        match serde_json::to_string(&told) {
            Ok(json) => json + "\n",
            Err(error) => format!("error: can't write JSON: {error}\n"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_lines_and_programs_get_json() {
        let failure = Failure::Refused(Problem {
            kind: ProblemKind::NotFound,
            message: "there is no volume \"x\"\nlook again".to_owned(),
        });
        assert_eq!(
            failure.told(&Reader::People),
            "error: there is no volume \"x\"\nerror: look again\n"
        );
        let told = failure.told(&Reader::Program("volume show".to_owned()));
        assert_eq!(
            told,
            "{\"kind\":\"not_found\",\"message\":\"there is no volume \\\"x\\\"\\nlook again\",\
             \"what\":\"volume show\",\"exit_code\":5}\n"
        );
        let failure = Failure::Unreachable("gone".to_owned());
        let told = failure.told(&Reader::Program(String::new()));
        assert!(told.contains("\"kind\":\"unreachable\""), "{told}");
        assert!(told.contains("\"exit_code\":4"), "{told}");
    }
}
