//! `apply` on a running board: every kind of change.

use pegboard::{Config, Kind, State, ToolCall, config::Start};

use crate::{
    lifecycle::stage::{Stage, for_each_case, listed, said, until},
    support::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_config_changes_nothing() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        let applied = stage.board.apply(stage.config(|_| {})).await;
        assert!(applied.replaced.is_empty() && applied.retuned.is_empty() && applied.errors.is_empty());
        stage.finish_call(call).await;
        stage.assert_serves().await;
        assert_eq!(stage.processes()[..before.len()], before);
        stage.end(&[]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_denied_is_gone_from_every_view_and_the_processes_stay() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        let denied = stage.config(|settings| settings.deny = vec!["hello".into()]);
        let applied = stage.board.apply(denied).await;
        assert_eq!(applied.retuned, [name("fx")]);
        for view in stage.views() {
            assert_eq!(listed(view).await, ["slow"]);
            assert_outcome(&view.call(ToolCall::new("fx.hello")).await, Kind::NotPermitted, false);
        }
        assert_eq!(stage.processes(), before);
        stage.finish_call(call).await;
        stage.board.apply(stage.config(|_| {})).await;
        stage.assert_serves().await;
        stage.end(&[]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn approval_that_is_taken_back_holds_in_every_view() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let never = stage.config(|settings| settings.policy.approval = pegboard::config::Approval::Never);
        stage.board.apply(never).await;
        for view in stage.views() {
            assert_outcome(&view.call(ToolCall::new("fx.hello")).await, Kind::NotPermitted, false);
        }
        stage.finish_call(call).await;
        stage.end(&[]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_moves_ends_its_calls_where_they_are_and_takes_new_ones_where_it_is_now() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        let applied = stage
            .board
            .apply(stage.config(|settings| *settings = stage.moved()))
            .await;
        assert_eq!((applied.replaced, applied.errors.len()), (vec![name("fx")], 0));
        if stage.runs_alone() {
            stage.replacement_waits().await;
            assert_eq!(stage.processes(), before);
        } else {
            stage.assert_serves().await;
        }
        let draining: Vec<_> = stage.rows().into_iter().filter(|row| row.draining).collect();
        assert_eq!(draining.len(), 1, "{draining:?}");
        assert_eq!(draining[0].in_flight, 1);
        let other = stage.other.clone();
        let waiting = tokio::spawn(async move { other.call(ToolCall::new("fx.hello")).await });
        stage.finish_call(call).await;
        assert_eq!(said(&waiting.await.unwrap()), "hi");
        stage.gone(&before).await;
        stage.assert_serves().await;
        stage.end(&[State::Ready]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_cannot_start_does_not_displace_a_server_that_works() {
    async fn case(stage: Stage) {
        if stage.runs_alone() {
            return;
        }
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        let applied = stage
            .board
            .apply(stage.config(|settings| *settings = stage.broken()))
            .await;
        assert!(applied.replaced.is_empty(), "{:?}", applied.replaced);
        assert_eq!(applied.errors.len(), 1);
        assert_eq!(applied.errors[0].server, name("fx"));
        assert_contains(&applied.errors[0].error, &["/nonexistent/server"]);
        assert_eq!(stage.processes(), before);
        stage.finish_call(call).await;
        stage.assert_serves().await;
        stage.end(&[]).await;
    }
    for_each_case(case).await;
}

/// It has ended when its new settings are tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_process_is_down_if_its_new_settings_do_not_work() {
    async fn case(stage: Stage) {
        if !stage.runs_alone() {
            return;
        }
        let broken = || stage.config(|settings| *settings = stage.broken());
        let call = stage.call_in_flight().await;
        // `apply` does not wait for the call in flight, which ends first.
        let applied = stage.board.apply(broken()).await;
        assert_eq!((applied.replaced, applied.errors.len()), (vec![name("fx")], 0));
        stage.finish_call(call).await;
        until("it is down", || stage.states() == [State::Down]).await;
        let applied = stage.board.apply(stage.config(|_| {})).await;
        assert_eq!(applied.errors.len(), 0);
        stage.assert_serves().await;
        let applied = stage.board.apply(broken()).await;
        assert_eq!((applied.replaced, applied.kept), (vec![name("fx")], Vec::new()));
        assert_contains(&applied.errors[0].error, &["/nonexistent/server"]);
        assert_eq!(stage.processes(), [0; 0]);
        stage.end(&[State::Down]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_switched_off_ends_its_calls_and_takes_no_more() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        let applied = stage
            .board
            .apply(stage.config(|settings| settings.enabled = false))
            .await;
        assert_eq!(applied.retuned, [name("fx")]);
        assert_eq!(stage.states(), vec![State::Disabled; stage.instances()]);
        stage.assert_refuses(Kind::Unavailable).await;
        stage.finish_call(call).await;
        stage.gone(&before).await;
        let applied = stage.board.apply(stage.config(|_| {})).await;
        assert_eq!((applied.retuned, applied.errors.len()), (vec![name("fx")], 0));
        stage.assert_serves().await;
        stage.end(&[State::Disabled, State::Ready]).await;
    }
    for_each_case(case).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_removed_ends_its_calls_and_is_gone_from_every_view() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let before = stage.processes();
        let applied = stage.board.apply(Config::default()).await;
        assert_eq!(applied.removed, [name("fx")]);
        stage.assert_refuses(Kind::UnknownTool).await;
        stage.finish_call(call).await;
        stage.gone(&before).await;
        until("no row is left", || stage.rows().is_empty()).await;
        stage.end(&[State::Closed]).await;
    }
    for_each_case(case).await;
}

/// Under presets that start servers eagerly, or that wait until servers are connected, a new server is connected when `apply` returns.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_added_is_connected_in_every_view_and_an_error_is_told_for_what_cannot_be() {
    async fn case(stage: Stage) {
        let call = stage.call_in_flight().await;
        let is_lazy = stage.settings.start == Start::Lazy;
        let mut config = stage.config(|_| {});
        config.servers.insert(name("good"), stage.moved());
        config.servers.insert(name("bad"), stage.broken());
        let applied = stage.board.apply(config).await;
        assert_eq!(applied.added, [name("bad"), name("good")]);
        let failed: Vec<_> = applied.errors.iter().map(|error| error.server.as_str()).collect();
        assert_eq!(failed, if is_lazy { vec![] } else { vec!["bad"] });
        let rows = stage.rows();
        let good: Vec<_> = rows
            .iter()
            .filter(|row| row.name == name("good"))
            .map(|row| row.state)
            .collect();
        let state = if is_lazy { State::Idle } else { State::Ready };
        assert_eq!(good, vec![state; stage.instances()]);
        for view in stage.views() {
            assert_eq!(said(&view.call(ToolCall::new("good.hello")).await), "hi");
        }
        stage.finish_call(call).await;
        stage.end(&[State::Ready]).await;
    }
    for_each_case(case).await;
}
