//! Prints the list of all checks that `docs/reference/site-checks.md` has.

fn main() {
    print!("{}", rehearse::advice::table());
}
