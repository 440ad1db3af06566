use super::*;

const MIB: usize = 1 << 20;

#[tokio::test]
async fn small_messages_need_no_permit_and_large_ones_release_theirs() {
    let budget = ByteBudget::new(4 * MIB);
    let mut permit = ReadPermit::new(budget.quota(MIB));
    permit.reserve(FREE_BYTES - 1, MIB).await.unwrap();
    assert_eq!(budget.used_bytes(), 0);
    permit.reserve(FREE_BYTES, MIB).await.unwrap();
    assert_eq!(budget.used_bytes(), MIB, "as much as it may become");
    let message = permit.complete(Bytes::from(vec![b'x'; 100_000]));
    assert_eq!(budget.used_bytes(), 100_000_usize.next_multiple_of(UNIT));
    let part = message.slice(10..20);
    drop(message);
    assert!(budget.used_bytes() > 0, "a part of it is still held");
    drop(part);
    assert_eq!(budget.used_bytes(), 0);
}

/// A message of a connection, as it was read.
async fn message(quota: &Quota, bytes: usize) -> Bytes {
    let mut permit = ReadPermit::new(quota.clone());
    permit.reserve(FREE_BYTES, bytes).await.unwrap();
    permit.complete(Bytes::from(vec![b'x'; bytes]))
}

#[tokio::test(start_paused = true)]
async fn what_clients_hold_does_not_keep_its_connection_from_being_read() {
    let budget = ByteBudget::new(16 * MIB);
    let quota = budget.quota(MIB);
    let mut held = Vec::new();
    for _ in 0..8 {
        let message = message(&quota, MIB).await;
        budget.hand_over(&message[100..]);
        budget.hand_over(&message);
        held.push(message);
    }
    assert_eq!(
        budget.used_bytes(),
        8 * MIB,
        "the messages are counted as long as they exist"
    );
    assert!(!budget.is_full_of_results());
    let read: Vec<_> = [(); 4].map(|()| quota.try_acquire(MIB).unwrap()).into();
    assert!(quota.try_acquire(MIB).is_err(), "its own quarter is as it was");
    drop(read);

    let refused = message(&quota, MIB).await;
    budget.hand_over(&refused);
    assert!(budget.is_full_of_results(), "clients have half of the budget");
    held.pop();
    budget.hand_over(&refused);
    assert!(!budget.is_full_of_results());
    budget.hand_over(&vec![b'x'; MIB]);
    drop((held, refused));
    assert_eq!(budget.used_bytes(), 0);
    let again: Vec<_> = [(); 4].map(|()| quota.try_acquire(MIB).unwrap()).into();
    assert_eq!(again.len(), 4, "nothing was released twice");
    assert!(quota.try_acquire(MIB).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_connection_cannot_take_all_and_its_neighbours_go_on() {
    let budget = ByteBudget::new(16 * MIB);
    let greedy = budget.quota(100 * MIB);
    let held = greedy.acquire(100 * MIB).await.unwrap();
    assert_eq!(budget.used_bytes(), 4 * MIB);
    assert_eq!(greedy.acquire(MIB).await.unwrap_err().limit, 16 * MIB);
    let neighbour = budget.quota(MIB);
    let theirs = neighbour.acquire(MIB).await.unwrap();
    drop((held, theirs));
    assert_eq!(budget.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_takes_too_long_yields_only_if_others_wait() {
    let budget = ByteBudget::new(4 * MIB);
    let mut slow = ReadPermit::new(budget.quota(MIB));
    slow.reserve(FREE_BYTES, MIB).await.unwrap();
    let others = [(); 3].map(|()| budget.quota(MIB).try_acquire(MIB).unwrap());
    tokio::time::advance(MAX_HOLD * 2).await;
    assert_eq!(slow.check(FREE_BYTES), Ok(()), "it takes nothing away from others");
    let third = budget.quota(MIB);
    let waiting = tokio::spawn(async move { third.acquire(MIB).await.map(|_| ()) });
    tokio::task::yield_now().await;
    assert!(slow.check(FREE_BYTES).is_err());
    slow.release();
    assert_eq!(waiting.await.unwrap(), Ok(()));
    drop(others);
    assert_eq!(budget.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn messages_of_one_connection_do_not_yield_to_each_other() {
    let budget = ByteBudget::new(8 * MIB);
    let quota = budget.quota(MIB);
    let mut slow = ReadPermit::new(quota.clone());
    slow.reserve(FREE_BYTES, MIB).await.unwrap();
    let second = quota.try_acquire(MIB).unwrap();
    let third = tokio::spawn(async move { quota.acquire(MIB).await.map(|_| ()) });
    tokio::task::yield_now().await;
    tokio::time::advance(MAX_HOLD + CHECK_INTERVAL).await;
    assert_eq!(slow.check(FREE_BYTES), Ok(()));
    drop((slow, second));
    assert_eq!(third.await.unwrap(), Ok(()));
}

#[test]
fn a_permit_grows_and_shrinks_with_the_total_of_many_small_messages() {
    let budget = ByteBudget::new(4 * MIB);
    let quota = budget.quota(MIB / 2);
    let mut permit = None;
    for bytes in (0..=MIB).step_by(300) {
        quota.try_grow(&mut permit, bytes).unwrap();
        assert_eq!(budget.used_bytes(), bytes.next_multiple_of(UNIT));
    }
    assert!(quota.try_grow(&mut permit, MIB + UNIT).is_err());
    shrink(&mut permit, 10_000);
    assert_eq!(budget.used_bytes(), 3 * UNIT);
    shrink(&mut permit, 0);
    assert_eq!(budget.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_budget_can_be_raised() {
    let budget = ByteBudget::new(4 * MIB);
    let held = [(); 4].map(|()| budget.quota(MIB).try_acquire(MIB).unwrap());
    let more = budget.quota(MIB);
    assert!(more.try_acquire(MIB).is_err());
    budget.raise(5 * MIB);
    assert!(more.try_acquire(MIB).unwrap().is_some());
    assert!(more.try_acquire(0).unwrap().is_none());
    drop(held);
    assert_eq!((budget.used_bytes(), budget.limit()), (0, 5 * MIB));
}
