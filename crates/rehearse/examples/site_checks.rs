//! Prints the list of all checks that `docs/SITE-CHECKS.md` has.

fn main() {
    print!("{}", rehearse::advice::table());
}
