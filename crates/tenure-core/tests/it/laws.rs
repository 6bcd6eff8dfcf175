//! Laws that hold for every input, asked with random ones. A failure prints its smallest input and its seed.

use super::model::store::{Contract, ModelStore};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tenure_core::decide::{Change, Refusal, Reply, Request, SinkRefusal, Then, decide};
use tenure_core::fence::{Admission, FenceRow, Forgetting, Rule, Sealing, admit, forget, seal};
use tenure_core::record::{Owner, Seen};
use tenure_core::{
    Actor, AuthorityClock, Epoch, Generation, GrantId, InstanceId, Instant, Outcome, OwnerName, Reason, ResourceName,
    SessionId, SinkId, Token, Ttl, invariants,
};

/// What happens to an authority: somebody asks, or time passes.
#[derive(Clone, Debug)]
enum Happening {
    Ask(Request),
    Pass(Duration),
}

fn resource() -> impl Strategy<Value = ResourceName> {
    select(vec!["r", "s"]).prop_map(|name| ResourceName::new(name).unwrap())
}

fn sink() -> impl Strategy<Value = SinkId> {
    select(vec!["a", "b"]).prop_map(|name| SinkId::new(name).unwrap())
}

fn generation() -> impl Strategy<Value = Generation> {
    select(vec!["g", "h"]).prop_map(|name| Generation::new(name).unwrap())
}

fn session() -> impl Strategy<Value = SessionId> {
    (1u128..4).prop_map(SessionId::from_bits)
}

/// Small ones, which meet the records, and the largest, which must not overflow.
fn epoch() -> impl Strategy<Value = Epoch> {
    prop_oneof![8 => 1u64..6, 1 => Just(Epoch::MAX_VALUE)].prop_map(|value| Epoch::new(value).unwrap())
}

fn grant() -> impl Strategy<Value = GrantId> {
    (1u128..6).prop_map(GrantId::from_bits)
}

fn token() -> impl Strategy<Value = Token> {
    (resource(), epoch(), grant()).prop_map(|(resource, epoch, grant)| Token { resource, epoch, grant })
}

fn generations() -> impl Strategy<Value = BTreeMap<SinkId, Generation>> {
    proptest::collection::btree_map(sink(), generation(), 0..3)
}

fn by() -> (Actor, Reason) {
    (Actor::new("op").unwrap(), Reason::new("why").unwrap())
}

fn about_sessions() -> impl Strategy<Value = Request> {
    let ttl = select(vec![Ttl::MIN, Ttl::DEFAULT, Ttl::MAX]);
    let seen = (0u64..3, 0u64..3).prop_map(|(incarnation, number)| Seen { incarnation, number });
    prop_oneof![
        4 => (session(), ttl, 0u64..7_200, any::<bool>()).prop_map(|(id, ttl, asked, on_this_host)| Request::Open {
            id,
            owner: Owner { name: OwnerName::new("w").unwrap(), instance: InstanceId::from_bits(id.bits()) },
            on_this_host,
            ttl,
            asked_at: Instant::from_nanos(0).after(Duration::from_secs(asked)),
            seen: Seen::default(),
        }),
        4 => (session(), 0u64..4).prop_map(|(id, n)| Request::Renew { id, n, seen: Seen::default() }),
        1 => (session(), seen).prop_map(|(id, seen)| Request::Renew { id, n: u64::MAX, seen }),
        1 => session().prop_map(|id| Request::Close { id }),
        1 => session().prop_map(|id| Request::RevokeSession { id, actor: by().0, reason: by().1 }),
        1 => session().prop_map(|id| Request::Sweep { id }),
    ]
}

fn about_leases() -> impl Strategy<Value = Request> {
    let outcome = select(vec!["x", "y"]).prop_map(|text| Outcome::new(text).unwrap());
    let shown = (epoch(), proptest::option::of(grant())).prop_map(|(epoch, grant)| SinkRefusal { epoch, grant });
    prop_oneof![
        6 => (resource(), grant(), session(), btree_set(sink(), 0..3))
            .prop_map(|(resource, grant, session, sinks)| Request::Acquire { resource, grant, session, sinks }),
        1 => (token(), btree_set(sink(), 0..3)).prop_map(|(token, sinks)| Request::Enrol { token, sinks }),
        3 => (token(), session(), generations())
            .prop_map(|(token, session, generations)| Request::Bind { token, session, generations }),
        3 => (token(), generations()).prop_map(|(token, generations)| Request::Sealed { token, generations }),
        3 => (token(), session(), btree_set(sink(), 0..3))
            .prop_map(|(token, session, excused)| Request::Announce { token, session, excused }),
        1 => (token(), shown).prop_map(|(token, shown)| Request::Refused { token, shown }),
        1 => (token(), session()).prop_map(|(token, session)| Request::Check { token, session }),
        1 => token().prop_map(|token| Request::Release { token }),
        1 => (token(), session(), outcome)
            .prop_map(|(token, session, outcome)| Request::Complete { token, session, outcome }),
    ]
}

fn about_resources() -> impl Strategy<Value = Request> {
    prop_oneof![
        resource().prop_map(|resource| Request::Revoke { resource, only: None, actor: by().0, reason: by().1 }),
        (resource(), epoch()).prop_map(|(resource, epoch)| Request::Revoke {
            resource,
            only: Some(epoch),
            actor: by().0,
            reason: by().1
        }),
        resource().prop_map(|resource| Request::Reopen { resource, actor: by().0, reason: by().1 }),
        (resource(), sink(), proptest::option::of(epoch())).prop_map(|(resource, sink, forgotten)| Request::Unenrol {
            resource,
            sink,
            forgotten,
            actor: by().0,
            reason: by().1
        }),
        (resource(), sink()).prop_map(|(resource, sink)| Request::ReopenSink {
            resource,
            sink,
            actor: by().0,
            reason: by().1
        }),
        resource().prop_map(|resource| Request::Retire { resource, actor: by().0 }),
        (resource(), epoch(), sink()).prop_map(|(resource, cut, sink)| Request::Forgotten { resource, cut, sink }),
        (resource(), epoch(), epoch()).prop_map(|(resource, cut, row)| Request::ForgetRefused { resource, cut, row }),
        proptest::option::of(Just(Ttl::MIN)).prop_map(|longest_ttl| Request::Restore {
            longest_ttl,
            actor: by().0,
            reason: by().1
        }),
        epoch().prop_map(|floor| Request::LearnFloor { floor, actor: by().0 }),
        (resource(), epoch(), grant(), btree_set(sink(), 0..3)).prop_map(|(resource, epoch, grant, sinks)| {
            Request::Learn { resource, epoch, grant, sinks, actor: by().0 }
        }),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => about_sessions().prop_map(Happening::Ask),
        12 => about_leases().prop_map(Happening::Ask),
        1 => about_resources().prop_map(Happening::Ask),
        2 => select(vec![1u64, 50, 120_000, 3_600_000]).prop_map(|millis| Happening::Pass(Duration::from_millis(millis))),
    ]
}

fn store() -> ModelStore {
    ModelStore::new(Contract { counts_every_row: true, ..Contract::KEPT }, Ttl::MAX)
}

/// Requests that say "do it to whatever is there now": asked twice, they are two wishes.
fn names_no_grant(request: &Request) -> bool {
    matches!(request, Request::Revoke { .. } | Request::Reopen { .. } | Request::ForgetRefused { .. })
}

/// The point of the history moves on by itself; the rest of an answer must not.
fn without_seen(answer: Result<Reply, Refusal>) -> Result<Reply, Refusal> {
    answer.map(|reply| match reply {
        Reply::Opened { .. } => Reply::Opened { seen: Seen::default() },
        Reply::Renewed { holdings, .. } => Reply::Renewed { seen: Seen::default(), holdings },
        other => other,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_move_one_way_and_a_repeated_request_gets_the_same_answer(happenings in vec(happening(), 1..60)) {
        let mut store = store();
        let mut now = Instant::<AuthorityClock>::from_nanos(1);
        for happening in happenings {
            let request = match happening {
                Happening::Pass(span) => {
                    now = now.after(span);
                    continue;
                }
                Happening::Ask(request) => request,
            };
            let mut before = store.clone();
            let executed = store.execute(&request, now);
            for swap in &executed.swaps {
                match &swap.change {
                    Change::Session(after) => {
                        let former = before.session(after.id);
                        prop_assert!(former.is_none_or(|former| invariants::sessions_move_one_way(former, after)));
                    }
                    Change::Lease(after) => {
                        let former = before.lease(&after.resource);
                        if let Request::Announce { excused, .. } = &request {
                            let sealed = invariants::announced_means_sealed(after, excused);
                            prop_assert!(sealed, "announced without {:?}", after.sinks);
                        }
                        prop_assert!(former.is_none_or(|former| invariants::leases_move_one_way(former, after)),
                            "{request:?}: {former:?} became {after:?}");
                        // Whatever is granted lies above the floor, also where only a sink knew the resource.
                        let granted = after.is_granted() && former.is_none_or(|former| former.grant != after.grant);
                        prop_assert!(!granted || Some(after.epoch) > before.authority.record.floor);
                    }
                    Change::Authority(after) => {
                        prop_assert!(before.authority.record.floor <= after.floor);
                        prop_assert!(before.authority.record.incarnation <= after.incarnation);
                    }
                    Change::DropSession(id) => prop_assert!(!before.is_live(*id)),
                    Change::DropLease(name) => {
                        prop_assert!(before.lease(name).map(|lease| lease.epoch) <= before.authority.record.floor);
                    }
                }
                before = store.clone();
            }
            let settled = store.clone();
            let again = store.execute(&request, now);
            // A confirmation is swapped each time, and changes nothing but the version.
            if executed.answer.is_ok() && !names_no_grant(&request) {
                prop_assert_eq!(without_seen(again.answer), without_seen(executed.answer), "{:?}", request);
                prop_assert_eq!(&store.sessions, &settled.sessions);
                prop_assert_eq!(&store.leases, &settled.leases);
                prop_assert_eq!(&store.authority, &settled.authority);
            }
        }
    }

    /// Between a read and its swap anything may have happened: a decision never panics, whatever its view.
    #[test]
    fn a_decision_on_any_view_and_at_any_time_is_an_answer(
        happenings in vec(happening(), 1..30),
        late in vec((about_leases(), any::<u64>()), 1..8),
    ) {
        let mut store = store();
        let mut now = Instant::<AuthorityClock>::from_nanos(1);
        for happening in happenings {
            match happening {
                Happening::Pass(span) => now = now.after(span),
                Happening::Ask(request) => drop(store.execute(&request, now)),
            }
        }
        for (request, nanos) in late {
            let view = store.read(&request.keys()).view;
            let decision = decide(&view, &request, Instant::from_nanos(nanos));
            // Without a change there is nothing to decide anew.
            prop_assert!(decision.swap.is_some() || decision.then != Then::Again);
        }
    }
}

fn row() -> impl Strategy<Value = FenceRow> {
    (epoch(), grant(), generation(), 1u64..9, btree_set(sink(), 0..3)).prop_map(
        |(epoch, grant, generation, seal_no, enrolled)| FenceRow { epoch, grant, generation, seal_no, enrolled },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i3_the_sealed_rule_admits_the_whole_token_in_its_generation_and_nothing_else(
        row in proptest::option::of(row()),
        floor in proptest::option::of(epoch()),
        generation in generation(),
        token in token(),
    ) {
        let admitted = admit(Rule::Sealed, row.as_ref(), floor, &generation, &token) == Admission::Admit;
        let whole = row.is_some_and(|row| {
            (row.epoch, row.grant, &row.generation) == (token.epoch, token.grant, &generation)
        });
        prop_assert_eq!(admitted, whole);
    }

    #[test]
    fn a_high_water_mark_never_falls(row in row(), generation in generation(), token in token()) {
        match admit(Rule::HighWater, Some(&row), None, &generation, &token) {
            Admission::Raise(after) => prop_assert!(after.epoch > row.epoch && after.seal_no == row.seal_no + 1),
            Admission::Admit => prop_assert_eq!((row.epoch, row.grant), (token.epoch, token.grant)),
            Admission::Refuse(verdict) => prop_assert!(!verdict.stands() && row.epoch >= token.epoch),
        }
    }

    #[test]
    fn a_seal_counts_keeps_the_union_and_never_goes_back(
        row in proptest::option::of(row()),
        floor in proptest::option::of(epoch()),
        generation in generation(),
        bound in generation(),
        token in token(),
        enrolled in btree_set(sink(), 0..3),
    ) {
        let before = row.as_ref();
        match seal(before, floor, &generation, &token, &bound, &enrolled) {
            Sealing::Seal(after) => {
                prop_assert_eq!(&bound, &generation);
                prop_assert_eq!(after.seal_no, before.map_or(1, |row| row.seal_no + 1));
                let union: BTreeSet<_> =
                    before.map(|row| row.enrolled.clone()).unwrap_or_default().union(&enrolled).cloned().collect();
                prop_assert_eq!(&after.enrolled, &union);
                prop_assert!(before.is_none_or(|row| row.epoch <= after.epoch));
                prop_assert!(before.is_some() || Some(after.epoch) > floor);
                prop_assert_eq!(admit(Rule::Sealed, Some(&after), floor, &generation, &token), Admission::Admit);
                // The same seal again is the same registration.
                let again = seal(Some(&after), floor, &generation, &token, &bound, &enrolled);
                prop_assert_eq!(again, Sealing::Seal(FenceRow { seal_no: after.seal_no + 1, ..after }));
            }
            Sealing::WrongGeneration { current } => prop_assert!(current == generation && bound != generation),
            Sealing::Stale { epoch, .. } => prop_assert!(epoch > token.epoch),
            Sealing::Conflict { epoch, grant } => prop_assert!(epoch == token.epoch && grant != token.grant),
            Sealing::BelowFloor { floor } => prop_assert!(floor >= token.epoch),
        }
    }

    #[test]
    fn i9_a_floor_never_falls_and_closes_every_epoch_up_to_the_cut(
        row in proptest::option::of(row()),
        floor in proptest::option::of(epoch()),
        cut in epoch(),
        token in token(),
        generation in generation(),
    ) {
        match forget(row.as_ref(), floor, cut) {
            Forgetting::Above { epoch, .. } => prop_assert!(epoch > cut),
            Forgetting::Forget { floor: after } => {
                prop_assert!(Some(after) >= floor && after >= cut);
                prop_assert!(row.is_none_or(|row| row.epoch <= cut), "a row above the cut was dropped");
                let sealing = seal(None, Some(after), &generation, &token, &generation, &BTreeSet::new());
                prop_assert_eq!(matches!(sealing, Sealing::Seal(_)), token.epoch > after);
                prop_assert!(admit(Rule::Sealed, None, Some(after), &generation, &token) != Admission::Admit);
            }
        }
    }
}
