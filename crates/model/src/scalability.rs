//! The effect of added processors on throughput.
//!
//! With `n` processors, `σ` the share of the work that only one can do at a time, and `κ` what
//! each pair of them costs to agree, the work done in a second is `C(n)` times that of one:
//!
//! ```text
//! C(n) = n / (1 + σ (n - 1) + κ n (n - 1))
//! most at n = √((1 - σ) / κ)
//! ```
//!
//! That is Gunther's universal scalability law ("Guerrilla Capacity Planning", 2007); with κ = 0
//! it is Amdahl's (AFIPS 1967). σ and κ are of a program and have to be measured: none are
//! assumed. A service does no more than the processors let it, and no more than whatever else
//! limits it, its disks above all:
//!
//! ```text
//! throughput = min(one × C(n), limit)      use of the processors = throughput / (one × C(n))
//! ```

/// How a program scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalability {
    /// σ: contention, 0 to 1.
    pub contention: f64,
    /// κ: coherency, from 0.
    pub coherency: f64,
}

impl Scalability {
    /// Amdahl's law: contention without coherency.
    pub const fn amdahl(contention: f64) -> Scalability {
        Scalability {
            contention,
            coherency: 0.0,
        }
    }

    /// What `processors` do, in what one does.
    pub fn capacity(&self, processors: u32) -> f64 {
        let n = f64::from(processors);
        let others = n - 1.0;
        n / (1.0 + self.contention * others + self.coherency * n * others)
    }

    /// The number of processors that does the most; none where more always do more.
    pub fn peak(&self) -> Option<f64> {
        let square = (1.0 - self.contention) / self.coherency;
        (self.coherency > 0.0).then(|| square.sqrt())
    }
}

/// A service on processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// The law by which its rate grows with processors.
    pub scalability: Scalability,
    /// What it does on one processor, per second.
    pub one_processor: f64,
    /// What it can do at most for other reasons, per second.
    pub limit: f64,
}

impl Service {
    /// What it does on so many processors, per second, and their use, 0 to 1.
    pub fn on(&self, processors: u32) -> (f64, f64) {
        let processors = self.one_processor * self.scalability.capacity(processors);
        let throughput = processors.min(self.limit);
        let busy = if processors > 0.0 {
            throughput / processors
        } else {
            0.0
        };
        (throughput, busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(is: f64, should: f64) {
        assert!((is - should).abs() < 1e-9, "{is} is not {should}");
    }

    #[test]
    fn capacity_is_the_law_by_hand() {
        let linear = Scalability::amdahl(0.0);
        near(linear.capacity(1), 1.0);
        near(linear.capacity(8), 8.0);
        // Half of the work one at a time: never twice as much.
        near(Scalability::amdahl(0.5).capacity(4), 4.0 / 2.5);
        let shared = Scalability {
            contention: 0.1,
            coherency: 0.01,
        };
        near(shared.capacity(4), 4.0 / (1.0 + 0.3 + 0.12));
        near(shared.capacity(0), 0.0);
    }

    #[test]
    fn more_processors_than_the_peak_do_less() {
        let shared = Scalability {
            contention: 0.04,
            coherency: 0.015,
        };
        near(shared.peak().unwrap(), 8.0);
        assert!(shared.capacity(8) > shared.capacity(7) && shared.capacity(8) > shared.capacity(9));
        assert_eq!(Scalability::amdahl(0.04).peak(), None);
    }

    #[test]
    fn what_else_limits_a_service_leaves_added_processors_idle() {
        let service = Service {
            scalability: Scalability::amdahl(0.0),
            one_processor: 100.0,
            limit: 350.0,
        };
        assert_eq!(service.on(2), (200.0, 1.0));
        assert_eq!(service.on(4), (350.0, 0.875));
        assert_eq!(service.on(7), (350.0, 0.5));
    }
}
