//! Tests of the array at a glance while a shard is held up.

use crate::api::{self, ApiListener, Patience};
use crate::bringup::{self, Options, Running};
use crate::shard::ShardState;
use ::array::control::SentWarnings;
use engine::pool::maintenance::fullness::Thresholds;
use site::ApiAddress;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// A pool on each of two shards.
const SITE: &str = r#"[site]
name = "test"
shards = 2
[api]
listen = "127.0.0.1:0"
[[portal]]
address = "127.0.0.1:0"
[[drive]]
name = "a"
file = "a.img"
size = "64 MiB"
[[drive]]
name = "b"
file = "b.img"
size = "64 MiB"
[[pool]]
name = "p0"
level = "simple"
drives = ["a"]
[[pool]]
name = "p1"
level = "simple"
drives = ["b"]
[[volume]]
name = "v1"
pool = "p1"
size = "8 MiB"
"#;

/// Far beyond what anything here takes.
const FOR_EVER: Duration = Duration::from_secs(120);

struct HeldArray {
    running: Running,
    api: std::net::SocketAddr,
    /// The shard goes on when this is dropped.
    hold: Option<mpsc::Sender<()>>,
    shard: usize,
    _stop: oneshot::Sender<()>,
    home: TempDir,
}

impl HeldArray {
    /// An array with an API that has little patience, and the shard of pool `p1` held up.
    async fn start() -> HeldArray {
        HeldArray::start_of(SITE, |of_p1| of_p1).await
    }

    /// The same of another site: holds up the shard that `choose` makes of that of the last pool.
    async fn start_of(text: &str, choose: fn(usize) -> usize) -> HeldArray {
        let home = tempfile::tempdir().unwrap();
        let options = Options {
            site: Some(site::parse("site.toml", text).unwrap()),
            data: home.path().join("data"),
            portal: None,
            api: Some(ApiAddress::Tcp(([127, 0, 0, 1], 0).into())),
            usual_api: None,
        };
        let running = bringup::bring_up(options).await.unwrap();
        let array = Arc::clone(running.array());
        let patience = Patience {
            look: Duration::from_millis(200),
            request: Duration::from_millis(400),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        tokio::spawn(api::serve(
            ApiListener::Tcp(listener),
            Arc::clone(&array),
            patience,
            stopped,
        ));
        let glance = array.glance(FOR_EVER).await.unwrap();
        // Pools are by name.
        let shard = choose(glance.pools.last().unwrap().0);
        let (hold, held) = mpsc::channel::<()>();
        let visit = move |_: Rc<ShardState>| async move {
            // Until whoever holds it is gone.
            let _ = held.recv();
        };
        array.shards()[shard].post(visit).unwrap();
        HeldArray {
            running,
            api,
            hold: Some(hold),
            shard,
            _stop: stop,
            home,
        }
    }

    /// Status and body of an answer.
    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let mut stream = TcpStream::connect(self.api).await.unwrap();
        let request = format!(
            "{method} /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer);
        tokio::time::timeout(FOR_EVER, read).await.unwrap().unwrap();
        let status = answer[9..12].parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    async fn end(mut self) {
        self.hold.take();
        self.running.stop().await.unwrap();
    }
}

/// The reasons of a health.
fn whys(status: &serde_json::Value) -> Vec<&str> {
    let whys = status["why"].as_array().unwrap();
    whys.iter().map(|why| why.as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_is_shown_while_a_shard_is_held_up() {
    let held = HeldArray::start().await;
    let silent = serde_json::json!([held.shard]);
    let (code, status) = held.ask("GET", "status", "").await;
    assert_eq!((code, &status["silent_shards"]), (200, &silent), "{status}");
    assert_eq!(
        (&status["pools"], &status["volumes"]),
        (&2.into(), &1.into())
    );
    assert_eq!(status["health"], "stopped", "it does not serve now");
    let shard = format!("shard {}", held.shard);
    let is_told = |why: &&str| why.starts_with(&shard) && why.contains("pool p1");
    assert!(whys(&status).iter().any(is_told), "{status}");

    let (code, pools) = held.ask("GET", "pools", "").await;
    assert_eq!((code, &pools[1]["name"]), (200, &"p1".into()), "{pools}");
    assert_eq!(pools[0]["health"], "ok");
    assert_eq!(pools[1]["silent_shards"], silent);
    let why = pools[1]["failure"].as_str().unwrap();
    assert!(why.contains(&format!("shard {}", held.shard)), "{why}");

    let (code, drive) = held.ask("GET", "drives/b", "").await;
    assert_eq!((code, &drive["silent_shards"]), (200, &silent), "{drive}");
    held.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_with_a_silent_shard_is_not_ok_even_if_no_pool_is_on_it() {
    let pool = SITE.find("[[pool]]\nname = \"p1\"").unwrap();
    let text = SITE[..pool].replace("simple", "10");
    let text = text.replace(r#"["a"]"#, r#"["a", "b"]"#);
    let held = HeldArray::start_of(&text, |of_p0| 1 - of_p0).await;
    let (code, status) = held.ask("GET", "status", "").await;
    assert_eq!((code, &status["health"]), (200, &"attention".into()));
    let shard = format!("shard {} does not answer", held.shard);
    let whys = whys(&status);
    assert!(whys.len() == 1 && whys[0].starts_with(&shard), "{status}");
    held.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_answered_while_a_shard_is_held_up() {
    let held = HeldArray::start().await;
    let shard = format!("shard {} does not answer", held.shard);
    let says = |answer: &serde_json::Value| answer["message"].as_str().unwrap().to_owned();

    let (code, answer) = held.ask("GET", "volumes", "").await;
    assert_eq!((code, &answer["kind"]), (504, &"overdue".into()));
    assert!(says(&answer).contains(&shard), "{answer}");
    assert!(!says(&answer).contains("may still"), "{answer}");

    let grow = r#"{"size_bytes": 16777216}"#;
    let (code, answer) = held.ask("PATCH", "volumes/v1", grow).await;
    assert_eq!(code, 504, "{answer}");
    assert!(says(&answer).contains(&shard), "{answer}");
    assert!(says(&answer).contains("may still"), "{answer}");
    held.end().await;
}

/// Waits until the file says something that `is_wanted`.
async fn file_says(file: &Path, is_wanted: impl Fn(&str) -> bool) {
    let waited = async {
        while !std::fs::read_to_string(file).is_ok_and(|text| is_wanted(&text)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(FOR_EVER, waited).await;
    assert!(waited.is_ok(), "{}", std::fs::read_to_string(file).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drive_that_fails_is_on_record_while_another_shard_is_held_up() {
    let drive = "[[drive]]\nname = \"c\"\nfile = \"c.img\"\nsize = \"64 MiB\"\n[[pool]]";
    let text = SITE.replacen("[[pool]]", drive, 1);
    let mirrored = "level = \"10\"\ndrives = [\"a\", \"c\"]";
    let text = text.replace("level = \"simple\"\ndrives = [\"a\"]", mirrored);
    let held = HeldArray::start_of(&text, |of_p1| of_p1).await;
    let array = held.running.array();
    let record = |name: &str| held.home.path().join("data").join(name);
    let roster = record("ashlar-roster.json");
    let before = std::fs::read_to_string(&roster).unwrap();
    assert!(before.contains("\"p1\"") && !before.contains("since_unix_s"));
    let visit = |state: Rc<ShardState>| async move {
        let pool = state.pool("p0").unwrap();
        pool.fail_drive("c").await.unwrap();
    };
    array.shards()[1 - held.shard].call(visit).await.unwrap();
    file_says(&roster, |text| text.contains("since_unix_s")).await;
    file_says(&record("ashlar-events.jsonl"), |text| text.contains("'c'")).await;
    // What the silent shard does not say stays on record.
    let now = std::fs::read_to_string(&roster).unwrap();
    assert!(now.contains("\"p1\""), "{now}");
    held.end().await;
}

/// A site of one pool in two lanes, with a thick volume.
fn two_lanes() -> String {
    let pool = SITE.find("[[pool]]\nname = \"p1\"").unwrap();
    let text = SITE[..pool].replace("64 MiB", "160 MiB");
    let text = text.replace("level = \"simple\"", "level = \"10\"\nlanes = 2");
    let text = text.replace(r#"["a"]"#, r#"["a", "b"]"#);
    let volume = "[[volume]]\nname = \"v\"\npool = \"p0\"\nsize = \"16 MiB\"\n\
                  provisioning = \"thick\"\n";
    format!("{text}{volume}")
}

#[tokio::test(flavor = "multi_thread")]
async fn initiators_of_a_silent_lane_are_warned_of_space_once_it_answers() {
    // Lane 0, which judges, answers.
    let held = HeldArray::start_of(&two_lanes(), |of_lane_0| 1 - of_lane_0).await;
    let array = held.running.array();
    let visit = |state: Rc<ShardState>| async move {
        let pool = state.pool("p0").unwrap();
        let warn_percent = 1;
        pool.set_thresholds(Thresholds {
            warn_percent,
            ..Thresholds::default()
        });
        while pool.fullness().warnings == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let judged = array.shards()[1 - held.shard].call(visit);
    tokio::time::timeout(FOR_EVER, judged)
        .await
        .unwrap()
        .unwrap();
    let mut told = SentWarnings::default();
    for _ in 0..2 {
        // The lane that answers has none, or has told of its own the first time.
        array.warn_initiators(&mut told).await.unwrap();
        assert_eq!(told.owed_to(held.shard), 1, "it is silent");
        assert_eq!(told.owed_to(1 - held.shard), 0, "it has answered");
    }
    assert_eq!(array.warn_initiators(&mut told).await.unwrap(), 0, "again");
    let mut held = held;
    held.hold.take();
    let array = Arc::clone(held.running.array());
    let warned = async {
        while told.owed_to(held.shard) > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            array.warn_initiators(&mut told).await.unwrap();
        }
    };
    tokio::time::timeout(FOR_EVER, warned).await.unwrap();
    drop(array);
    held.end().await;
}
