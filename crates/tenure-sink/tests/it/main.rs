//! The tests of the sinks, in one binary.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, that is how to fail")]

mod authority;
mod conformance_file;
mod conformance_sqlite;
mod conformance_sqlx;
mod file_bad_input;
mod held;
mod http;
mod ledger;
mod object;
mod postgres;
mod process;
mod processes;
mod redis;
mod signed;
mod sqlite_bad_input;
mod sqlite_transaction;

use tenure_core::{Epoch, GrantId, OperationId, ResourceName, SinkId, Token};

fn token(epoch: u64) -> Token {
    Token {
        resource: ResourceName::new("r").unwrap(),
        epoch: Epoch::new(epoch).unwrap(),
        grant: GrantId::from_bits(epoch.into()),
    }
}

fn operation(name: &str) -> OperationId {
    OperationId::new(name).unwrap()
}

fn id() -> SinkId {
    SinkId::new("sink").unwrap()
}

/// Seals as a candidate does, whatever the sink.
fn seal(sink: &dyn tenure_sink::Sink, token: &Token) -> Result<tenure_core::fence::Sealing, tenure_sink::SinkError> {
    use tenure_sink::conformance::answered;
    let generation = answered(sink.describe(&token.resource))?.generation;
    answered(sink.seal(token, &generation, &std::collections::BTreeSet::from([id()])))
}
