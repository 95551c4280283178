//! Prints the table of `docs/internals/models.md`, section "Stations": simulated queues against
//! closed forms. Each figure of an open queue is of 3,000,000 jobs, each of the closed
//! network of 500,000 rounds, after the same seed.

use base::{Prng, Time};
use model::station::{Station, Window};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::time::Duration;

const SEED: u64 = 1;
const JOBS: u64 = 3_000_000;
const ROUNDS: u64 = 500_000;
/// Mean service of the open queues, seconds.
const SERVICE_S: f64 = 20e-6;

/// A queue, what is asked of it, what the closed form says and what came out.
pub type Row = (String, &'static str, f64, f64);

#[allow(dead_code, reason = "a test takes the table without the program")]
fn main() {
    print!("{}", tables(&rows()));
}

/// The table, in Markdown.
pub fn tables(rows: &[Row]) -> String {
    let mut text = String::from(
        "| queue | figure | closed form | simulated | error |\n|---|---|---|---|---|\n",
    );
    for (queue, figure, says, is) in rows {
        let error = (is / says - 1.0) * 100.0;
        let _ = writeln!(
            text,
            "| {queue} | {figure} | {says:.3} | {is:.3} | {error:+.1} % |"
        );
    }
    text
}

/// All figures.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for utilisation in [0.5, 0.8, 0.9] {
        let window = open(1, utilisation, |prng| exponential(prng, SERVICE_S));
        let name = format!("M/M/1, utilisation {utilisation}");
        let wait = utilisation * SERVICE_S / (1.0 - utilisation);
        of_open(&mut rows, name, &window, utilisation, wait);
        let window = open(1, utilisation, |_| SERVICE_S);
        let name = format!("M/D/1, utilisation {utilisation}");
        of_open(&mut rows, name, &window, utilisation, wait / 2.0);
    }
    for (servers, utilisation) in [(2, 0.8), (4, 0.5), (4, 0.8), (4, 0.9), (16, 0.8)] {
        let window = open(servers, utilisation, |prng| exponential(prng, SERVICE_S));
        let name = format!("M/M/{servers}, utilisation {utilisation}");
        let wait = erlang_c_wait_s(servers, utilisation);
        of_open(&mut rows, name, &window, utilisation, wait);
    }
    for population in [1, 2, 8, 32] {
        of_closed(&mut rows, population);
    }
    rows
}

fn of_open(rows: &mut Vec<Row>, name: String, window: &Window, utilisation: f64, wait_s: f64) {
    let waiting = utilisation * window.servers as f64 / SERVICE_S * wait_s;
    rows.push((
        name.clone(),
        "utilisation",
        utilisation,
        window.utilisation(),
    ));
    rows.push((
        name.clone(),
        "mean wait, µs",
        wait_s * 1e6,
        window.mean_wait_s() * 1e6,
    ));
    rows.push((name, "mean jobs waiting", waiting, window.mean_waiting()));
}

fn exponential(prng: &mut Prng, mean: f64) -> f64 {
    -(1.0 - prng.unit()).ln() * mean
}

fn duration(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9) as u64)
}

/// Poisson arrivals at `servers` equal ones until each is busy for so much of its time.
fn open(servers: usize, utilisation: f64, mut service_s: impl FnMut(&mut Prng) -> f64) -> Window {
    let mut arrivals = Prng::from_seed(SEED).stream("arrivals");
    let mut services = Prng::from_seed(SEED).stream("services");
    let (mut station, mut now_s) = (Station::new(servers), 0.0);
    let begin = station.snapshot(Time(0));
    for _ in 0..JOBS {
        now_s += exponential(&mut arrivals, SERVICE_S / (utilisation * servers as f64));
        let now = Time((now_s * 1e9) as u64);
        station.serve(now, duration(service_s(&mut services)));
    }
    let end = Time((now_s * 1e9) as u64);
    station.snapshot(end).since(&begin)
}

/// Mean wait of M/M/c: the chance that all are busy (Erlang C, by the recursion of Erlang B)
/// over what is left of the rate.
fn erlang_c_wait_s(servers: usize, utilisation: f64) -> f64 {
    let offered = utilisation * servers as f64;
    let blocked = (1..=servers).fold(1.0, |blocked, n| {
        offered * blocked / (n as f64 + offered * blocked)
    });
    let waits = blocked / (1.0 - utilisation * (1.0 - blocked));
    waits * SERVICE_S / (servers as f64 * (1.0 - utilisation))
}

/// Mean service at a controller and at a drive, and think time, seconds.
const NETWORK_S: [f64; 2] = [60e-6, 100e-6];
const THINK_S: f64 = 300e-6;

/// So many customers who think, go to one station, then to the other.
fn of_closed(rows: &mut Vec<Row>, population: u64) {
    let (rate, responses, utilisation) = mean_value_analysis(population);
    let is = closed(population);
    let name = format!("closed network, {population} customers");
    rows.push((
        name.clone(),
        "thousand rounds a second",
        rate / 1e3,
        is.0 / 1e3,
    ));
    for (station, figure) in [
        (0, "response of the first, µs"),
        (1, "response of the second, µs"),
    ] {
        rows.push((
            name.clone(),
            figure,
            responses[station] * 1e6,
            is.1[station] * 1e6,
        ));
    }
    rows.push((name, "utilisation of the second", utilisation, is.2));
}

/// Rounds a second, response of each station in seconds, utilisation of the second one: exact
/// (Reiser and Lavenberg 1980).
fn mean_value_analysis(population: u64) -> (f64, [f64; 2], f64) {
    let (mut present, mut rate, mut responses) = ([0.0; 2], 0.0, [0.0; 2]);
    for customers in 1..=population {
        for station in 0..2 {
            responses[station] = NETWORK_S[station] * (1.0 + present[station]);
        }
        rate = customers as f64 / (THINK_S + responses[0] + responses[1]);
        present = responses.map(|response| rate * response);
    }
    (rate, responses, rate * NETWORK_S[1])
}

/// The same three, simulated.
fn closed(population: u64) -> (f64, [f64; 2], f64) {
    let mut prng = Prng::from_seed(SEED).stream("network");
    let mut stations = [Station::new(1), Station::new(1)];
    let begin = stations.each_ref().map(|station| station.snapshot(Time(0)));
    // When a customer arrives next, and where: at a station, or back at the desk.
    let mut agenda: BinaryHeap<Reverse<(Time, u64, usize)>> = (0..population)
        .map(|customer| Reverse((Time(0), customer, 2)))
        .collect();
    let (mut rounds, mut end) = (0, Time(0));
    while let Some(Reverse((now, customer, place))) = agenda.pop() {
        if rounds == ROUNDS + population {
            break;
        }
        let (then, next) = match place {
            2 => {
                rounds += 1;
                (now + duration(exponential(&mut prng, THINK_S)), 0)
            }
            station => {
                let service = duration(exponential(&mut prng, NETWORK_S[station]));
                (stations[station].serve(now, service).end, station + 1)
            }
        };
        end = now;
        agenda.push(Reverse((then, customer, next)));
    }
    let windows = [0, 1].map(|n| stations[n].snapshot(end).since(&begin[n]));
    let responses = windows.map(|window| window.mean_wait_s() + window.mean_service_s());
    let rate = windows[1].begun as f64 / (end - Time(0)).as_secs_f64();
    (rate, responses, windows[1].utilisation())
}
