//! The authority's judgement, told as stories: a world with one store, whose clock moves by hand.

mod field;
mod grants;
mod operator;
mod restores;
mod sessions;
mod world;
