use super::*;
use tenure::core::record::{EndReason, Owner};
use tenure::core::{Epoch, GrantId, InstanceId, Outcome, OwnerName, ResourceName, SessionId};

fn lease(phase: Phase) -> LeaseRecord {
    LeaseRecord {
        resource: ResourceName::new("r").unwrap(),
        epoch: Epoch::FIRST,
        grant: GrantId::from_bits(1),
        session: SessionId::from_bits(1),
        owner: Owner { name: OwnerName::new("w").unwrap(), instance: InstanceId::from_bits(1) },
        since: Instant::from_nanos(1),
        phase,
        sinks: [].into(),
    }
}

#[test]
fn a_grant_without_a_valid_session_has_expired() {
    for phase in [Phase::Held, Phase::Sealing] {
        let in_force = if phase == Phase::Held { State::Held } else { State::Sealing };
        assert_eq!(State::of(&lease(phase.clone()), Standing::Valid), in_force);
        for standing in [Standing::Overdue, Standing::Missing, Standing::Ended(EndReason::Closed)] {
            assert_eq!(State::of(&lease(phase.clone()), standing), State::Expired);
        }
    }
    let completed = Phase::Completed { outcome: Outcome::new("x").unwrap() };
    assert_eq!(State::of(&lease(completed), Standing::Missing), State::Completed);
    assert_eq!(State::of(&lease(Phase::Free), Standing::Valid), State::Free);
}
