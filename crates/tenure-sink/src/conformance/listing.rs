//! What a sink tells an authority that has forgotten.

use super::Clause;
use super::world::{World, answered, of, patiently, sinks};
use crate::Rows;
use std::collections::BTreeMap;
use tenure_core::fence::{FenceRow, Forgetting, Rule, Sealing};
use tenure_core::{Epoch, ResourceName, Token, Verdict};

pub(super) const BOTH: &[Clause] = &[
    ("a new sink has no rows and no floor", a_new_sink_is_empty),
    ("every fence is listed once, in pieces of any size", every_fence_is_listed_once),
    ("a forgotten resource is not listed, and the floor is", the_forgotten_is_not_listed),
];

fn rows(world: &World, after: Option<&ResourceName>, limit: usize) -> Rows {
    patiently(|| answered(world.sut.sink().rows(after, limit)))
}

/// All rows, read in pieces.
fn all(world: &World, piece: usize) -> BTreeMap<ResourceName, FenceRow> {
    let mut found = BTreeMap::new();
    let mut after: Option<ResourceName> = None;
    loop {
        let page = rows(world, after.as_ref(), piece).rows;
        let is_last = page.len() < piece;
        after = page.last().map(|(resource, _)| resource.clone()).or(after);
        for (resource, row) in page {
            assert_eq!(found.insert(resource.clone(), row), None, "{resource} came twice");
        }
        if is_last {
            return found;
        }
    }
}

/// Registers the token: by a seal, or by its first write.
fn register(world: &World, token: &Token) {
    match world.rule {
        Rule::Sealed | Rule::Held => {
            let generation = world.describe(&token.resource).generation;
            let sealing = world.seal_in(token, &generation, &sinks(&["a", "b"]));
            assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
        }
        Rule::HighWater => assert_eq!(world.write(token, "x"), Verdict::Written),
    }
}

fn a_new_sink_is_empty(world: &World) {
    assert_eq!(rows(world, None, 10), Rows { rows: Vec::new(), floor: None });
}

fn every_fence_is_listed_once(world: &World) {
    let tokens: Vec<Token> = (1..=7).map(|n| of(&format!("r{n}"), n, u128::from(n))).collect();
    tokens.iter().for_each(|token| register(world, token));
    let listed = all(world, 100);
    assert_eq!(listed.len(), tokens.len());
    for token in &tokens {
        let row = listed.get(&token.resource);
        assert_eq!(row, world.describe(&token.resource).row.as_ref(), "of {}", token.resource);
        assert_eq!(row.map(|row| (row.epoch, row.grant)), Some((token.epoch, token.grant)));
    }
    for piece in [1, 2, 3, 7, 8] {
        assert_eq!(all(world, piece), listed, "in pieces of {piece}");
    }
    assert_eq!(all(&World::new(world.sut.another()), 3), listed, "as another process sees it");
}

fn the_forgotten_is_not_listed(world: &World) {
    let (gone, stays) = (of("gone", 3, 1), of("stays", 9, 2));
    register(world, &gone);
    register(world, &stays);
    let cut = Epoch::new(4).unwrap_or_else(|error| unreachable!("{error}"));
    let forgetting = patiently(|| answered(world.sut.sink().forget(&gone.resource, cut)));
    assert_eq!(forgetting, Forgetting::Forget { floor: cut });
    let listed = rows(world, None, 10);
    assert_eq!(listed.floor, Some(cut));
    assert_eq!(listed.rows.iter().map(|(resource, _)| resource).collect::<Vec<_>>(), [&stays.resource]);
}
