//! Operations of the whole board: readiness, status, drain, shutdown, and the end of a view.

use pegboard::{Kind, State, ToolCall, View, config::Start};

use crate::{
    lifecycle::stage::{Stage, for_each_case, said, until},
    support::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn status_has_a_row_for_each_live_server_with_its_view_and_its_calls() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let rows = stage.rows();
        let views: Vec<_> = rows.iter().map(|row| row.view.as_deref()).collect();
        match stage.has_own_servers() {
            true => assert_eq!(views, [Some("agent"), Some("other")]),
            false => assert_eq!(views, [None]),
        }
        assert_eq!((rows[0].state, rows[0].in_flight, rows[0].tools), (State::Ready, 1, 2));
        assert!(rows[0].calls.total > 0);
        assert!(rows.iter().all(|row| row.pid.is_some() || row.pool.is_some()));
        let status = stage.board.status();
        assert!(status.healthy && status.warnings.is_empty());
        stage.finish_call(call).await;
        stage.end(&[]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_for_the_calls_of_every_view_and_lets_no_more_in() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        assert!(!stage.board.drain(secs(0)).await, "a call is in flight");
        for view in stage.views() {
            assert_outcome(&view.call(ToolCall::new("fx.hello")).await, Kind::Unavailable, false);
        }
        let board = stage.board.clone();
        let draining = tokio::spawn(async move { board.drain(PATIENCE).await });
        stage.finish_call(call).await;
        assert!(draining.await.unwrap());
        stage.board.shutdown().await;
        stage.assert_events(&[State::Closed]);
        assert_eq!(stage.processes(), [0; 0]);
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_returns_when_the_processes_of_every_view_are_gone() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        // One view is dropped and not closed: shutdown waits for its processes too.
        let Stage {
            board, agent, other, ..
        } = &stage;
        let gone = board.toolset_with(View::new().name("gone"));
        assert_eq!(said(&gone.call(ToolCall::new("fx.hello")).await), "hi");
        drop(gone);
        board.shutdown().await;
        assert_eq!(stage.processes(), [0; 0]);
        let reply = call.await.unwrap();
        assert!(
            reply.is_error() && reply.outcome.may_have_executed(),
            "{}",
            reply.text()
        );
        for view in [agent, other, &board.toolset()] {
            assert_outcome(&view.call(ToolCall::new("fx.hello")).await, Kind::Unavailable, false);
        }
        assert_eq!(stage.processes(), [0; 0]);
        assert!(stage.states().iter().all(|state| *state == State::Closed));
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_closes_takes_its_own_servers_along_and_no_others() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        stage.other.close().await;
        let rows = stage.rows();
        assert_eq!((rows.len(), rows[0].state), (1, State::Ready));
        stage.finish_call(call).await;
        let hello = stage.agent.call(ToolCall::new("fx.hello")).await;
        assert_eq!(said(&hello), "hi");
        stage.agent.close().await;
        if stage.has_own_servers() {
            assert_eq!(stage.processes(), [0; 0]);
            assert_eq!(stage.states(), [State::Idle]);
        }
        stage.board.shutdown().await;
    }
    for_each_case(case).await;
}

/// A board must become ready before its first view is opened, and stay ready after the last one is closed.
#[tokio::test(flavor = "multi_thread")]
async fn a_required_server_makes_the_board_ready_before_the_first_view_and_after_the_last() {
    async fn case(stage: Stage) {
        let mut required = stage.settings.clone();
        required.required = true;
        let board = boards([("fx", required.clone())]);
        if required.start == Start::Explicit {
            assert!(!board.status().ready, "nothing has connected it yet");
            board.connect(name("fx"), required.clone()).await.unwrap();
        }
        until("the board is ready", || board.status().ready).await;
        let view = board.toolset();
        assert_eq!(said(&view.call(ToolCall::new("fx.hello")).await), "hi");
        assert!(board.status().ready);
        let rows = board.status().servers;
        assert_eq!(rows.len(), 1, "the view has taken the spare over: {rows:?}");
        view.close().await;
        assert!(board.status().ready);
        let mut broken = stage.broken();
        broken.required = true;
        let not_ready = boards([("fx", broken)]);
        not_ready.settle(secs(5)).await;
        assert!(!not_ready.status().ready);
        // All required servers must have started, and only those.
        for (is_required, is_ready) in [(true, false), (false, true)] {
            let mut second = stage.broken();
            second.required = is_required;
            let two = boards([("fx", required.clone()), ("second", second)]);
            if required.start == Start::Explicit {
                two.connect(name("fx"), required.clone()).await.unwrap();
            }
            two.settle(secs(5)).await;
            let is_up = || two.status().servers.iter().any(|row| row.state == State::Ready);
            until("the server that works is ready", is_up).await;
            assert_eq!(two.status().ready, is_ready, "required: {is_required}");
            two.shutdown().await;
        }
        board.shutdown().await;
        not_ready.shutdown().await;
        stage.board.shutdown().await;
    }
    for_each_case(case).await;
}
