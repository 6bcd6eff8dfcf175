use super::Holder;
use crate::owner::Who;
use std::time::Duration;
use tenure::authority::TimeSource;
use tenure::core::decide::Refusal;
use tenure::core::record::Owner;
use tenure::core::{InstanceId, OwnerName};
use tenure::{Epoch, ResourceName};

fn held_by(who: &Who) -> Holder {
    let refusal = Refusal::Busy {
        owner: Owner { name: OwnerName::new(who.to_string()).unwrap(), instance: InstanceId::from_bits(7) },
        epoch: Epoch::new(3).unwrap(),
        held_for: Duration::from_secs(33),
        remaining: Duration::from_secs(87),
        sealing: false,
    };
    Holder::refusing(&ResourceName::new("tenant:42").unwrap(), &refusal, TimeSource::Host, &Who::here(Some("nightly")))
        .unwrap()
}

/// A service that is started again after a crash is refused by the lease of its own dead process. Told only "busy", it was
/// started 846 times.
#[test]
fn a_restarted_unit_is_told_that_it_is_its_own_predecessor_and_until_when() {
    let dead = Who { pid: Some(u32::MAX), ..Who::here(Some("nightly")) };
    let holder = held_by(&dead);
    let said = holder.refusal();
    assert!(
        said.contains("your predecessor") && said.contains("free in 87 s") && said.contains("--wait 88s"),
        "{said}"
    );
    assert!(holder.is_dead());
}

#[test]
fn another_run_of_the_same_unit_is_no_predecessor_while_it_lives() {
    let said = held_by(&Who::here(Some("nightly")).process()).refusal();
    assert!(!said.contains("predecessor") && said.contains("which runs here"), "{said}");
}

#[test]
fn a_refusal_says_who_where_since_when_which_epoch_how_long_and_what_next() {
    let said = held_by(&Who::parse("ci@elsewhere/99")).refusal();
    for part in
        ["ci@elsewhere", "pid 99 there", "epoch 3", "(33.0 s ago)", "87 s left", "tenure takeover tenant:42 --reason"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}
