//! The suite that every sink passes, under each of its rules. Each function checks a clause of [`Sink`]'s contract.
//!
//! A sink's own tests implement [`SinkUnderTest`] and call [`run_all`]. Where a sink cannot hold a guarantee, it says so
//! in its [`Capabilities`], and the suite checks what it promises instead.

mod barrier;
mod generations;
mod held;
mod ledger;
mod listing;
mod memory;
mod operations;
mod races;
mod tokens;
mod world;

pub use ledger::{LedgerUnderTest, run_ledger};
pub use world::answered;

use crate::{Lookup, Sink, SinkError};
use tenure_core::fence::Rule;
use tenure_core::{Ending, OperationId, ResourceName, Token, Verdict};
use world::World;

/// A sink with a way to write through it. The effect sets the one value of the token's resource; the digest is of that
/// value, and the outcome is `wrote VALUE`.
pub trait SinkUnderTest: Send + Sync {
    /// The sealing side. Its bound on waiting should be short, some hundred milliseconds.
    fn sink(&self) -> &dyn Sink;

    /// What it can hold.
    fn capabilities(&self) -> Capabilities;

    /// The same place, opened anew with nothing shared in memory, as another process would.
    fn another(&self) -> Box<dyn SinkUnderTest>;

    /// Opens a sink where there is none. Returns the error of the opening, and whether something is there afterwards.
    fn open_missing(&self) -> (Option<SinkError>, bool);

    /// Checks the token, sets the value, and records the operation if there is one.
    ///
    /// # Errors
    /// The sink's.
    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError>;

    /// The same, but the effect fails after the token was checked and admitted. What a caller should do then is done.
    fn write_failing(&self, token: &Token, operation: Option<&OperationId>);

    /// Looks an operation up.
    ///
    /// # Errors
    /// The sink's.
    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError>;

    /// The value that stands, past every fence, as a reader sees it.
    fn value(&self, resource: &ResourceName) -> Option<String>;

    /// A transaction that has checked the token and was admitted, and has not ended.
    fn hold(&self, token: &Token) -> Box<dyn Held + '_>;

    /// The authority's records in the same database, as the suite sets them. Only a sink under [`Rule::Held`] has one.
    fn authority(&self) -> Option<&dyn SetAuthority> {
        None
    }
}

/// Sets what the authority in a sink's own database says.
pub trait SetAuthority {
    /// The grant of this token stands for long, unless a newer epoch of its resource was granted.
    ///
    /// # Errors
    /// What the database says, when it is busy.
    fn grants(&self, token: &Token) -> Result<(), SinkError>;

    /// The deadline of the newest grants is now, as exactly as this clock can be set. It works while a transaction is open.
    fn reaches_the_deadline(&self);

    /// The newest grant of the resource ends so; `Unknown` takes the record away.
    ///
    /// # Errors
    /// What the database says, when it is busy.
    fn ends(&self, token: &Token, why: Ending) -> Result<(), SinkError>;
}

/// A transaction that is open.
pub trait Held {
    /// Sets the value and commits. `Err` when the sink has ended the transaction meanwhile, or ends it now.
    ///
    /// # Errors
    /// What the sink says.
    fn finish(self: Box<Self>, value: &str) -> Result<Verdict, String>;
}

/// What a sink can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// V4: a stopped writer cannot hold off a seal past the bound. Without it the seal ends within the bound with a
    /// transient error, and has sealed nothing.
    pub seals_past_a_stopped_writer: bool,
}

/// Runs every clause that the rule of the made sinks has, each on a sink of its own. Prints each name before it runs.
///
/// # Panics
/// When a clause does not hold.
pub fn run_all(make: impl Fn() -> Box<dyn SinkUnderTest>) {
    let rule = make().sink().rule();
    for (name, clause) in clauses(rule) {
        eprintln!("  {} {name}", rule.name());
        clause(&World::new(make()));
    }
}

type Clause = (&'static str, fn(&World));

fn clauses(rule: Rule) -> Vec<Clause> {
    let sealed = [generations::SEALED, memory::SEALED, barrier::SEALED, tokens::SEALED].concat();
    let own = match rule {
        Rule::Sealed => sealed,
        Rule::HighWater => tokens::HIGH_WATER.to_vec(),
        Rule::Held => [sealed, held::HELD.to_vec()].concat(),
    };
    [tokens::BOTH, operations::BOTH, memory::BOTH, races::BOTH, listing::BOTH].concat().into_iter().chain(own).collect()
}
