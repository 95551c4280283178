//! Rules for the logs of pools: where they lie, and how large they may be.

use crate::diagnostic::Diagnostic;
use crate::plan::Plan;
use crate::read::{PoolRow, Rows};
use crate::references::{planned, push};
use crate::size::human;
use crate::table::Row;
use engine::pool::PoolErrorKind;
use engine::{GroupRole, Level};

/// A group, as the rules of roles see it.
struct Group {
    level: Level,
    role: GroupRole,
    line: usize,
}

/// Checks the logs of pools whose drives have names.
pub(crate) fn check(rows: &Rows, found: &mut Vec<Diagnostic>) {
    for pool in &rows.pools {
        let item = &pool.item;
        // What a level is taken for that could not be read says nothing.
        let is_read = pool.line("level").is_some() || pool.has("groups");
        if !is_read || pool.has("groups") {
            continue;
        }
        let before = found.len();
        let first = item.pool.groups.first().map(|first| Group {
            level: first.level,
            role: first.role,
            line: pool.header_line(),
        });
        let more = item.more.iter().map(|row| Group {
            level: row.item.level,
            role: row.item.role,
            line: row.line("role").unwrap_or(row.header_line()),
        });
        let groups: Vec<Group> = first.into_iter().chain(more).collect();
        roles(&groups, "pool.group.role", found);
        if found.len() == before {
            room(rows, pool, found);
        }
    }
}

/// Checks the roles of groups out of lots.
pub(crate) fn check_plan(plan: &Plan, lines: &[Vec<usize>], found: &mut Vec<Diagnostic>) {
    for (pool, lines) in plan.pools.iter().zip(lines) {
        let is_of_lots = |from: &str| {
            let mut lots = plan.lots.iter();
            lots.any(|lot| lot.name == from && lot.names.is_empty())
        };
        // Of drives by their names, `check` has said it.
        if !pool.groups.iter().any(|groups| is_of_lots(&groups.from)) {
            continue;
        }
        let groups = pool.groups.iter().zip(lines).flat_map(|(groups, line)| {
            (0..groups.count).map(|_| Group {
                level: groups.level,
                role: groups.role,
                line: *line,
            })
        });
        roles(&groups.collect::<Vec<_>>(), "pool.groups.role", found);
    }
}

/// That one group at most carries the logs, and protects them as well as every other group
/// protects data.
fn roles(groups: &[Group], key: &str, found: &mut Vec<Diagnostic>) {
    let (logs, data): (Vec<&Group>, Vec<&Group>) = groups
        .iter()
        .partition(|group| group.role == GroupRole::Log);
    let Some(log) = logs.first() else { return };
    if let Some(second) = logs.get(1) {
        let what = format!("\"log\", as on line {}", log.line);
        let allowed = "one group of role \"log\" in a pool".to_owned();
        return push(found, second.line, key, what, allowed);
    }
    let strongest = data.iter().map(|group| group.level);
    let strongest = strongest.max_by_key(|level| level.redundancy());
    let Some(strongest) = strongest else {
        let allowed = "a group of role \"data\", too: a log group holds none".to_owned();
        return push(found, log.line, key, "\"log\" alone".to_owned(), allowed);
    };
    let fits = |level: &Level| level.carries_logs_beside(strongest);
    if !fits(&log.level) {
        let fitting = Level::ALL.into_iter().filter(fits);
        let fitting: Vec<String> = fitting.map(|level| format!("\"{level}\"")).collect();
        let what = format!("\"log\" of level \"{}\"", log.level);
        let allowed = format!(
            "level {}, beside a group of level \"{strongest}\": all acknowledged writes are lost with the log",
            fitting.join(" or ")
        );
        push(found, log.line, key, what, allowed);
    }
}

/// That there is room for the log on the drives, where the file says how large they are.
fn room(rows: &Rows, pool: &Row<PoolRow>, found: &mut Vec<Diagnostic>) {
    let Some(Err(error)) = planned(rows, pool, pool.item.pool.log_bytes) else {
        return;
    };
    // Without a wish it says what else is wrong, and so do other rules.
    let is_of_log =
        pool.item.pool.log_group().is_some() || matches!(planned(rows, pool, None), Some(Ok(_)));
    if error.kind != PoolErrorKind::TooSmall || !is_of_log {
        return;
    }
    let line = pool.line("log").unwrap_or(pool.header_line());
    let what = match pool.item.pool.log_bytes {
        Some(bytes) => format!("a log of {}", human(bytes)),
        None => "a log group".to_owned(),
    };
    push(
        found,
        line,
        "pool.log",
        what,
        format!("what fits on the drives: {}", error.context),
    );
}
