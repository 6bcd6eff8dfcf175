//! A second explorer, exact and breadth first: it answers whether from each state something good can still be reached.
//! The checker's own `eventually` passes over cycles, so it cannot.

use stateright::Model;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// A model that grows beyond this many states does not fit into a test.
const STATES_MAX: usize = 300_000;

/// What an exhaustive search found.
pub(crate) struct Explored<A> {
    pub(crate) states: usize,
    /// A shortest way to a state from which the goal cannot be reached any more, if there is one.
    pub(crate) stuck: Option<Vec<A>>,
}

/// Searches all states, then asks: from every state that satisfies `from`, is there a way to one that satisfies `goal`?
pub(crate) fn explore<M>(
    model: &M,
    from: impl Fn(&M::State) -> bool,
    goal: impl Fn(&M::State) -> bool,
) -> Explored<M::Action>
where
    M: Model,
    M::State: Clone + Debug + Eq + Hash,
    M::Action: Clone + Debug,
{
    let mut index: HashMap<M::State, usize> = HashMap::new();
    let mut states: Vec<M::State> = Vec::new();
    let mut parents: Vec<Option<(usize, M::Action)>> = Vec::new();
    let mut before: Vec<Vec<usize>> = Vec::new();
    for state in model.init_states() {
        index.insert(state.clone(), states.len());
        states.push(state);
        parents.push(None);
        before.push(Vec::new());
    }
    let mut here = 0;
    let mut actions = Vec::new();
    while here < states.len() {
        assert!(states.len() < STATES_MAX, "the model has more than {STATES_MAX} states");
        let state = states[here].clone();
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let Some(next) = model.next_state(&state, action.clone()) else { continue };
            let there = *index.entry(next.clone()).or_insert_with(|| {
                states.push(next);
                parents.push(Some((here, action)));
                before.push(Vec::new());
                states.len() - 1
            });
            before[there].push(here);
        }
        here += 1;
    }
    let mut reaches: Vec<bool> = states.iter().map(&goal).collect();
    let mut open: Vec<usize> = (0..states.len()).filter(|&state| reaches[state]).collect();
    while let Some(state) = open.pop() {
        for &earlier in &before[state] {
            if !std::mem::replace(&mut reaches[earlier], true) {
                open.push(earlier);
            }
        }
    }
    let stuck = (0..states.len()).find(|&state| !reaches[state] && from(&states[state])).map(|state| {
        let mut path = Vec::new();
        let mut at = state;
        while let Some((earlier, action)) = &parents[at] {
            path.push(action.clone());
            at = *earlier;
        }
        path.reverse();
        path
    });
    Explored { states: states.len(), stuck }
}
