use super::*;
use tenure::authority::WallTime;
use tenure::core::Instant;
use tenure::core::record::Transition;

fn row(number: u64, event: Event, session: u128) -> Recorded {
    let transition = Transition {
        at: Instant::from_nanos(1),
        event,
        resource: None,
        session: Some(SessionId::from_bits(session)),
        epoch: None,
        grant: None,
        actor: None,
        why: None,
    };
    Recorded { number, wall: WallTime::default(), transition }
}

#[test]
fn a_grant_that_the_next_one_follows_has_ended_in_between() {
    let rows = [
        row(2, Event::Granted, 1),
        row(3, Event::Announced, 1),
        row(9, Event::Granted, 2),
        row(11, Event::Released, 2),
        row(12, Event::Granted, 3),
    ];
    let session = SessionId::from_bits;
    let first = || Gap { session: session(1), from: 2, to: 9 };
    assert_eq!(gaps(&rows, false), [first()]);
    assert_eq!(gaps(&rows, true), [first(), Gap { session: session(3), from: 12, to: u64::MAX }]);
    assert_eq!(gaps(&rows[..4], true), [first()], "a released one needs no other end");
}
