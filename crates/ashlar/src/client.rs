//! Requests to the API of a running array.

use crate::api_address;
use crate::failure::Failure;
use crate::unix_socket::UnixConnector;
use api::{Problem, ProblemKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use site::ApiAddress;
use std::time::Duration;
use ureq::http::Response;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body};

/// A thick volume is zeroed before the answer comes.
const ANSWER_MAX: Duration = Duration::from_secs(3600);
/// Nothing is changed for what is only shown.
const SHOWN_MAX: Duration = Duration::from_secs(30);
/// The longest answer that is read. Figures of all volumes of a large array are some 10 MB.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// What the paths of trials begin with. A trial changes nothing.
const TRIALS: &str = "check";

/// A running array, by its API.
pub struct Client {
    agent: Agent,
    /// What URLs begin with.
    base: String,
    api: ApiAddress,
}

impl Client {
    /// The array at `api`, else at the environment's `ASHLAR_API`, else in its usual place.
    ///
    /// # Errors
    /// It is no place where the API can be.
    pub fn new(api: Option<&str>) -> Result<Self, Failure> {
        let api = api_address::said(api)?.unwrap_or_else(api_address::to_ask);
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // The API is on this machine, whatever proxy others need.
            .proxy(None)
            .timeout_connect(Some(CONNECT_MAX))
            .timeout_global(Some(ANSWER_MAX))
            .build();
        let (agent, base) = match &api {
            ApiAddress::Tcp(_) => (config.into(), api.to_string()),
            ApiAddress::Unix(path) => {
                let connector = UnixConnector { path: path.clone() };
                let agent = Agent::with_parts(config, connector, DefaultResolver::default());
                (agent, "http://127.0.0.1".to_owned())
            }
        };
        Ok(Client { agent, base, api })
    }

    /// Gets a resource.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Failure> {
        self.find(path, &[])
    }

    /// Gets what fits `query`: keys and values.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn find<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, Failure> {
        let request = self.agent.get(&self.url(path)).config();
        let request = request.timeout_global(Some(SHOWN_MAX)).build();
        self.answer(request.query_pairs(query.iter().copied()).call())
    }

    /// Deletes a resource, with an answer that tells of it.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn remove<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, Failure> {
        let request = self.agent.delete(&self.url(path));
        self.answer(request.query_pairs(query.iter().copied()).call())
    }

    /// Creates a resource.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let url = self.url(path);
        self.answer(self.agent.post(&url).send_json(body))
    }

    /// Puts a resource in a state.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn put<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let url = self.url(path);
        self.answer(self.agent.put(&url).send_json(body))
    }

    /// Puts a resource in a state that has no answer but success.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn put_only(&self, path: &[&str], body: &impl Serialize) -> Result<(), Failure> {
        let url = self.url(path);
        self.accept(self.agent.put(&url).send_json(body)).map(drop)
    }

    /// Changes a resource.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn patch<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let url = self.url(path);
        self.answer(self.agent.patch(&url).send_json(body))
    }

    /// Asks whether a resource could be deleted.
    ///
    /// # Errors
    /// The array can't be reached, would refuse, or knows no such trial.
    pub fn try_delete(&self, path: &[&str], query: &[(&str, &str)]) -> Result<(), Failure> {
        let path = trial_of(path);
        let request = self.agent.delete(&self.url(&path));
        let answer = request.query_pairs(query.iter().copied()).call();
        self.tried("delete", &path, answer)
    }

    /// Asks whether something could be done.
    ///
    /// # Errors
    /// The array can't be reached, would refuse, or knows no such trial.
    pub fn try_post(&self, path: &[&str], body: &impl Serialize) -> Result<(), Failure> {
        let path = trial_of(path);
        let answer = self.agent.post(&self.url(&path)).send_json(body);
        self.tried("post", &path, answer)
    }

    /// Asks whether a resource could be changed.
    ///
    /// # Errors
    /// The array can't be reached, would refuse, or knows no such trial.
    pub fn try_patch(&self, path: &[&str], body: &impl Serialize) -> Result<(), Failure> {
        let path = trial_of(path);
        let answer = self.agent.patch(&self.url(&path)).send_json(body);
        self.tried("patch", &path, answer)
    }

    /// What came of a trial. An array that does not know it answers as if the thing were missing.
    fn tried(
        &self,
        method: &str,
        path: &[&str],
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<(), Failure> {
        let is_none = |kind| matches!(kind, ProblemKind::NotFound | ProblemKind::MethodNotAllowed);
        match self.accept(answer) {
            Ok(_) => Ok(()),
            Err(Failure::Refused(problem))
                if is_none(problem.kind) && !self.describes(method, path)? =>
            {
                Err(Failure::Failed(format!(
                    "nothing is changed: the array at {} runs an older version of Ashlar, which \
                     can't check beforehand whether this is possible; restart it with this \
                     version, or give --yes",
                    self.api
                )))
            }
            Err(other) => Err(other),
        }
    }

    /// Whether the array says of itself that it has such requests.
    fn describes(&self, method: &str, path: &[&str]) -> Result<bool, Failure> {
        let description: Value = self.get(&["openapi.json"])?;
        let paths = description["paths"].as_object();
        let mut of_method = paths
            .into_iter()
            .flatten()
            .filter(|(_, has)| has.get(method).is_some());
        Ok(of_method.any(|(template, _)| fits(template, path)))
    }

    /// Deletes a resource.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn delete(&self, path: &[&str]) -> Result<(), Failure> {
        let url = self.url(path);
        self.accept(self.agent.delete(&url).call()).map(drop)
    }

    /// Deletes what fits `query`: keys and values.
    ///
    /// # Errors
    /// The array can't be reached or refuses.
    pub fn delete_which(&self, path: &[&str], query: &[(&str, &str)]) -> Result<(), Failure> {
        let request = self.agent.delete(&self.url(path));
        let answer = request.query_pairs(query.iter().copied()).call();
        self.accept(answer).map(drop)
    }

    fn url(&self, path: &[&str]) -> String {
        let mut url = format!("{}/api/v1", self.base);
        for segment in path {
            url.push('/');
            url.push_str(&encoded(segment));
        }
        url
    }

    fn answer<T: DeserializeOwned>(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<T, Failure> {
        let mut body = self.accept(answer)?.into_body();
        let limited = body.with_config().limit(ANSWER_BYTES_MAX);
        limited
            .read_json()
            .map_err(|error| self.not_ashlar(&error.to_string()))
    }

    /// The answer, when it is a success.
    fn accept(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, Failure> {
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        match answer.body_mut().read_json::<Problem>() {
            Ok(problem) => Err(Failure::Refused(problem)),
            Err(_) => Err(self.not_ashlar(&status.to_string())),
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let api = &self.api;
        Failure::Unreachable(match error {
            ureq::Error::Timeout(ureq::Timeout::Global) => format!(
                "the array at {api} does not answer: look at the log of `ashlar serve`, and at the \
                 load of its machine"
            ),
            error => format!(
                "can't reach the array at {api}: {error}; is `ashlar serve` running, and is --api \
                 its address?"
            ),
        })
    }

    fn not_ashlar(&self, said: &str) -> Failure {
        Failure::Unreachable(format!(
            "what answers at {} is not an array of this version: {said}",
            self.api
        ))
    }
}

/// The path of the trial of what is at `path`.
fn trial_of<'a>(path: &[&'a str]) -> Vec<&'a str> {
    [&[TRIALS], path].concat()
}

/// Whether `path` is one of those that `template` describes, with names in braces.
fn fits(template: &str, path: &[&str]) -> bool {
    let Some(template) = template.strip_prefix("/api/v1/") else {
        return false;
    };
    let template: Vec<&str> = template.split('/').collect();
    let mut pairs = template.iter().zip(path);
    template.len() == path.len() && pairs.all(|(is, said)| is.starts_with('{') || is == said)
}

/// `segment` as one segment of a URL's path (RFC 3986 clause 2).
fn encoded(segment: &str) -> String {
    let mut url = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~' | b':');
        // A dot may stand in a name; a segment of dots alone would be a way up.
        if plain || (byte == b'.' && !segment.bytes().all(|b| b == b'.')) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_always_one_segment() {
        assert_eq!(
            encoded("iqn.2026-11.dev.ashlar:a_b"),
            "iqn.2026-11.dev.ashlar:a_b"
        );
        assert_eq!(encoded("a/b?c#d %"), "a%2Fb%3Fc%23d%20%25");
        assert_eq!(encoded(".."), "%2E%2E");
        assert_eq!(encoded("ä"), "%C3%A4");
    }

    #[test]
    fn a_path_fits_its_template_alone() {
        let template = "/api/v1/check/volumes/{name}";
        assert!(fits(template, &["check", "volumes", "v/0"]));
        for other in [
            &["volumes", "v0"][..],
            &["check", "pools", "v0"],
            &["check", "volumes", "v0", "restore"],
        ] {
            assert!(!fits(template, other), "{other:?}");
        }
    }

    #[test]
    fn an_array_is_reached_by_tcp_or_by_a_socket() {
        assert!(matches!(
            Client::new(Some("https://127.0.0.1")),
            Err(Failure::Wrong(_))
        ));
        let client = Client::new(Some("http://127.0.0.1:1/")).ok().unwrap();
        assert_eq!(
            client.url(&["volumes", "a"]),
            "http://127.0.0.1:1/api/v1/volumes/a"
        );
        let client = Client::new(Some("unix:/run/x.sock")).ok().unwrap();
        assert_eq!(client.url(&["jobs"]), "http://127.0.0.1/api/v1/jobs");
    }
}
