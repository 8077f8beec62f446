use std::{future::Future, pin::pin, task::Poll};

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn holder(end: u8, precedence: Precedence) -> Holder {
    Holder {
        key: format!("019aa3f4-5b1c-7def-8a3b-0000000000{end:02}")
            .parse()
            .unwrap(),
        precedence,
    }
}

fn trusted(end: u8) -> Holder {
    holder(end, Precedence::Trusted)
}

fn public(end: u8) -> Holder {
    holder(end, Precedence::Public)
}

fn shares(all: u64) -> Arc<Capacity> {
    Capacity::new(all, all / 2, None)
}

fn now(shares: &Arc<Capacity>, holder: Holder, amount: u64) -> Option<Share> {
    let mut share = shares.empty(holder);
    share.grow(amount).then_some(share)
}

/// Whether a future is ready.
async fn is_ready<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut future = Some(future);
    std::future::poll_fn(move |context| {
        Poll::Ready(match future.take().map(|future| future.poll(context)) {
            Some(Poll::Ready(value)) => Some(value),
            Some(Poll::Pending) | None => None,
        })
    })
    .await
}

#[actix_web::test]
async fn a_key_holds_at_most_half_and_so_do_all_public_keys_together() {
    let shares = shares(100);
    let _first = now(&shares, trusted(1), 50).unwrap();
    assert!(now(&shares, trusted(1), 1).is_none());
    let public_share = now(&shares, public(2), 30).unwrap();
    assert!(now(&shares, public(3), 21).is_none());
    let _other_public = now(&shares, public(3), 20).unwrap();
    drop(public_share);
    assert!(now(&shares, public(4), 30).is_some());
    assert_eq!(shares.state().taken.all(), 70);
    // More than a key may hold is never free.
    assert!(shares.wait_for(trusted(5), 51, Duration::ZERO).await.is_none());
}

#[actix_web::test]
async fn trusted_requests_pass_public_ones_and_none_waits_for_another_keys_share() {
    let shares = shares(100);
    let mut held = now(&shares, trusted(1), 50).unwrap();
    let _of_two = now(&shares, trusted(2), 20).unwrap();
    let mut of_public = pin!(shares.wait_for(public(3), 40, LONG));
    let mut of_trusted = pin!(shares.wait_for(trusted(4), 40, LONG));
    let mut of_full_key = pin!(shares.wait_for(trusted(1), 10, LONG));
    assert!(is_ready(of_public.as_mut()).await.is_none());
    assert!(is_ready(of_trusted.as_mut()).await.is_none());
    assert!(is_ready(of_full_key.as_mut()).await.is_none());
    // Neither a later request nor a larger share passes those that wait.
    assert!(now(&shares, trusted(5), 10).is_none());
    assert!(now(&shares, public(5), 10).is_none());
    held.shrink_to(30);
    let served = is_ready(of_trusted.as_mut()).await.flatten().unwrap();
    assert_eq!(served.amount(), 40);
    // 90 are taken: the key that was full gets its part, and the public one still waits.
    assert_eq!(
        is_ready(of_full_key.as_mut()).await.flatten().unwrap().amount(),
        10
    );
    assert!(is_ready(of_public.as_mut()).await.is_none());
    drop(served);
    assert_eq!(is_ready(of_public.as_mut()).await.flatten().unwrap().amount(), 40);
}

#[actix_web::test]
async fn a_request_that_gives_up_leaves_nothing_behind() {
    let shares = shares(10);
    let held = now(&shares, trusted(1), 5).unwrap();
    let other = now(&shares, trusted(2), 5).unwrap();
    assert!(
        shares
            .wait_for(trusted(3), 5, Duration::from_millis(1))
            .await
            .is_none()
    );
    {
        let mut dropped = pin!(shares.wait_for(trusted(3), 5, LONG));
        assert!(is_ready(dropped.as_mut()).await.is_none());
        drop(held);
        // It was served and is dropped before it sees that.
    }
    drop(other);
    assert_eq!(shares.state().taken.all(), 0);
    assert!(shares.state().waiting.is_empty());
    assert!(shares.state().taken_by_key.is_empty());
    assert!(now(&shares, trusted(3), 5).is_some());
}
