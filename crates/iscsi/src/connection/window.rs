//! The command window (RFC 7143 clause 4.2.2.1): CmdSN, ExpCmdSN, MaxCmdSN.
//!
//! Invariant: MaxCmdSN never goes back. A command that is delivered moves
//! ExpCmdSN up and closes one place; one that ends opens its place again.

/// Where a CmdSN stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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
    occupied: u32,
}

impl Window {
    pub(super) fn new(cmd_sn: u32, depth: u32) -> Window {
        Window {
            expected: cmd_sn,
            depth,
            occupied: 0,
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

    fn open(&self) -> u32 {
        self.depth - self.occupied
    }

    /// MaxCmdSN.
    pub(super) fn max(&self) -> u32 {
        self.expected.wrapping_add(self.open()).wrapping_sub(1)
    }

    pub(super) fn place(&self, cmd_sn: u32) -> Place {
        // Serial number arithmetic: how far ahead, modulo 2^32.
        match cmd_sn.wrapping_sub(self.expected) {
            ahead if ahead >= self.open() => Place::Outside,
            0 => Place::Next,
            _ => Place::Ahead,
        }
    }

    /// The command that was due is delivered.
    pub(super) fn advance(&mut self) {
        self.expected = self.expected.wrapping_add(1);
    }

    /// A delivered command takes a place until [`Window::vacate`].
    pub(super) fn occupy(&mut self) {
        assert!(
            self.occupied < self.depth,
            "more commands than places in the window"
        );
        self.occupied += 1;
    }

    pub(super) fn vacate(&mut self) {
        assert!(
            self.occupied > 0,
            "a place is vacated that was not occupied"
        );
        self.occupied -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_over_the_wrap() {
        let mut window = Window::new(u32::MAX, 3);
        assert_eq!(window.max(), 1);
        let places = [u32::MAX - 1, u32::MAX, 0, 1, 2].map(|cmd_sn| window.place(cmd_sn));
        use Place::{Ahead, Next, Outside};
        assert_eq!(places, [Outside, Next, Ahead, Ahead, Outside]);
        window.advance();
        assert_eq!((window.expected(), window.max()), (0, 2));
    }

    #[test]
    fn the_window_closes_with_commands_in_progress_and_its_end_never_goes_back() {
        let mut window = Window::new(10, 2);
        let mut max = window.max();
        for step in 0..40 {
            if window.place(window.expected()) == Place::Next {
                window.occupy();
                window.advance();
            } else if step % 3 == 0 {
                window.vacate();
            }
            assert!(window.max().wrapping_sub(max) < 2, "MaxCmdSN went back");
            max = window.max();
        }
        assert!(max > 11);
    }

    #[test]
    fn a_closed_window_takes_nothing() {
        let mut window = Window::new(10, 1);
        window.occupy();
        window.advance();
        assert_eq!(window.place(11), Place::Outside);
        assert_eq!(window.max(), 10);
    }
}
