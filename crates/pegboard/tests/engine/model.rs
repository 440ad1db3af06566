//! A board against a reference model: random sequences of steps by agents, operators, servers and the clock, on paused time with in-memory
//! servers.
//!
//! After each step the observable state of the board must equal that of the model. A failing sequence is shrunk and printed step by step.
//! `PEGBOARD_MODEL` sets the number of sequences, which are then random.

mod board_under_test;
mod reference;
mod steps;

use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestError, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::{
    model::{
        board_under_test::BoardUnderTest,
        reference::{Board, Place, Settings, Step, Tool},
        steps::Steps,
    },
    support::rng::number,
};

/// The default number of sequences. They are always the same.
const USUAL: u64 = 200;
/// The length of a sequence.
const LENGTH: std::ops::Range<usize> = 1..40;

#[test]
fn a_board_does_what_the_model_says() {
    let (cases, rng_seed) = match number("PEGBOARD_MODEL") {
        Some(cases) => (cases, RngSeed::Random),
        None => (USUAL, RngSeed::Fixed(17)),
    };
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed,
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    let sequences = Steps::sequential_strategy(LENGTH);
    let result = TestRunner::new(config.clone()).run(&sequences, |(board, steps, seen)| {
        BoardUnderTest::test_sequential(config.clone(), board, steps, seen);
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, (_, steps, _))) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("  {step:?}")).collect();
            panic!("{why}\nafter these steps:\n{}", steps.join("\n"));
        }
        Err(aborted) => panic!("{aborted}"),
    }
}

/// Sequences on which the board once differed from the model.
#[test]
fn sequences_that_once_failed_do_what_the_model_says() {
    let shared = Settings {
        place: Place::Here,
        per_view: false,
        lazy: false,
        required: false,
        enabled: true,
        denies: false,
    };
    let own = Settings {
        per_view: true,
        ..shared
    };
    let required = Settings { required: true, ..own };
    let disabled = Settings {
        enabled: false,
        ..shared
    };
    let sequences = [
        // When the call that outlived its view ended, the board started the spare of a required server.
        vec![
            Step::OpenView,
            Step::Apply("a", shared),
            Step::Call(1, "a", Tool::Slow),
            Step::Apply("b", own),
            Step::CloseView(1),
            Step::Apply("b", required),
            Step::Disable("a"),
        ],
        // The second `connect` started a server that its config disables.
        vec![Step::Connect("a", disabled), Step::Connect("a", disabled)],
    ];
    for steps in sequences {
        BoardUnderTest::test_sequential(Config::default(), Board::default(), steps, None);
    }
}
