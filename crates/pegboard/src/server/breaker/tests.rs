//! The table of states, and random histories against a model that keeps the whole history and recomputes everything.

use proptest::prelude::*;

use super::*;

/// The name of a server in these tests.
fn server() -> ServerName {
    ServerName::parse("k8s").expect("a name")
}

/// A common rule: five failures in a row or more than half of ten, open for 30 seconds, three probes, two successes.
fn minion() -> Rule {
    Rule {
        percent: 50,
        probes: 3,
        successes: 2,
        ..Rule::default()
    }
}

/// Runs a script of letters and returns the state at each `?`.
///
/// `s` and `f` are attempts that succeed or fail, `a` starts an attempt and leaves it in flight, `S` and `F` report the outcome of the oldest
/// attempt in flight, `d` drops it, `u` is an attempt that does not reach the server, `1`…`9` advance the clock by that many tens of seconds,
/// `.` by a tenth of a second, `?` reads the state and `r` resets.
fn check(rule: Rule, story: &str) -> String {
    let breaker = Breaker::new(&server(), BreakerPolicy::On(rule));
    let mut now = Instant::now();
    let mut under_way = VecDeque::new();
    let mut seen = String::new();
    for letter in story.chars() {
        match letter {
            's' => match breaker.allow(now) {
                Ok(ticket) => breaker.report_success(ticket),
                Err(_) => seen.push('x'),
            },
            'f' => match breaker.allow(now) {
                Ok(ticket) => breaker.report_failure(ticket, now),
                Err(_) => seen.push('x'),
            },
            'u' => match breaker.allow(now) {
                Ok(ticket) => breaker.report_unreachable(ticket, now),
                Err(_) => seen.push('x'),
            },
            '.' => now += Duration::from_millis(100),
            'a' => match breaker.allow(now) {
                Ok(ticket) => under_way.push_back(ticket),
                Err(_) => seen.push('x'),
            },
            'S' => breaker.report_success(under_way.pop_front().unwrap()),
            'F' => breaker.report_failure(under_way.pop_front().unwrap(), now),
            'd' => drop(under_way.pop_front().unwrap()),
            'r' => breaker.reset(),
            '?' => seen.push(match breaker.state(now) {
                BreakerState::Closed => 'C',
                BreakerState::Open { .. } => 'O',
                BreakerState::HalfOpen => 'H',
            }),
            tens => now += Duration::from_secs(10 * u64::from(tens.to_digit(10).unwrap())),
        }
    }
    seen
}

#[test]
fn the_default_rule_goes_through_its_states_as_the_table_says() {
    for (story, expected, why) in [
        ("?", "C", "it starts closed"),
        ("ffff?f?", "CO", "the fifth failure in a row opens it"),
        ("ffffsffff?", "C", "a success starts the row anew"),
        ("ffffadf?", "O", "an attempt without a verdict does not"),
        ("fffff2a?", "xO", "nobody is let through before its time is up"),
        ("fffff3?", "H", "then it is half open"),
        ("fffff3aa", "x", "with one probe at a time"),
        ("fffff3s?", "C", "a probe that succeeds closes it"),
        (
            "fffff3f?2?1?",
            "OOH",
            "one that fails opens it for the whole time again",
        ),
        ("fffff3ada", "", "one that is dropped leaves its place to the next"),
        ("fffff3sffff?", "C", "failures from before it opened are forgotten"),
        ("afffffS?3?", "OH", "a late success from before it opened says nothing"),
        (
            "afffff3F?",
            "H",
            "nor does a late failure, not even while it is half open",
        ),
        ("afffff3da", "", "nor does dropping one, whose place was never taken"),
        ("afffff3daa", "x", "so there is still one probe only"),
        ("fffff3ar?F?", "CC", "a verdict of a probe says nothing after a reset"),
        ("fffffr?", "C", "a reset closes it"),
    ] {
        assert_eq!(check(Rule::default(), story), expected, "{story}: {why}");
    }
}

#[test]
fn failures_of_one_moment_count_once_and_an_unreachable_server_is_tried_again_soon() {
    for (story, expected, why) in [
        (
            "aaaaaaFFFFFF?",
            "C",
            "attempts that were in flight together fail together",
        ),
        ("aaaaaaF1F1F1F1F?", "O", "unless they fail at other times"),
        ("aaaaaaFFFFFFffff?", "O", "the next attempts count again"),
        ("uuuuuuuu....uuuu?", "C", "a moment without the server is one failure"),
        ("u.....u.....u.....u.....?u?", "CO", "a longer time is several"),
        ("u.....u.....u.....s.....u.....u?", "C", "a success starts the row anew"),
        (
            "u.....u.....u.....u.....u....?.?",
            "OH",
            "it stays open for half a second",
        ),
        (
            "u.....u.....u.....u.....u.....u.........?.?u.........?.?",
            "OHOH",
            "then for a second, and never longer",
        ),
        (
            "u.....u.....u.....u.....u.....s?",
            "C",
            "a probe that arrives closes it",
        ),
        (
            "u.....u.....u.....u.....u.....f2?1?",
            "OH",
            "one that fails later opens it for its whole time",
        ),
    ] {
        assert_eq!(check(Rule::default(), story), expected, "{story}: {why}");
    }
}

#[test]
fn the_rule_of_minion_also_counts_halves_and_wants_two_successes() {
    for (story, expected, why) in [
        ("fsfsfsfsfs?", "C", "half of ten is not more than half"),
        ("fsfsfsffs?f?", "CO", "six of ten are"),
        (
            "ffsffsff?s?",
            "CC",
            "eight verdicts are too few to tell, and of ten the other two decide",
        ),
        ("ssssssssssssssssffsffsff?", "O", "only the last ten count"),
        ("fffff3aaaa", "x", "three probes may be under way"),
        ("fffff3aaSS?", "C", "two successes close it"),
        ("fffff3s?s?", "HC", "also one after the other"),
        ("fffff3aaSF?3s?", "OH", "a failure opens it and takes the success along"),
        ("fffff3aaaddda", "", "dropped probes free their places"),
    ] {
        assert_eq!(check(minion(), story), expected, "{story}: {why}");
    }
}

#[test]
fn a_breaker_that_is_off_lets_everybody_through() {
    let breaker = Breaker::new(&server(), BreakerPolicy::Off);
    let now = Instant::now();
    for _ in 0..100 {
        let ticket = breaker.allow(now).unwrap();
        breaker.report_failure(ticket, now);
    }
    breaker.reset();
    assert_eq!(breaker.state(now), BreakerState::Closed);
    assert_ne!(BreakerPolicy::default(), BreakerPolicy::Off);
}

#[test]
fn callers_are_told_how_long_to_stay_away_and_it_is_never_for_ever() {
    let forever = Rule {
        open: Duration::MAX,
        failures: 0,
        probes: 0,
        successes: 0,
        ..Rule::default()
    };
    let breaker = Breaker::new(&server(), BreakerPolicy::On(forever));
    let start = Instant::now();
    breaker.report_failure(breaker.allow(start).unwrap(), start);
    let open = breaker.allow(start + Duration::from_secs(600)).unwrap_err();
    assert_eq!(open.retry_after, Duration::from_secs(3000));
    assert!(open.to_string().ends_with("in 3000 s"), "{open}");
    let later = start + Duration::from_secs(3600);
    let _probe = breaker.allow(later).unwrap();
    assert_eq!(breaker.allow(later).unwrap_err().retry_after, PROBING);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Allow,
    Verdict { which: usize, good: bool },
    Drop { which: usize },
    Pass { seconds: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Allow),
        4 => (0usize..8, prop::bool::weighted(0.35)).prop_map(|(which, good)| Step::Verdict { which, good }),
        1 => (0usize..8).prop_map(|which| Step::Drop { which }),
        2 => (1u64..25).prop_map(|seconds| Step::Pass { seconds }),
    ]
}

/// A model that keeps the outcomes of the current period as a list and its probes as a set, and derives everything else from them.
struct Model {
    rule: Rule,
    period: usize,
    /// When the current period began and its state.
    kind: Kind,
    verdicts: Vec<bool>,
    last_failure: Option<Instant>,
    probes: Vec<usize>,
}

/// An attempt that the model permitted: its period, and how many failures in a row preceded it.
#[derive(Debug, Clone, Copy)]
struct Given {
    period: usize,
    after: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Closed,
    Open { since: Instant },
    HalfOpen,
}

impl Model {
    fn enter(&mut self, kind: Kind) {
        self.period += 1;
        self.kind = kind;
        self.verdicts.clear();
        self.probes.clear();
    }

    fn in_a_row(&self) -> usize {
        self.verdicts.iter().rev().take_while(|good| !**good).count()
    }

    fn allow(&mut self, now: Instant, id: usize) -> Option<Given> {
        if let Kind::Open { since } = self.kind
            && now - since >= self.rule.open
        {
            self.enter(Kind::HalfOpen);
        }
        let let_through = match self.kind {
            Kind::Closed => true,
            Kind::Open { .. } => false,
            Kind::HalfOpen => self.probes.len() < self.rule.probes as usize,
        };
        if let_through && self.kind == Kind::HalfOpen {
            self.probes.push(id);
        }
        let_through.then_some(Given {
            period: self.period,
            after: self.in_a_row(),
        })
    }

    fn end(&mut self, now: Instant, id: usize, given: Given, good: Option<bool>) {
        if given.period != self.period {
            return;
        }
        self.probes.retain(|probe| *probe != id);
        // Time passes in whole seconds, so only failures of the same instant are one.
        if self.kind == Kind::Closed
            && good == Some(false)
            && self.in_a_row() > given.after
            && self.last_failure == Some(now)
        {
            return;
        }
        if good == Some(false) {
            self.last_failure = Some(now);
        }
        self.verdicts.extend(good);
        if good.is_none() {
            return;
        }
        let in_a_row = self.in_a_row();
        let (percent, of) = (self.rule.percent as usize, self.rule.of);
        let recent: Vec<_> = self.verdicts.iter().rev().take(of).collect();
        let bad = recent.iter().filter(|good| !***good).count();
        let mostly_bad = percent > 0 && recent.len() == of && bad * 100 > percent * of;
        match self.kind {
            Kind::Closed if good == Some(false) && (in_a_row >= self.rule.failures as usize || mostly_bad) => {
                self.enter(Kind::Open { since: now });
            }
            Kind::HalfOpen if good == Some(false) => self.enter(Kind::Open { since: now }),
            Kind::HalfOpen if self.verdicts.len() >= self.rule.successes as usize => self.enter(Kind::Closed),
            Kind::Closed | Kind::HalfOpen | Kind::Open { .. } => {}
        }
    }
}

proptest! {
    #[test]
    fn any_history_ends_where_the_model_says(
        steps in prop::collection::vec(step(), 0..200),
        failures in 1u32..6,
        percent in 0u32..=100,
        of in 1usize..8,
        probes in 1u32..4,
        successes in 1u32..4,
    ) {
        let rule = Rule { failures, percent, of, probes, successes, open: Duration::from_secs(30) };
        let breaker = Breaker::new(&server(), BreakerPolicy::On(rule));
        let mut model = Model { rule, period: 0, kind: Kind::Closed, verdicts: Vec::new(), last_failure: None, probes: Vec::new() };
        let mut under_way: Vec<(usize, Given, Ticket)> = Vec::new();
        let mut now = Instant::now();
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Allow => {
                    let given = breaker.allow(now);
                    let period = model.allow(now, id);
                    prop_assert_eq!(given.is_ok(), period.is_some());
                    match given {
                        Ok(ticket) => under_way.push((id, period.unwrap(), ticket)),
                        Err(open) => prop_assert!(open.retry_after <= rule.open && !open.retry_after.is_zero()),
                    }
                }
                Step::Verdict { which, good } if which < under_way.len() => {
                    let (id, period, ticket) = under_way.remove(which);
                    if good { breaker.report_success(ticket) } else { breaker.report_failure(ticket, now) }
                    model.end(now, id, period, Some(good));
                }
                Step::Drop { which } if which < under_way.len() => {
                    let (id, period, ticket) = under_way.remove(which);
                    drop(ticket);
                    model.end(now, id, period, None);
                }
                Step::Verdict { .. } | Step::Drop { .. } => {}
                Step::Pass { seconds } => now += Duration::from_secs(seconds),
            }
        }
        // Whatever happened: without attempts in flight, the breaker permits one after some time.
        drop(under_way);
        prop_assert!(breaker.allow(now + rule.open).is_ok());
    }
}
