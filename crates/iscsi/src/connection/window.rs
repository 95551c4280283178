//! The command window (RFC 7143 clause 4.2.2.1): CmdSN, ExpCmdSN, MaxCmdSN.
//!
//! Invariants:
//! - MaxCmdSN never goes back, whatever the window is narrowed to: what was promised once may
//!   be used. A command that is delivered moves ExpCmdSN up and closes one place; one that ends
//!   opens its place again, as long as the window is not narrower by then.
//! - Commands in progress and places that are open are never more than the depth.

/// Where a CmdSN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CmdSnPlace {
    /// It is the one that is due.
    Next,
    /// In the window, after a gap.
    Ahead,
    /// Outside: to be ignored silently.
    Outside,
}

#[derive(Debug)]
pub(super) struct Window {
    expected: u32,
    depth: u32,
    /// How many may be in progress as it is now.
    width: u32,
    occupied: u32,
    /// How many more the peer has been promised.
    open: u32,
}

impl Window {
    pub(super) fn new(cmd_sn: u32, depth: u32) -> Window {
        Window {
            expected: cmd_sn,
            depth,
            width: depth,
            occupied: 0,
            open: depth,
        }
    }

    /// ExpCmdSN.
    pub(super) fn expected(&self) -> u32 {
        self.expected
    }

    /// Commands that hold a place.
    pub(super) fn occupied(&self) -> usize {
        self.occupied as usize
    }

    /// Opens the places that there are beside commands in progress.
    fn promise(&mut self) {
        self.open = self.open.max(self.width.saturating_sub(self.occupied));
    }

    /// MaxCmdSN, which the peer is about to hear.
    pub(super) fn announce(&mut self) -> u32 {
        self.promise();
        self.expected.wrapping_add(self.open).wrapping_sub(1)
    }

    pub(super) fn place(&self, cmd_sn: u32) -> CmdSnPlace {
        // Serial number arithmetic: how far ahead, modulo 2^32.
        match cmd_sn.wrapping_sub(self.expected) {
            ahead if ahead >= self.open => CmdSnPlace::Outside,
            0 => CmdSnPlace::Next,
            _ => CmdSnPlace::Ahead,
        }
    }

    /// Has `width` places from now on, at least one and at most the depth.
    pub(super) fn narrow(&mut self, width: u32) {
        self.width = width.clamp(1, self.depth);
    }

    /// The command that was due is delivered.
    pub(super) fn advance(&mut self) {
        assert!(self.open > 0, "a command came through a closed window");
        self.expected = self.expected.wrapping_add(1);
        self.open -= 1;
    }

    /// A delivered command takes a place until [`Window::vacate`].
    pub(super) fn occupy(&mut self) {
        self.occupied += 1;
        assert!(
            self.occupied + self.open <= self.depth,
            "more commands than places in the window"
        );
    }

    pub(super) fn vacate(&mut self) {
        assert!(
            self.occupied > 0,
            "a place is vacated that was not occupied"
        );
        self.occupied -= 1;
        self.promise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    #[test]
    fn places_are_counted_over_the_wrap() {
        let mut window = Window::new(u32::MAX, 3);
        assert_eq!(window.announce(), 1);
        let places = [u32::MAX - 1, u32::MAX, 0, 1, 2].map(|cmd_sn| window.place(cmd_sn));
        use CmdSnPlace::{Ahead, Next, Outside};
        assert_eq!(places, [Outside, Next, Ahead, Ahead, Outside]);
        window.advance();
        assert_eq!((window.expected(), window.announce()), (0, 2));
    }

    #[test]
    fn the_window_closes_with_commands_in_progress_and_its_end_never_goes_back() {
        let mut random = Prng::from_seed(18);
        let mut window = Window::new(u32::MAX - 20, 8);
        let (mut max, mut taken) = (window.announce(), 0);
        for _ in 0..5000 {
            match random.below(4) {
                0 if window.place(window.expected()) == CmdSnPlace::Next => {
                    window.advance();
                    taken += 1;
                    // Some are over at once.
                    if random.below(3) > 0 {
                        window.occupy();
                    }
                }
                1 if window.occupied() > 0 => window.vacate(),
                2 => window.narrow(random.below(10) as u32),
                _ => {
                    let next = window.announce();
                    assert!(next.wrapping_sub(max) < 1 << 31, "MaxCmdSN went back");
                    max = next;
                }
            }
        }
        assert!(taken > 500, "{taken} commands");
    }

    #[test]
    fn a_closed_window_takes_nothing() {
        let mut window = Window::new(10, 1);
        window.advance();
        window.occupy();
        assert_eq!(window.announce(), 10);
        assert_eq!(window.place(11), CmdSnPlace::Outside);
    }

    #[test]
    fn a_narrow_window_opens_no_place_before_others_have_ended() {
        let mut window = Window::new(0, 4);
        window.narrow(0);
        for _ in 0..4 {
            assert_eq!(window.announce(), 3, "promised before");
            window.advance();
            window.occupy();
        }
        for _ in 0..3 {
            window.vacate();
            assert_eq!((window.expected(), window.announce()), (4, 3));
        }
        window.vacate();
        assert_eq!(window.announce(), 4, "one is always let in");
        window.narrow(3);
        assert_eq!(window.announce(), 6);
    }
}
