//! [`Sampler`]: decides which traces are recorded.

use std::str::FromStr;

use pegboard_base::telemetry::{TraceContext, TraceId};

/// Which traces are recorded, as `OTEL_TRACES_SAMPLER` names them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Whether the decision of the client counts, if it sent one.
    follows_parent: bool,
    /// The traces whose ids have low bits below this are recorded, of 2^63.
    below: u64,
}

/// No sampler has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no sampler: use always_on, always_off, traceidratio, or one of them with `parentbased_` before it")]
pub struct UnknownSampler(pub String);

/// One more than the largest low bits.
const ALL: u64 = 1 << 63;

impl Default for Sampler {
    /// `parentbased_always_on`.
    fn default() -> Self {
        Self {
            follows_parent: true,
            below: ALL,
        }
    }
}

impl Sampler {
    /// The sampler of this name. `ratio` is for `traceidratio`.
    pub fn new(name: &str, ratio: f64) -> Result<Self, UnknownSampler> {
        let (follows_parent, kind) = match name.strip_prefix("parentbased_") {
            Some(kind) => (true, kind),
            None => (false, name),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of 2^63 need not be exact"
        )]
        let below = match kind {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => (ratio.clamp(0.0, 1.0) * ALL as f64) as u64,
            _ => return Err(UnknownSampler(name.to_owned())),
        };
        Ok(Self { follows_parent, below })
    }

    pub(crate) fn samples(self, trace: TraceId, parent: Option<&TraceContext>) -> bool {
        match parent {
            Some(parent) if self.follows_parent => parent.is_sampled(),
            _ => trace.low_bits() < self.below,
        }
    }
}

impl FromStr for Sampler {
    type Err = UnknownSampler;

    fn from_str(name: &str) -> Result<Self, UnknownSampler> {
        Self::new(name, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(sampler: Sampler) -> usize {
        (0..20_000).filter(|_| sampler.samples(TraceId::random(), None)).count()
    }

    #[test]
    fn a_ratio_is_that_of_the_traces_and_every_process_decides_alike() {
        let tenth = Sampler::new("traceidratio", 0.1).unwrap();
        assert!((1_600..2_400).contains(&share(tenth)));
        let trace = TraceId::random();
        assert_eq!(tenth.samples(trace, None), tenth.samples(trace, None));
        assert_eq!(share(Sampler::new("traceidratio", 1.0).unwrap()), 20_000);
        assert_eq!(share(Sampler::new("traceidratio", 0.0).unwrap()), 0);
        assert_eq!(share("always_off".parse().unwrap()), 0);
    }

    #[test]
    fn the_decision_of_the_client_counts_where_the_sampler_says_so() {
        let text = |flags| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
        let (on, off) = (
            TraceContext::parse(&text("01")).unwrap(),
            TraceContext::parse(&text("00")).unwrap(),
        );
        let decides = |name: &str, parent: &TraceContext| {
            let sampler: Sampler = name.parse().unwrap();
            sampler.samples(parent.trace, Some(parent))
        };
        assert!(decides("parentbased_always_off", &on));
        assert!(!decides("parentbased_always_on", &off));
        assert!(decides("always_on", &off));
        assert!(!decides("always_off", &on));
        assert!("jaeger_remote".parse::<Sampler>().is_err());
    }
}
