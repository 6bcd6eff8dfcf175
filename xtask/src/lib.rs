//! The project's own commands. `cargo xtask help` lists them.
//!
//! * [`steps`]: what `cargo xtask test` runs, in order.
//! * [`setup`]: what a machine must have before the steps can run.
//! * [`runner`]: runs steps, times them, stops at the first failure and says what to type.
//! * [`mutants`]: `cargo xtask break`: each guarantee broken on purpose, and who notices.
//! * [`tidy`]: the rules of the tree, each a pure function with a failing case of its own.

pub mod call;
pub mod cli;
pub mod mutants;
pub mod runner;
pub mod setup;
pub mod steps;
pub mod tidy;
pub mod workspace;
