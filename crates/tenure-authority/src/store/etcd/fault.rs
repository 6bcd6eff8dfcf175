//! What went wrong, and what that means for a write.

use crate::StoreError;
use std::error::Error;

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The member has certainly not got the request.
    NotSent(String),
    /// Nobody can tell whether it was done.
    Lost(String),
    /// The server said so, with a code of gRPC.
    Said { code: u32, message: String },
}

impl Fault {
    pub(super) fn of(error: &reqwest::Error) -> Self {
        // The address is left out: it may hold what nobody should read.
        let mut why = String::new();
        let mut cause: Option<&dyn Error> = Some(error);
        while let Some(error) = cause {
            if error.source().is_none() || why.is_empty() {
                why = error.to_string();
            }
            cause = error.source();
        }
        if error.is_timeout() {
            "it does not answer in time".clone_into(&mut why);
        }
        if error.is_connect() || error.is_builder() { Self::NotSent(why) } else { Self::Lost(why) }
    }

    pub(super) fn nonsense(text: &str) -> Self {
        let begin: String = text.chars().take(80).collect();
        Self::Lost(format!("an answer makes no sense: {begin:?}"))
    }

    /// Whether every other member would say the same.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Said { code, .. } if is_refusal(*code))
    }

    /// Whether a write was certainly not made. What [`is_full`](Self::is_full) says must be looked into first, as
    /// `Shared::write` does.
    pub(super) fn is_certain(&self) -> bool {
        match self {
            Self::NotSent(_) => true,
            Self::Lost(_) => false,
            Self::Said { code, .. } => is_refusal(*code),
        }
    }

    /// Whether the server said that it is full. It says so before it takes a write, and also *after it has made* one that
    /// crossed the limit.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Said { code: 8, message } if message.contains("space"))
    }

    /// Whether a lease that was named is not there any more.
    pub(super) fn is_without_lease(&self) -> bool {
        matches!(self, Self::Said { code: 5, message } if message.contains("lease not found"))
    }

    /// Whether the request holds too much, and a smaller one may pass.
    pub(super) fn is_too_large(&self) -> bool {
        matches!(self, Self::Said { code: 3, message } if message.contains("too large") || message.contains("too many"))
    }

    pub(super) fn is_unauthenticated(&self) -> bool {
        matches!(self, Self::Said { code: 16, .. })
            || matches!(self, Self::Said { message, .. }
                if message.contains("invalid auth token") || message.contains("revision of auth store is old"))
    }

    /// Whether a revision that was asked for is not kept any more.
    pub(super) fn is_compacted(&self) -> bool {
        matches!(self, Self::Said { message, .. } if message.contains("compacted"))
    }

    pub(super) fn into_error(self, shown: &str) -> StoreError {
        match self {
            // The words of rustls for a certificate that nobody vouches for, or that is another server's.
            Self::NotSent(why) if why.contains("invalid peer certificate") => StoreError::Address {
                url: shown.to_owned(),
                why: format!(
                    "{why}: name the file with the authority that signed the server's certificate (tls_ca=FILE), and \
                     the server as its certificate does"
                ),
            },
            Self::NotSent(why) | Self::Lost(why) => StoreError::Unavailable(format!("{shown}: {why}")),
            Self::Said { code: 8, message } if message.contains("space") => StoreError::NotWritable(format!(
                "{shown}: {message}; compact and defragment it (`etcdctl compact`, `etcdctl defrag`) or raise \
                 --quota-backend-bytes, then `etcdctl alarm disarm`"
            )),
            Self::Said { code: 3, message } if message.contains("too large") => {
                StoreError::NotWritable(format!("{shown}: {message}; raise --max-request-bytes of the servers"))
            }
            Self::Said { code: 7, message } => StoreError::NotWritable(format!(
                "{shown}: {message}; give the user the right to read and write the keys of the store"
            )),
            Self::Said { message, .. } if message.contains("user name is empty") => StoreError::Address {
                url: shown.to_owned(),
                why: "the server asks who you are; write etcd://USER:PASSWORD@HOST:PORT".to_owned(),
            },
            Self::Said { message, .. } if message.contains("authentication failed") => {
                StoreError::Address { url: shown.to_owned(), why: message }
            }
            Self::Said { message, .. } => StoreError::Unavailable(format!("{shown}: {message}")),
        }
    }
}

/// The codes by which nothing was done: invalid argument, not found, already there, no permission, resource exhausted,
/// failed precondition, out of range, unimplemented, unauthenticated. The others (unavailable, deadline, …) are also
/// said of a write that is still under way.
const fn is_refusal(code: u32) -> bool {
    matches!(code, 3 | 5 | 6 | 7 | 8 | 9 | 11 | 12 | 16)
}
