//! Tests of the end of serving: which connections are waited for.

use super::*;
use axum::routing;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

/// Only a hang reaches it.
const FOR_EVER: Duration = Duration::from_secs(60);

/// What the handlers of the test wait for, and say.
#[derive(Debug, Default)]
struct Signals {
    begun: Notify,
    go_on: Notify,
}

/// `/held` is carried out until it may go on, and `/body` says what it was sent.
fn router(signals: &Arc<Signals>) -> Router {
    let (held, read) = (Arc::clone(signals), Arc::clone(signals));
    Router::new()
        .route(
            "/held",
            routing::post(move |_: String| async move {
                held.begun.notify_one();
                held.go_on.notified().await;
                "carried out"
            }),
        )
        .route(
            "/body",
            routing::post(move |request: Request| async move {
                read.begun.notify_one();
                // No handler of the API reads for so long, but a stop does not rely on that.
                axum::body::to_bytes(request.into_body(), 1000).await.ok();
                "read"
            }),
        )
        .route("/brief", routing::get(|| async { "brief" }))
}

async fn connect(at: SocketAddr, said: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(said.as_bytes()).await.unwrap();
    stream
}

/// All that comes until the server closes the connection; it may do so by a reset.
async fn rest(stream: &mut TcpStream, of: &str) -> String {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let read = tokio::time::timeout(FOR_EVER, read).await;
    drop(read.unwrap_or_else(|_| panic!("{of} stays open")));
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn only_a_request_that_is_carried_out_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let signals = Arc::new(Signals::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let router = router(&signals);
    let served = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        serve(&ApiListener::Tcp(listener), router, stopped).await;
    });
    let head = |what: &str| format!("{what} HTTP/1.1\r\nHost: localhost\r\n");
    let mut half_head = connect(at, &head("GET /brief")).await;
    let body = format!("{}Content-Length: 9\r\n\r\nha", head("POST /body"));
    let mut half_body = connect(at, &body).await;
    signals.begun.notified().await;
    let mut idle = connect(at, &format!("{}\r\n", head("GET /brief"))).await;
    let mut answer = vec![0; 15];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 200 OK");
    // Its body is there as a whole.
    let held = format!("{}Content-Length: 4\r\n\r\nbody", head("POST /held"));
    let mut held = connect(at, &held).await;
    signals.begun.notified().await;
    stop.send(()).unwrap();

    assert_eq!(rest(&mut half_head, "half a head").await, "");
    assert_eq!(
        rest(&mut half_body, "half a body").await,
        "",
        "nothing was done"
    );
    assert!(
        rest(&mut idle, "an idle connection")
            .await
            .ends_with("brief")
    );
    assert!(!served.is_finished(), "a request is under way");
    signals.go_on.notify_one();
    let answer = rest(&mut held, "what is carried out").await;
    assert!(answer.ends_with("carried out"), "{answer}");
    let ended = tokio::time::timeout(FOR_EVER, served).await;
    ended.expect("a hang").unwrap();
}
