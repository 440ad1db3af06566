//! Operator commands for one server: enable, disable, connect, disconnect, reconnect, refresh.

use pegboard::{Kind, State, ToolCall, board::NotConnected};

use crate::{
    lifecycle::stage::{Stage, for_each_case, until},
    support::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn disable_revokes_a_server_in_every_view_at_once_and_enable_brings_it_back() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        assert!(stage.board.disable(&name("fx")).await);
        assert_eq!(stage.processes(), [0; 0]);
        assert_eq!(stage.states(), vec![State::Disabled; stage.instances()]);
        let reply = call.await.unwrap();
        assert!(
            reply.is_error() && reply.outcome.may_have_executed(),
            "{}",
            reply.text()
        );
        stage.assert_refuses(Kind::Unavailable).await;
        let later = stage.board.toolset().call(ToolCall::new("fx.hello")).await;
        assert_outcome(&later, Kind::Unavailable, false);
        assert!(stage.board.enable(&name("fx")).await);
        stage.assert_serves().await;
        assert!(stage.processes().iter().all(|pid| !before.contains(pid)));
        assert_eq!(stage.states(), vec![State::Ready; stage.instances()]);
        stage.end(&[State::Disabled, State::Connecting, State::Ready]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_lets_calls_end_and_takes_the_server_off_every_view() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        assert!(stage.board.disconnect(&name("fx")).await);
        stage.assert_refuses(Kind::UnknownTool).await;
        assert_eq!(stage.states(), []);
        let rows = stage.rows();
        assert_eq!(rows.len(), 1, "the one that still has a call: {rows:?}");
        assert!(rows[0].draining && rows[0].in_flight == 1);
        stage.finish_call(call).await;
        stage.gone(&before).await;
        until("it is off the books", || stage.rows().is_empty()).await;
        assert!(!stage.board.disconnect(&name("fx")).await);
        stage.board.connect(name("fx"), stage.settings.clone()).await.unwrap();
        assert_eq!(stage.states(), vec![State::Ready; stage.instances()]);
        stage.assert_serves().await;
        stage.end(&[State::Closed, State::Ready]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnect_starts_the_server_of_every_view_anew_at_once() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        assert!(stage.board.reconnect(&name("fx")).await);
        stage.gone(&before).await;
        let reply = call.await.unwrap();
        assert!(
            reply.is_error() && reply.outcome.may_have_executed(),
            "{}",
            reply.text()
        );
        stage.assert_serves().await;
        assert_eq!(stage.states(), vec![State::Ready; stage.instances()]);
        assert!(!stage.board.reconnect(&name("nobody")).await);
        stage.end(&[State::Connecting, State::Ready]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_says_why_a_server_cannot_be_reached_and_leaves_one_that_works() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        if stage.runs_alone() {
            let connecting = stage.connecting(stage.broken()).await;
            stage.finish_call(call).await;
            let refused = connecting.await.unwrap().unwrap_err();
            assert!(matches!(refused, NotConnected::Unreachable(_)), "{refused:?}");
            assert_contains(&refused.to_string(), &["fx", "/nonexistent/server"]);
            assert_eq!(stage.states(), [State::Down]);
        } else {
            let refused = stage.board.connect(name("fx"), stage.broken()).await.unwrap_err();
            assert!(matches!(refused, NotConnected::NotReplaced(_)), "{refused:?}");
            assert_contains(&refused.to_string(), &["fx", "/nonexistent/server"]);
            assert_eq!(stage.processes(), before);
            stage.finish_call(call).await;
            stage.assert_serves().await;
        }
        let refused = stage.board.connect(name("more"), stage.broken()).await.unwrap_err();
        assert!(matches!(refused, NotConnected::Unreachable(_)), "{refused:?}");
        assert!(!stage.board.status().healthy);
        assert!(stage.states().contains(&State::Down));
        stage.board.shutdown().await;
        let refused = stage.board.connect(name("late"), stage.settings.clone()).await;
        assert!(matches!(refused, Err(NotConnected::Closing)), "{refused:?}");
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_moves_a_server_and_lets_its_calls_end_where_they_are() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        if stage.runs_alone() {
            let connecting = stage.connecting(stage.moved()).await;
            assert_eq!(stage.processes(), before);
            stage.finish_call(call).await;
            connecting.await.unwrap().unwrap();
            assert_eq!(stage.states(), [State::Ready]);
        } else {
            stage.board.connect(name("fx"), stage.moved()).await.unwrap();
            assert_eq!(stage.states(), vec![State::Ready; stage.instances()]);
            stage.assert_serves().await;
            let now = stage.processes();
            assert!(now.iter().any(|pid| !before.contains(pid)));
            stage.finish_call(call).await;
        }
        stage.gone(&before).await;
        stage.assert_serves().await;
        stage.end(&[State::Ready]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refresh_lists_the_server_of_every_view_again() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.listings();
        assert!(stage.board.refresh(name("fx")));
        until("each is listed again", || {
            stage.listings() >= before + stage.instances()
        })
        .await;
        assert!(!stage.board.refresh(name("nobody")));
        stage.finish_call(call).await;
        stage.board.disable(&name("fx")).await;
        assert!(!stage.board.refresh(name("fx")), "nothing is connected");
        stage.end(&[State::Disabled]).await;
    }
    for_each_case(case).await;
}
