//! The possible steps in each state, and their weights.

use proptest::{
    prelude::*,
    sample::select,
    strategy::{BoxedStrategy, Union},
};
use proptest_state_machine::ReferenceStateMachine;

use crate::model::reference::{Board, Name, Place, Settings, Step, Tool};

const NAMES: [Name; 3] = ["a", "b", "c"];
/// The maximum number of open views.
const VIEWS: usize = 3;
/// The maximum number of calls in flight.
const CALLS: usize = 6;
/// The maximum duration of a sequence in milliseconds: after a minute the board begins to forget failures, which is not modelled.
const LASTS: u64 = 50_000;

/// The only step after a shutdown, or when a sequence has reached its duration.
const NOTHING: Step = Step::Wait { ms: 0 };

fn is_over(board: &Board) -> bool {
    board.closed || board.now >= LASTS
}

/// The steps of the model, for the test runner.
pub(crate) struct Steps;

impl ReferenceStateMachine for Steps {
    type State = Board;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Board> {
        Just(Board::default()).boxed()
    }

    fn transitions(board: &Board) -> BoxedStrategy<Step> {
        if is_over(board) {
            return Just(NOTHING).boxed();
        }
        let server = || select(NAMES.to_vec());
        let place = || prop_oneof![3 => Just(Place::Here), 1 => Just(Place::There)];
        let mut steps = vec![
            (
                6,
                (server(), settings())
                    .prop_map(|(name, to)| Step::Apply(name, to))
                    .boxed(),
            ),
            (2, server().prop_map(Step::ApplyWithout).boxed()),
            (1, server().prop_map(Step::ApplyMisconfigured).boxed()),
            (
                2,
                (server(), settings())
                    .prop_map(|(name, to)| Step::Connect(name, to))
                    .boxed(),
            ),
            (2, server().prop_map(Step::Disconnect).boxed()),
            (2, server().prop_map(Step::Enable).boxed()),
            (2, server().prop_map(Step::Disable).boxed()),
            (2, server().prop_map(Step::Reconnect).boxed()),
            (
                4,
                (server(), place()).prop_map(|(name, at)| Step::Crash(name, at)).boxed(),
            ),
            (
                2,
                (server(), place())
                    .prop_map(|(name, at)| Step::RefuseStarts(name, at))
                    .boxed(),
            ),
            (
                2,
                (server(), place())
                    .prop_map(|(name, at)| Step::AcceptStarts(name, at))
                    .boxed(),
            ),
            (4, select(vec![100, 3_000]).prop_map(|ms| Step::Wait { ms }).boxed()),
        ];
        if board.views.len() < VIEWS {
            steps.push((2, Just(Step::OpenView).boxed()));
        }
        if board.servers.len() > 1 && !board.closing && board.now > 1_000 {
            steps.push((1, Just(Step::Drain).boxed()));
        }
        if board.closing || board.now > 5_000 {
            steps.push((1, Just(Step::Shutdown).boxed()));
        }
        // Connects a server with the settings that it already has.
        let known: Vec<_> = board
            .servers
            .iter()
            .filter_map(|(name, server)| Some((*name, server.settings?)))
            .collect();
        if !known.is_empty() {
            steps.push((1, select(known).prop_map(|(name, to)| Step::Connect(name, to)).boxed()));
        }
        if !board.views.is_empty() {
            let view = || select(board.views.iter().copied().collect::<Vec<_>>());
            let tool = select(vec![
                Tool::Hello,
                Tool::Fails,
                Tool::Slow,
                Tool::Slow,
                Tool::Secret,
                Tool::Unknown,
            ]);
            let call = (view(), server(), tool).prop_map(|(view, name, tool)| Step::Call(view, name, tool));
            if board.in_flight.len() < CALLS {
                steps.push((16, call.boxed()));
            }
            steps.push((2, view().prop_map(Step::CloseView).boxed()));
            steps.push((3, view().prop_map(Step::List).boxed()));
        }
        if !board.in_flight.is_empty() {
            let calls: Vec<_> = board.in_flight.iter().map(|call| call.id).collect();
            steps.push((2, select(calls).prop_map(Step::Cancel).boxed()));
        }
        Union::new_weighted(steps).boxed()
    }

    fn apply(mut board: Board, step: &Step) -> Board {
        board.take(*step);
        board
    }

    fn preconditions(board: &Board, step: &Step) -> bool {
        let fits = match *step {
            NOTHING => return true,
            Step::OpenView => board.views.len() < VIEWS,
            Step::CloseView(view) | Step::List(view) => board.views.contains(&view),
            Step::Call(view, _, _) => board.views.contains(&view) && board.in_flight.len() < CALLS,
            Step::Cancel(id) => board.in_flight.iter().any(|call| call.id == id),
            Step::Wait { ms } => board.now + ms < LASTS,
            Step::Drain => !board.closing,
            _ => true,
        };
        fits && !is_over(board)
    }
}

prop_compose! {
    fn settings()(
        is_elsewhere in proptest::bool::weighted(0.3),
        per_view: bool,
        lazy: bool,
        required in proptest::bool::weighted(0.3),
        enabled in proptest::bool::weighted(0.8),
        denies in proptest::bool::weighted(0.3),
    ) -> Settings {
        let place = if is_elsewhere { Place::There } else { Place::Here };
        Settings { place, per_view, lazy, required, enabled, denies }
    }
}
