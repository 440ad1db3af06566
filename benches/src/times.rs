//! A histogram of latencies. Its size is constant, because the memory of the process is measured too.

/// The buckets per doubling of the time, and the doublings from one microsecond on.
const STEPS: usize = 64;
const DOUBLES: usize = 28;

/// Latencies in microseconds, with a relative error of about one percent.
pub struct Times {
    counts: Box<[u32]>,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            counts: vec![0; STEPS * DOUBLES].into(),
        }
    }
}

impl Times {
    pub fn add(&mut self, micros: f64) {
        let step = (micros.max(1.0).log2() * STEPS as f64) as usize;
        self.counts[step.min(STEPS * DOUBLES - 1)] += 1;
    }

    pub fn add_all(&mut self, others: &Self) {
        for (count, other) in self.counts.iter_mut().zip(&others.counts) {
            *count += other;
        }
    }

    pub fn count(&self) -> usize {
        self.counts.iter().map(|count| *count as usize).sum()
    }

    /// The quantile: the time that this share of the calls did not exceed.
    pub fn at(&self, share: f64) -> f64 {
        let mut left = (self.count() as f64 * share) as usize;
        for (step, count) in self.counts.iter().enumerate() {
            if left < *count as usize {
                return ((step as f64 + 0.5) / STEPS as f64).exp2();
            }
            left -= *count as usize;
        }
        0.0
    }
}
