//! The report as one self-contained HTML file.

mod charts;
mod kpis;

pub use charts::{over_time, vm_charts};
pub use kpis::{LimitColumn, kpi_table};

use super::page::{escape, facts, page, put, table, tiles, verdict};
use super::table::{capitalised, millis, words};
use super::{MachineReport, Report, Verdict};

/// The report as a page.
pub fn html(report: &Report) -> String {
    let title = format!("Ashlar load: {}", report.profile);
    let mut body = format!("<h1>{}</h1>\n", escape(&title));
    body.push_str(&verdict(
        report.verdict == Verdict::Pass,
        &capitalised(words(report.verdict)),
    ));
    body.push_str(&head(report));
    body.push_str("<h2>VMs</h2>\n");
    body.push_str(&kpi_table(report, LimitColumn::Judged));
    body.push_str("<h2>Over time, all VMs</h2>\n");
    body.push_str(&over_time(report, &[]));
    body.push_str(&vm_charts(report, "h2"));
    body.push_str(&details(report));
    page(&title, "", &body)
}

fn head(report: &Report) -> String {
    let mut told = Vec::new();
    if let Some(origin) = &report.origin {
        told.push(("Started", started(&origin.started_utc)));
        told.push(("Ashlar", escape(&origin.version)));
        told.push(("Load from", machine(&origin.machine)));
    }
    let warmup = match report.warmup_s > 0.0 {
        true => format!(" after {} s of warm-up", report.warmup_s),
        false => ", no warm-up".to_owned(),
    };
    told.push(("Measured", format!("{} s{warmup}", report.measured_s)));
    told.push(("Rates", format!("× {}", report.rate_scale)));
    told.push(("Seed", report.seed.to_string()));
    let filled = match report.filled {
        true => "written once before",
        false => "not written before",
    };
    told.push(("Disks", filled.to_owned()));
    facts(&told) + &figures(report)
}

/// A time for people.
fn started(utc: &str) -> String {
    let utc = escape(utc);
    let shown = utc.trim_end_matches('Z').replace('T', " ");
    format!("<time datetime=\"{utc}\">{shown} UTC</time>")
}

fn machine(machine: &MachineReport) -> String {
    let processors = match (machine.processors_usable, machine.processors) {
        (usable, all) if usable < all => format!("{usable} of {all} × "),
        (_, 0) => String::new(),
        (_, all) => format!("{all} × "),
    };
    let memory = match machine.memory_bytes {
        0 => String::new(),
        bytes => format!("{:.1} GiB RAM", bytes as f64 / f64::from(1u32 << 30)),
    };
    let processor = format!("{processors}{}", machine.processor);
    let parts = [&machine.host_name, &processor, &memory, &machine.kernel];
    let told: Vec<String> = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| escape(part))
        .collect();
    told.join(" · ")
}

/// The figures that matter most.
fn figures(report: &Report) -> String {
    let total = &report.total;
    let operations = total.reads_per_s + total.writes_per_s;
    let mut all = vec![
        (format!("{operations:.0}"), "operations/s".to_owned()),
        (format!("{:.1}", total.megabytes_per_s), "MB/s".to_owned()),
    ];
    for (kind, label) in [
        (&total.read, "mean read, ms"),
        (&total.write, "mean write, ms"),
    ] {
        if kind.response.count > 0 {
            all.push((millis(kind.response.mean_ms), label.to_owned()));
        }
    }
    for limit in &total.limits {
        let label = format!("{}, ms (< {})", limit.kpi, limit.limit_ms);
        all.push((millis(limit.value_ms), label));
    }
    let queue = format!("{:.1}", total.queue_length);
    all.push((queue, "mean queue length".to_owned()));
    tiles(&all)
}

/// What each VM ran on, and how it went.
fn details(report: &Report) -> String {
    let mut rows = String::new();
    let lines = |all: &[String]| {
        let escaped: Vec<String> = all.iter().map(|line| escape(line)).collect();
        escaped.join("<br/>")
    };
    for vm in &report.vms {
        let disks: Vec<String> = vm
            .disk_bytes
            .iter()
            .map(|bytes| (bytes >> 20).to_string())
            .collect();
        let errors = match vm.failed == 0 && !vm.lost {
            true => "none".to_owned(),
            false => format!("{} failed<br/>{}", vm.failed, lines(&vm.failures)),
        };
        put(
            &mut rows,
            format_args!(
                "<tr><th>{}</th><td class=\"text\">{}</td><td class=\"text url\">{}</td><td>{}</td>\
                 <td>{}</td><td>{:.2}</td><td>{}</td><td class=\"text\">{errors}</td></tr>\n",
                escape(&vm.name),
                escape(&vm.role),
                lines(&vm.targets),
                disks.join(" + "),
                vm.offered_per_s
                    .map_or("–".into(), |rate| format!("{rate:.1}")),
                vm.queue_length_by_littles_law,
                millis(vm.lateness.p99_ms),
            ),
        );
    }
    let head = "<tr><th>VM</th><th class=\"text\">role</th><th class=\"text\">targets</th>\
                <th>disks, MiB</th><th>due, IO/s</th><th>queue (Little)</th>\
                <th>issued late, p99, ms</th><th class=\"text\">errors</th></tr>";
    format!("<h2>Targets</h2>\n{}", table("Targets", head, &rows))
}
