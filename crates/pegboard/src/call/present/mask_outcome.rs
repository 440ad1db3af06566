//! Masks an outcome: inline if it is short, on a blocking thread if it is long.

use std::sync::Arc;

use arc_swap::Guard;

use pegboard_base::deadline::Deadline;
use pegboard_mask::{Counts, LONG, Masker};
use pegboard_tools::outcome::{Failure, Kind, Outcome};

/// How one outcome is masked.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutcomeMasking {
    /// Whether invisible characters are removed first. One inside a secret would hide it from the masker.
    pub(super) sanitizes: bool,
    pub(super) deadline: Deadline,
}

impl OutcomeMasking {
    /// Masks `outcome`. If that takes longer than the deadline, the result is withheld: the outcome is `Lost`, with a failure that says so.
    pub(super) async fn mask(self, mut outcome: Outcome, masker: Guard<Arc<Masker>>) -> (Outcome, Counts) {
        if !outcome.is_longer_than(LONG) {
            let counts = self.mask_now(&mut outcome, &masker);
            return (outcome, counts);
        }
        // Boxed, because most outcomes are short and every call would pay for the space.
        Box::pin(self.mask_blocking(outcome, Guard::into_inner(masker))).await
    }

    fn mask_now(self, outcome: &mut Outcome, masker: &Masker) -> Counts {
        let mut counts = Counts::default();
        if outcome.is_raw() {
            self.mask_raw(outcome, masker, &mut counts);
            return counts;
        }
        if self.sanitizes {
            outcome.sanitize();
        }
        outcome.mask(masker, &mut counts);
        counts
    }

    /// Masks an unparsed result. One that cannot be parsed where that is necessary is withheld.
    fn mask_raw(self, outcome: &mut Outcome, masker: &Masker, counts: &mut Counts) {
        let is_failed = outcome.is_error();
        let (Outcome::Done(answer) | Outcome::ToolFailed(answer)) = &mut *outcome else {
            return;
        };
        let Some(raw) = &mut answer.raw else { return };
        if raw.mask(masker, self.sanitizes, counts).is_err() {
            let message =
                "the result came, but the secrets in it cannot be hidden because it cannot be read, so it is withheld";
            *outcome = Outcome::Lost(Failure::new(Kind::Internal, message).after_sending());
        } else if is_failed {
            // The text of an error is shown in the status of the server.
            answer.content = raw.content();
        }
    }

    async fn mask_blocking(self, mut outcome: Outcome, masker: Arc<Masker>) -> (Outcome, Counts) {
        let may_have_executed = outcome.may_have_executed();
        let masking = tokio::task::spawn_blocking(move || {
            let counts = self.mask_now(&mut outcome, &masker);
            (outcome, counts)
        });
        let failure = match self.deadline.run(masking).await {
            Ok(Ok(masked)) => return masked,
            Ok(Err(_)) => Failure::new(
                Kind::Internal,
                "the result came, but hiding the secrets in it failed, so it is withheld",
            )
            .hint("this is a bug in Pegboard: please report it"),
            Err(_) => Failure::new(
                Kind::Timeout,
                "the result came, but hiding the secrets in it took longer than the call may take, so it is withheld",
            )
            .hint("ask the tool for a smaller part of the result, or give the call more time"),
        };
        let failure = Failure {
            may_have_executed,
            ..failure
        };
        (Outcome::Lost(failure), Counts::default())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use super::*;
    use pegboard_base::secret::Secret;
    use pegboard_mask::{KnownSecrets, Masking, ServerMasker};
    use pegboard_tools::outcome::Answer;

    fn masker() -> ServerMasker {
        let known = KnownSecrets::default();
        known.learn([Secret::new("hunter2hunter2")]);
        ServerMasker::new(&Masking::default(), known)
    }

    fn long() -> Outcome {
        Outcome::Done(Answer::from_text("it is hunter2hunter2 \"a\\n\" ".repeat(LONG / 16)))
    }

    fn masking(limit: Duration) -> OutcomeMasking {
        OutcomeMasking {
            sanitizes: true,
            deadline: Deadline::within(limit),
        }
    }

    #[tokio::test]
    async fn other_tasks_run_while_a_long_result_is_masked() {
        let turns = Arc::new(AtomicUsize::new(0));
        let counting = turns.clone();
        let neighbour = tokio::spawn(async move {
            loop {
                counting.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let (outcome, counts) = masking(Duration::from_secs(60)).mask(long(), masker().current()).await;
        neighbour.abort();
        assert!(!outcome.text().contains("hunter2") && counts.total() > 1000);
        assert!(turns.load(Ordering::Relaxed) > 1, "the neighbour ran");
    }

    #[tokio::test]
    async fn a_result_that_is_not_masked_in_time_is_withheld() {
        let (outcome, _) = masking(Duration::ZERO).mask(long(), masker().current()).await;
        assert!(matches!(outcome, Outcome::Lost(_)));
        assert_eq!((outcome.kind(), outcome.may_have_executed()), (Kind::Timeout, true));
        assert!(outcome.text().contains("withheld"), "{}", outcome.text());
        assert!(!outcome.text().contains("hunter2"));
    }
}
