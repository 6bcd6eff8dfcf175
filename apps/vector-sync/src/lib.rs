//! A searchable vector index per tenant, kept in step with the tenant's documents by whichever worker holds its lease.
//!
//! # What is not promised
//!
//! * **Not that a round that lost its lease stops at once.** It stops at its next checkpoint, at most one batch later.
//!   What it still sends is refused, or lands in a generation that nobody reads.
//! * **Not that a search sees the newest documents.** It sees one whole generation: the one that is live.
//! * **Not that a model call is made once.** Its answer is kept as soon as it is there; a worker that dies before that has
//!   paid for one batch in vain.
//!
//! # How it goes
//!
//! One *round* builds one *generation* for one *tenant*, under one lease. The generation bears the lease's epoch. It is
//! written beside the live one, in batches, verified, and then published by one fenced compare-and-swap of the tenant's
//! alias. A worker that lost its lease cannot publish: the fence refuses its token in the same transaction.
//!
//! | stage | what it leaves | after a crash here |
//! |---|---|---|
//! | listed | nothing | the live version is whole |
//! | chunked | a file without a name, gone with the process | the same |
//! | embedded | vectors in the cache, by the hash of their text | the next round uses them |
//! | written | a shadow generation under the epoch | it is cleared away by a later round |
//! | verified | the same | the same |
//! | switched | the new version is live, all of it | the next round writes the record that is missing |
//! | recorded | the round's record | nothing is missing |

pub mod chunk;
pub mod embed;
pub mod index;
pub mod manifest;
pub mod outcome;
pub mod patience;
pub mod point;
pub mod rollback;
pub mod round;
pub mod source;
pub mod spool;
pub mod stage;
pub mod tell;
pub mod tenant;
pub mod turn;
