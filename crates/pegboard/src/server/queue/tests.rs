//! Order, limits, cancellation and growth of queues, on paused time.

use futures_util::future::join_all;
use pegboard_base::sync::Mutex;
use tokio::time::{advance, sleep};

use super::*;

const ME: QuotaOwner = QuotaOwner::View(1);

fn queues(sizes: &[(&str, usize)]) -> Queues {
    let sizes = sizes
        .iter()
        .map(|(name, size)| ((*name).to_owned(), pegboard_config::Queue::new(*size)));
    Queues::on(&sizes.collect(), 4)
}

fn stats(queues: &Queues, name: &str) -> QueueStats {
    let all = queues.stats();
    all.into_iter().find(|stats| &*stats.name == name).unwrap()
}

fn policy(queue: Option<&str>) -> Policy {
    Policy {
        queue: queue.map(str::to_owned),
        ..Policy::default()
    }
}

fn soon() -> Deadline {
    Deadline::within(Duration::from_secs(5))
}

fn late() -> Deadline {
    Deadline::within(Duration::from_secs(3600))
}

#[test]
fn the_default_queue_has_twice_the_cores_within_bounds() {
    for (cores, expected) in [(0, 1), (1, 2), (4, 8), (32, 64), (500, 64), (usize::MAX, 64)] {
        let queues = Queues::on(&BTreeMap::new(), cores);
        assert_eq!(stats(&queues, "default").capacity, expected, "{cores} cores");
    }
    assert_eq!(stats(&queues(&[("default", 3)]), "default").capacity, 3);
    assert!((1..=64).contains(&stats(&Queues::new(&BTreeMap::new()), "default").capacity));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_not_configured_is_the_default_one() {
    let queues = queues(&[("slow", 1)]);
    let gates = ["default", "nowhere", "slow"].map(|name| queues.gate("fx", 1000, &policy(Some(name))));
    let mut permits = Vec::new();
    for gate in &gates {
        permits.push(gate.enter("tool", &ME, soon()).await.unwrap());
    }
    assert_eq!(
        (stats(&queues, "default").in_use, stats(&queues, "slow").in_use),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn calls_are_let_in_in_the_order_they_came_and_never_too_many() {
    let queues = queues(&[("q", 2)]);
    let gate = queues.gate("fx", 1000, &policy(Some("q")));
    let order = Mutex::new(Vec::new());
    let calls = (0..10).map(|call| {
        let (gate, order, queues) = (&gate, &order, &queues);
        async move {
            let _permit = gate.enter("tool", &ME, late()).await.unwrap();
            order.lock().push(call);
            assert!(stats(queues, "q").in_use <= 2);
            sleep(Duration::from_secs(1)).await;
        }
    });
    let started = Instant::now();
    join_all(calls).await;
    assert_eq!(*order.lock(), (0..10).collect::<Vec<_>>());
    assert_eq!(started.elapsed().as_secs(), 5, "ten calls of a second, two at a time");
    let stats = stats(&queues, "q");
    assert_eq!((stats.in_use, stats.depth, stats.entered), (0, 0, 10));
    assert_eq!(stats.last_wait.as_secs(), 4);
    assert_eq!(stats.total_wait.as_secs(), 2 * (1 + 2 + 3 + 4));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_deadline() {
    let queues = queues(&[("q", 1)]);
    let gate = queues.gate("fx", 1000, &policy(Some("q")));
    let held = gate.enter("tool", &ME, soon()).await.unwrap();
    let refused = gate.enter("tool", &ME, soon()).await.unwrap_err();
    assert!(
        matches!(&refused, Refused::Late { queue, .. } if &**queue == "q"),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("queue `q`"));
    drop(held);
    let passed = Deadline::within(Duration::ZERO);
    assert!(
        matches!(gate.enter("tool", &ME, passed).await, Err(Refused::Late { .. })),
        "a free place is of no use any more"
    );
    assert_eq!(stats(&queues, "q").entered, 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_leaves_its_place_to_the_next() {
    let queues = queues(&[("q", 1)]);
    let gate = queues.gate("fx", 1000, &policy(Some("q")));
    let held = gate.enter("tool", &ME, soon()).await.unwrap();
    let mut first = Box::pin(gate.enter("tool", &ME, late()));
    let mut second = Box::pin(gate.enter("tool", &ME, late()));
    assert!(futures_util::poll!(&mut first).is_pending());
    assert!(futures_util::poll!(&mut second).is_pending());
    assert_eq!(stats(&queues, "q").depth, 2);
    drop(first);
    assert_eq!(stats(&queues, "q").depth, 1);
    drop(held);
    let _permit = second.await.unwrap();
    assert_eq!((stats(&queues, "q").depth, stats(&queues, "q").in_use), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_line_has_an_end() {
    let queues = queues(&[("q", 1)]);
    let gate = queues.gate("fx", 1000, &policy(Some("q")));
    let held = gate.enter("tool", &ME, soon()).await.unwrap();
    let mut waiting: Vec<_> = (0..MAX_WAITING / 2)
        .map(|_| Box::pin(gate.enter("tool", &ME, late())))
        .collect();
    for call in &mut waiting {
        assert!(futures_util::poll!(call).is_pending());
    }
    let refused = gate.enter("tool", &ME, late()).await.unwrap_err();
    assert_eq!(
        refused,
        Refused::Full {
            queue: "q".into(),
            waiting: 256,
            of_owner: 256,
            retry_after: Duration::from_secs(1),
        }
    );
    assert_eq!(
        stats(&queues, "q").depth,
        256,
        "the one who was turned away does not count"
    );
    waiting.pop();
    let mut next = Box::pin(gate.enter("tool", &ME, late()));
    assert!(futures_util::poll!(&mut next).is_pending(), "there is room again");
    drop((held, waiting));
    let _permit = next.await.unwrap();
}

fn apply(queues: &Queues, name: &str, permits: usize) {
    queues.apply(&BTreeMap::from([(
        name.to_owned(),
        pegboard_config::Queue::new(permits),
    )]));
}

#[tokio::test(start_paused = true)]
async fn a_queue_grows_and_shrinks_under_those_who_wait() {
    let queues = queues(&[("q", 1)]);
    let gate = queues.gate("fx", 1000, &policy(Some("q")));
    let held = gate.enter("tool", &ME, soon()).await.unwrap();
    let mut second = Box::pin(gate.enter("tool", &ME, late()));
    let mut third = Box::pin(gate.enter("tool", &ME, late()));
    assert!(futures_util::poll!(&mut second).is_pending());
    assert!(futures_util::poll!(&mut third).is_pending());
    advance(Duration::from_secs(2)).await;
    apply(&queues, "q", 2);
    let second = second.await.unwrap();
    assert!(futures_util::poll!(&mut third).is_pending());
    apply(&queues, "new", 7);
    let numbers_now = stats(&queues, "q");
    assert_eq!((numbers_now.capacity, numbers_now.in_use, numbers_now.depth), (2, 2, 1));
    assert_eq!(numbers_now.last_wait, Duration::from_secs(2));
    assert_eq!(stats(&queues, "new").capacity, 7);
    apply(&queues, "q", 1);
    assert_eq!(stats(&queues, "q").capacity, 1);
    drop(held);
    assert!(
        futures_util::poll!(&mut third).is_pending(),
        "one call is in flight still"
    );
    drop(second);
    let _third = third.await.unwrap();
}

#[test]
fn the_default_queue_gets_its_own_size_again_when_it_is_not_configured_any_more() {
    let queues = Queues::new(&BTreeMap::new());
    let own = stats(&queues, "default").capacity;
    apply(&queues, "default", 1);
    assert_eq!(stats(&queues, "default").capacity, 1);
    queues.apply(&BTreeMap::new());
    assert_eq!(stats(&queues, "default").capacity, own);
}

#[tokio::test(start_paused = true)]
async fn a_serial_server_has_one_call_at_a_time_and_leaves_the_queue_to_others() {
    let queues = queues(&[("q", 2)]);
    let serial = queues.gate("printer", 1, &policy(Some("q")));
    let others = queues.gate("fx", 1000, &policy(Some("q")));
    let first = serial.enter("tool", &ME, soon()).await.unwrap();
    let mut second = Box::pin(serial.enter("tool", &ME, late()));
    assert!(futures_util::poll!(&mut second).is_pending());
    assert_eq!((serial.stats().depth, others.stats().depth), (1, 0));
    let _other = others.enter("tool", &ME, soon()).await.unwrap();
    drop(first);
    let _second = second.await.unwrap();
    assert_eq!(stats(&queues, "q").in_use, 2);
}

#[test]
fn the_numbers_can_be_written_down() {
    let shown = serde_json::to_value(queues(&[]).status()).unwrap();
    assert_eq!(shown[0]["name"], "default");
    assert_eq!(shown[0]["capacity"], 8);
}

/// A tool's queue applies instead of its server's, by name before by glob, and can be changed.
#[tokio::test(start_paused = true)]
async fn a_tool_may_wait_in_a_queue_of_its_own() {
    let queues = queues(&[("heavy", 1), ("light", 9), ("all", 5)]);
    let mut policy = policy(Some("all"));
    let bound = [("render_*", "heavy"), ("render_text", "light")];
    policy.tool_queues = bound.map(|(tool, queue)| (tool.to_owned(), queue.to_owned())).into();
    let gate = queues.gate("fx", 1000, &policy);
    let _permits = [
        gate.enter("render_image", &ME, soon()).await.unwrap(),
        gate.enter("render_text", &ME, soon()).await.unwrap(),
        gate.enter("read", &ME, soon()).await.unwrap(),
    ];
    let in_use = |name: &str| stats(&queues, name).in_use;
    assert_eq!((in_use("heavy"), in_use("light"), in_use("all")), (1, 1, 1));
    let began = Instant::now();
    let refused = gate.enter("render_video", &ME, soon()).await.unwrap_err();
    assert!(
        matches!(&refused, Refused::Late { queue, .. } if &**queue == "heavy"),
        "{refused:?}"
    );
    assert_eq!(began.elapsed().as_secs(), 5);
    let heavy = stats(&queues, "heavy");
    assert_eq!((heavy.entered, heavy.waited, heavy.refused), (1, 0, 1));
    policy.tool_queues.clear();
    gate.bind(&queues, &policy);
    let _permit = gate.enter("render_video", &ME, soon()).await.unwrap();
    assert_eq!((in_use("heavy"), in_use("all")), (1, 2));
}

/// Fills a gate of one place with the calls of one owner, then lets two others come. Returns the owners in the order in which they were served.
async fn order_of_service(first: &Gate, second: &Gate) -> Vec<u64> {
    let order = Mutex::new(Vec::new());
    let call = |gate, owner: u64| {
        let (gate, order): (&Gate, _) = (gate, &order);
        async move {
            let _permit = gate.enter("tool", &QuotaOwner::View(owner), late()).await.unwrap();
            order.lock().push(owner);
            sleep(Duration::from_secs(1)).await;
        }
    };
    let many = (0..100).map(|_| call(first, 1));
    let few = [call(second, 2), call(second, 2), call(second, 3)];
    join_all(many.chain(few)).await;
    order.into_inner()
}

/// The first call of owner 1 is in flight when the others come. From then on each owner has every third turn, as long as it has calls.
const TURNS: [u64; 8] = [1, 1, 2, 3, 1, 2, 1, 1];

#[tokio::test(start_paused = true)]
async fn owners_take_turns_in_the_queue_of_a_server() {
    let gate = queues(&[]).gate("fx", 1, &policy(None));
    let order = order_of_service(&gate, &gate).await;
    assert_eq!(order[..8], TURNS);
    assert_eq!(order.len(), 103);
}

#[tokio::test(start_paused = true)]
async fn owners_take_turns_in_a_queue_that_servers_share() {
    let queues = queues(&[("q", 1)]);
    let gates = ["fx", "printer"].map(|server| queues.gate(server, 1000, &policy(Some("q"))));
    let order = order_of_service(&gates[0], &gates[1]).await;
    assert_eq!(order[..8], TURNS);
    assert_eq!(order.len(), 103);
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_a_dropped_call_had_got_passes_to_the_next() {
    let queues = queues(&[]);
    let gate = queues.gate("fx", 1, &policy(None));
    let held = gate.enter("tool", &ME, soon()).await.unwrap();
    let mut first = Box::pin(gate.enter("tool", &ME, late()));
    let mut second = Box::pin(gate.enter("tool", &ME, late()));
    assert!(futures_util::poll!(&mut first).is_pending());
    assert!(futures_util::poll!(&mut second).is_pending());
    drop(held);
    assert_eq!((gate.stats().in_use, gate.stats().depth), (1, 1), "the first has it");
    drop(first);
    assert_eq!((gate.stats().in_use, gate.stats().depth), (1, 0));
    drop(second.await.unwrap());
    assert_eq!(gate.stats().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_has_filled_its_share_is_refused_at_once_and_others_are_not() {
    let queues = queues(&[]);
    let gate = queues.gate("fx", 2, &policy(None));
    let other = QuotaOwner::Principal("other".into());
    let call = || {
        let gate = &gate;
        async move {
            let _permit = gate.enter("tool", &ME, late()).await.unwrap();
            sleep(Duration::from_secs(4)).await;
        }
    };
    let mut calls = Box::pin(join_all((0..2 + MAX_WAITING / 2).map(|_| call())));
    assert!(futures_util::poll!(&mut calls).is_pending());
    assert_eq!((gate.stats().in_use, gate.stats().depth), (2, 256));
    // Of the calls of four seconds one ends every two seconds.
    assert!(tokio::time::timeout(Duration::from_secs(41), &mut calls).await.is_err());
    let mut more = Box::pin(join_all((0..20).map(|_| call())));
    assert!(futures_util::poll!(&mut more).is_pending());
    let refused = futures_util::poll!(Box::pin(gate.enter("tool", &ME, late())));
    let std::task::Poll::Ready(Err(refused)) = refused else {
        panic!("refused at the first poll, not {refused:?}");
    };
    assert!(
        matches!(
            refused,
            Refused::Full {
                waiting: 256,
                of_owner: 256,
                ..
            }
        ),
        "{refused:?}"
    );
    assert_eq!(
        refused.retry_after(),
        Duration::from_secs(60),
        "256 calls of two seconds, at most a minute"
    );
    let mut of_other = Box::pin(gate.enter("tool", &other, late()));
    assert!(
        futures_util::poll!(&mut of_other).is_pending(),
        "another owner may wait"
    );
    let began = Instant::now();
    let served = futures_util::future::select(of_other, futures_util::future::join(calls, more)).await;
    assert!(matches!(served, futures_util::future::Either::Left(_)));
    assert!(began.elapsed() <= Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_smaller_server_takes_no_new_calls_until_enough_have_ended() {
    let queues = queues(&[]);
    let gate = queues.gate("fx", 3, &policy(None));
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(gate.enter("tool", &ME, soon()).await.unwrap());
    }
    gate.resize(1);
    assert_eq!((gate.stats().capacity, gate.stats().in_use), (1, 3));
    let mut waiting = Box::pin(gate.enter("tool", &ME, late()));
    for left in [2, 1] {
        held.pop();
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert_eq!(gate.stats().in_use, left);
    }
    held.pop();
    let _last = waiting.await.unwrap();
    assert_eq!(
        (gate.stats().capacity, gate.stats().in_use, gate.stats().depth),
        (1, 1, 0)
    );
    assert!(gate.try_enter("tool").is_none());
    gate.resize(2);
    assert!(gate.try_enter("tool").is_some());
    assert_eq!(gate.stats().in_use, 1, "a failed attempt returns nothing");
}
