//! Signed grants: a token that a receiver can tell from one that somebody made up.
//!
//! # What is not guaranteed
//!
//! * **Not** whose turn it is. A signature says "this was granted"; only the receiver's fence says that it still counts.
//!   A stopped worker's grant is signed as well as its successor's.
//! * **Not** that a grant ends when its signature does. [`Claims::expires`] bounds how long a stolen text can be shown and
//!   how long a retired key must be known. It never is the fence, and a receiver that took it for one would accept a late
//!   write until then.
//! * **Not** a secret between workers. Whoever can read the [`KeyFolder`] can sign anything. With an authority inside the
//!   workers that is every worker, so a signature keeps out who is not one, and nothing more.
//! * **Not** that a text which was seen cannot be shown by somebody else: until it expires it is a password. Send it over TLS.
//!
//! # What is
//!
//! A receiver that seals signed grants alone cannot have its fence raised by a large number: who has no key has no epoch
//! to show. Nothing is read out of a text before its signature was verified, but the id of the key.
//!
//! # The format, and why this one
//!
//! A compact JWS (RFC 7515) with the claims of a JWT (RFC 7519), signed with Ed25519 (RFC 8037), because that is what a
//! stock library of every language verifies in one call. PASETO is the better format, in which there is nothing to choose
//! and so nothing to choose wrong; Biscuit can be narrowed by whoever holds it, which nobody here needs. But both want a
//! library that most languages have only as somebody's first try, and a receiver in Go or Python or Java is the reason why
//! there is a signature at all. What is wrong with JWT is what it leaves open, so nothing is left open here: one algorithm,
//! one `typ`, no header but the three, no claim but the nine, no leeway. There are some hundred lines of it, and they are here
//! rather than in a library, because such libraries are made to accept what others send.

mod claims;
mod compact;
mod error;
mod folder;
mod jwks;
mod key;
mod signed;
mod signer;
mod verifier;
mod wall;

pub use claims::{ALLOWANCE, Claims, LIFETIME};
pub use compact::{BYTES_MAX, TYPE};
pub use error::{KeyError, SignError, VerifyError};
pub use folder::{KeyFolder, KeyInfo, KeyState, Rotation};
pub use jwks::PublicKeys;
pub use key::{KeyId, PublicKey, SigningKey};
pub use signed::SignedGrant;
pub use signer::Signer;
pub use verifier::Verifier;
pub use wall::{UnixTime, WallClock};
