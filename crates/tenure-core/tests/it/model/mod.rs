//! The protocol, explored: a model drives the very functions of this crate through every order of their steps.
//!
//! Each configuration is a test. One that holds pins the number of its states, so that a change which makes a model
//! vacuous is seen; one that breaks leaves a rule of the protocol out, *in the model's store, sink or driver*, and shows
//! the way to the damage.

mod explore;
mod leases;
mod ledger;
mod renewal;
mod restore;
mod sessions;
pub(crate) mod store;
mod takeover;

use stateright::{Checker, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

/// A model that grows beyond this many generated states is cut off, and its pinned count shows it.
const GENERATED_MAX: usize = 3_000_000;

/// Every `always` is true in every state, every `sometimes` in one, and there are so many states.
fn holds<M>(name: &str, model: M, states: usize)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Eq + Hash + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().threads(2).target_state_count(GENERATED_MAX).spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    for (property, path) in checker.discoveries() {
        println!("  {property}: {} steps", path.into_actions().len());
    }
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states, "{name}: the number of states has changed");
}

/// The property does not hold; prints how that comes about.
fn breaks<M>(name: &str, model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Eq + Hash + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let finish = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = model.checker().finish_when(finish).spawn_bfs().join();
    println!("{name}: {property} breaks ({} states seen)", checker.unique_state_count());
    for action in checker.assert_any_discovery(property).into_actions() {
        println!("  {action:?}");
    }
}
