//! Which secrets a server masks, and for how long.

use super::*;
use crate::{policy::CustomPattern, withheld::WITHHELD};

#[test]
fn a_secret_learned_later_is_hidden_by_every_masker() {
    let known = KnownSecrets::default();
    let masker = ServerMasker::new(&Masking::default(), known.clone());
    assert_eq!(masker.text("it is hunter2hunter2"), "it is hunter2hunter2");
    known.learn([Secret::new("hunter2hunter2")]);
    known.learn([Secret::new("another-one")]);
    assert_eq!(
        masker.text("it is hunter2hunter2, another-one"),
        "it is [MASKED_SECRET], [MASKED_SECRET]"
    );
}

#[test]
fn a_policy_that_cannot_be_followed_lets_nothing_through() {
    let mut policy = Masking::default();
    policy.custom.push(CustomPattern::new("("));
    let masker = ServerMasker::new(&policy, KnownSecrets::default());
    assert_eq!(masker.text("anything"), WITHHELD);
    masker.set_policy(&Masking::default());
    assert_eq!(masker.text("anything"), "anything");
}

#[test]
fn the_secrets_of_a_config_outlive_any_number_of_others() {
    let known = KnownSecrets::default();
    let masker = ServerMasker::new(&Masking::default(), known.clone());
    masker.own_secrets([Secret::new("the-config-s-own")]);
    for part in 0..20 {
        known.learn((0..MAX_UNOWNED / 10).map(|n| Secret::new(format!("token-{part}-{n:06}"))));
    }
    assert_eq!(masker.text("x the-config-s-own y"), "x [MASKED_SECRET] y");
    assert_eq!(masker.text("token-19-000007"), "[MASKED_SECRET]");
    assert_eq!(
        masker.text("token-1-000007"),
        "token-1-000007",
        "the oldest are forgotten"
    );
}

#[test]
fn the_secrets_of_a_config_go_with_their_server() {
    let known = KnownSecrets::default();
    let masker = ServerMasker::new(&Masking::default(), known.clone());
    let twin = ServerMasker::new(&Masking::default(), known.clone());
    let other = ServerMasker::new(&Masking::default(), known);
    masker.own_secrets([Secret::new("the-config-s-own"), Secret::new("of-both-servers")]);
    twin.own_secrets([Secret::new("of-both-servers")]);
    let link = masker.with(&Masking::default());
    drop(masker);
    assert_eq!(
        other.text("the-config-s-own"),
        "[MASKED_SECRET]",
        "its connection is open"
    );
    drop(link);
    assert_eq!(other.text("the-config-s-own"), "the-config-s-own");
    assert_eq!(
        other.text("of-both-servers"),
        "[MASKED_SECRET]",
        "another server has it too"
    );
}

#[test]
fn a_secret_that_the_config_replaced_is_still_hidden() {
    let masker = ServerMasker::new(&Masking::default(), KnownSecrets::default());
    masker.own_secrets([Secret::new("hunter2hunter2")]);
    masker.own_secrets([Secret::new("hunter3hunter3")]);
    assert_eq!(
        masker.text("hunter2hunter2, hunter3hunter3"),
        "[MASKED_SECRET], [MASKED_SECRET]"
    );
}

#[test]
fn the_newest_credentials_and_those_in_use_are_hidden() {
    let masker = ServerMasker::new(&Masking::default(), KnownSecrets::default());
    let other = masker.with(&Masking::default());
    let token = |number: usize| Arc::<[Secret]>::from([Secret::new(format!("token-{number:06}"))]);
    let in_use = token(0);
    masker.add_issued(&in_use);
    masker.own_secrets([Secret::new("the-config-s-own")]);
    for number in 1..=100 {
        masker.add_issued(&token(number));
    }
    for (number, is_hidden) in [(0, true), (1, false), (80, false), (86, true), (100, true)] {
        let text = format!("token-{number:06}");
        assert_eq!(other.text(&text) != text, is_hidden, "{text}");
    }
    assert_eq!(other.text("the-config-s-own"), "[MASKED_SECRET]");
    // One that comes again counts as new.
    masker.add_issued(&token(86));
    drop(in_use);
    masker.add_issued(&token(101));
    assert_eq!(
        other.text("token-000086, token-000101"),
        "[MASKED_SECRET], [MASKED_SECRET]"
    );
    let known = masker.owned.known.clone();
    drop((masker, other));
    let left = ServerMasker::new(&Masking::default(), known);
    assert_eq!(left.text("token-000101"), "token-000101", "they go with their server");
}

#[test]
fn secrets_that_cannot_be_looked_for_let_nothing_through() {
    let known = KnownSecrets::default();
    let masker = ServerMasker::new(&Masking::default(), known.clone());
    known.0.values.store(Arc::new(KnownValues::broken()));
    assert_eq!(masker.text("anything"), WITHHELD);
    assert!(!masker.current().is_surely_clean("{}"));
}
