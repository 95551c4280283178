//! RAID groups of pools: the options that give a new one distributed spares, and a line for people.

use api::Group;
use site::counted;

/// How a new group is wider than its stripes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SpreadArgs {
    /// Drives of a stripe, copies or parity included, in a group with distributed spares [default:
    /// the copies of levels 10 and 10x3]
    #[arg(long, value_name = "DRIVES", requires = "distributed_spares")]
    pub stripe_width: Option<u8>,
    /// Drives' worth of spare room, spread over all drives of the group
    ///
    /// The group has a multiple of --stripe-width drives and these more, 64 at most. Levels 10, 10x3,
    /// 5 and 6 can have distributed spares.
    #[arg(long, value_name = "DRIVES")]
    pub distributed_spares: Option<u8>,
}

/// A group for people.
pub fn line(group: &Group) -> String {
    let level = match group.level.as_str() {
        "simple" => "simple".to_owned(),
        level => format!("RAID {level}"),
    };
    let drives = group.drives.join(", ");
    if group.role == "log" {
        let leaves = if group.leaving { "; it leaves" } else { "" };
        return format!("{}: {level} of {drives}, for the logs{leaves}", group.index);
    }
    let left = match (group.zones_to_move, group.leaving) {
        (0, false) => String::new(),
        (left, true) => format!("; it leaves, {left} of them to be emptied first"),
        (left, false) => format!("; {left} of them of another level, to be emptied"),
    };
    format!(
        "{}: {level}{} of {drives}; {} of {} zones in use{left}{}",
        group.index,
        stripes(group),
        group.zones_in_use,
        group.zones,
        places(group)
    )
}

/// The stripes of a group with distributed spares.
fn stripes(group: &Group) -> String {
    match (group.stripe_width, group.distributed_spares) {
        (Some(width), Some(spares)) => format!(
            ", stripes of {width}, {},",
            counted(u64::from(spares), "distributed spare")
        ),
        _ => String::new(),
    }
}

/// How such a group stands while drives are out of use, and until they are back.
fn places(group: &Group) -> String {
    let away = counted(group.away_places, "place");
    match (group.distributed_spares, group.lost_places) {
        (None, _) => String::new(),
        (Some(_), 0) if group.away_places == 0 => String::new(),
        (Some(_), 0) => {
            format!("; all is redundant on distributed spares, {away} away from home")
        }
        (Some(_), lost) => format!("; {} lost, {away} away from home", counted(lost, "place")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(lost_places: u64, away_places: u64) -> Group {
        Group {
            index: 1,
            role: "data".to_owned(),
            level: "6".to_owned(),
            stripe_width: Some(4),
            distributed_spares: Some(1),
            lost_places,
            away_places,
            drives: ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(),
            zones: 9,
            zones_in_use: 3,
            zones_to_move: 0,
            leaving: false,
        }
    }

    #[test]
    fn a_group_with_distributed_spares_says_how_its_places_stand() {
        let whole =
            "1: RAID 6, stripes of 4, 1 distributed spare, of a, b, c, d, e; 3 of 9 zones in use";
        let with = |more: &str| format!("{whole}{more}");
        for (lost, away, said) in [
            (0, 0, ""),
            (2, 1, "; 2 places lost, 1 place away from home"),
            (
                0,
                3,
                "; all is redundant on distributed spares, 3 places away from home",
            ),
        ] {
            assert_eq!(line(&group(lost, away)), with(said));
        }
        let plain = Group {
            stripe_width: None,
            distributed_spares: None,
            ..group(2, 0)
        };
        assert_eq!(
            line(&plain),
            "1: RAID 6 of a, b, c, d, e; 3 of 9 zones in use"
        );
    }
}
