use super::*;
use crate::record::{Owner, SessionState};
use crate::{InstanceId, Outcome, ResourceName, SessionId, StoreIdentity, Ttl};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use core::time::Duration;

const DEADLINE: Instant<AuthorityClock> = Instant::from_nanos(1_000);

fn at(nanos: u64) -> Instant<AuthorityClock> {
    Instant::from_nanos(nanos)
}

fn authority() -> AuthorityRecord {
    AuthorityRecord::new(StoreIdentity::new("store").unwrap(), Ttl::MAX)
}

fn owner() -> Owner {
    Owner { name: OwnerName::new("alice").unwrap(), instance: InstanceId::from_bits(1) }
}

fn session(state: SessionState) -> SessionRecord {
    SessionRecord {
        id: SessionId::from_bits(5),
        owner: owner(),
        on_this_host: false,
        ttl: Ttl::MIN,
        deadline: DEADLINE,
        renew_seq: 0,
        incarnation: authority().incarnation,
        state,
    }
}

fn lease(phase: Phase) -> LeaseRecord {
    LeaseRecord {
        resource: ResourceName::new("r").unwrap(),
        epoch: Epoch::new(2).unwrap(),
        grant: GrantId::from_bits(20),
        session: SessionId::from_bits(5),
        owner: owner(),
        since: at(300),
        phase,
        sinks: BTreeMap::new(),
    }
}

fn token(epoch: u64, grant: u128) -> Token {
    Token { epoch: Epoch::new(epoch).unwrap(), grant: GrantId::from_bits(grant), ..lease(Phase::Held).token() }
}

fn judged(row: &HeldRow, token: &Token, now: u64) -> Result<(), (Ending, Option<u128>)> {
    still_held(Some(row), token, at(now)).map_err(|over| (over.why, over.ago.map(|ago| ago.as_nanos())))
}

#[test]
fn h1_at_the_deadline_itself_the_grant_is_over() {
    for phase in [Phase::Held, Phase::Sealing] {
        let row = HeldRow::of(&lease(phase), Some(&session(SessionState::Live)), &authority());
        let expired = Ending::Session(EndReason::Expired);
        assert_eq!(judged(&row, &token(2, 20), 999), Ok(()));
        assert_eq!(judged(&row, &token(2, 20), 1_000), Err((expired, Some(0))));
        assert_eq!(judged(&row, &token(2, 20), 1_007), Err((expired, Some(7))));
    }
}

#[test]
fn a_grant_that_is_not_the_newest_one_is_over() {
    let row = HeldRow::of(&lease(Phase::Held), Some(&session(SessionState::Live)), &authority());
    assert_eq!(judged(&row, &token(1, 10), 310), Err((Ending::Superseded, Some(10))));
    assert_eq!(judged(&row, &token(2, 21), 310), Err((Ending::Superseded, Some(10))));
    assert_eq!(judged(&row, &token(3, 30), 310), Err((Ending::Session(EndReason::Restored), None)));
    let over = still_held(None, &token(2, 20), at(1)).unwrap_err();
    assert_eq!((over.why, over.current, over.holder), (Ending::Unknown, None, None));
}

#[test]
fn a_grant_without_a_living_session_is_over() {
    let (now, mine) = (500, token(2, 20));
    for why in EndReason::ALL {
        let ended = session(SessionState::Ended { why, at: at(450) });
        let row = HeldRow::of(&lease(Phase::Held), Some(&ended), &authority());
        assert_eq!(judged(&row, &mine, now), Err((Ending::Session(why), Some(50))));
    }
    let former = SessionRecord { incarnation: authority().incarnation + 1, ..session(SessionState::Live) };
    let row = HeldRow::of(&lease(Phase::Held), Some(&former), &authority());
    assert_eq!(judged(&row, &mine, now), Err((Ending::Session(EndReason::Restored), None)));
    assert_eq!(judged(&HeldRow::of(&lease(Phase::Held), None, &authority()), &mine, now), Err((Ending::Swept, None)));
}

#[test]
fn a_grant_that_was_given_up_is_over_though_its_session_lives() {
    let cut = Epoch::new(2).unwrap();
    let phases = [
        (Phase::Free, Ending::Free),
        (Phase::Completed { outcome: Outcome::new("done").unwrap() }, Ending::Completed),
        (Phase::Retiring { cut, forgotten: BTreeSet::new() }, Ending::Retiring),
    ];
    for (phase, why) in phases {
        let row = HeldRow::of(&lease(phase), Some(&session(SessionState::Live)), &authority());
        assert_eq!(judged(&row, &token(2, 20), 500), Err((why, None)));
    }
}

#[test]
fn every_ending_has_a_name_of_its_own_and_the_message_says_who_since_when_and_what_to_do() {
    for ending in Ending::ALL {
        assert_eq!(Ending::from_name(ending.name()), Some(ending));
    }
    assert_eq!(Ending::from_name("held"), None);
    for why in EndReason::ALL {
        assert_eq!(Ending::from_name(why.name()), Some(Ending::Session(why)));
    }
    let row = HeldRow::of(&lease(Phase::Held), Some(&session(SessionState::Live)), &authority());
    let late = DEADLINE.after(Duration::from_millis(1_200));
    let over = still_held(Some(&row), &token(2, 20), late).unwrap_err();
    assert_eq!(
        over.to_string(),
        "over: epoch 2 was shown, and of its grant the authority says that its deadline passed (1.2s ago); the newest \
         grant is epoch 2 of alice; stop this worker"
    );
}
