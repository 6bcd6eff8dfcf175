//! Every verb on every store, on real servers.

mod authority;
mod demo;
mod doctor;
mod moving;
mod secret;
mod unreachable;

use crate::site::Site;
use std::sync::atomic::{AtomicU32, Ordering};
use tenure_servers::{Etcd, Postgres, Redis};

/// The kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Redis,
    Etcd,
}

impl Kind {
    /// A site on a store of this kind that is nobody else's.
    pub(crate) fn site(self) -> Site {
        match self.fresh() {
            Some(url) => Site::on(url),
            None => Site::new(),
        }
    }

    /// The address of a store that is not made yet, on the server that the tests share; `None` for a file.
    pub(crate) fn fresh(self) -> Option<String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("cli-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(Postgres::shared().database()),
            Self::Redis => Some(format!("{}?name={name}", Redis::shared().url())),
            Self::Etcd => Some(format!("{}?name={name}", Etcd::shared().url())),
        }
    }

    /// Whether this process's look tells how much of a lease is left.
    pub(crate) fn tells_what_is_left(self) -> bool {
        self != Self::Etcd
    }
}

/// A test of each of these for each kind of store.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use crate::stores::Kind;

            #[test]
            fn sqlite() {
                super::$name(Kind::Sqlite);
            }

            #[test]
            fn postgres() {
                super::$name(Kind::Postgres);
            }

            #[test]
            fn redis() {
                super::$name(Kind::Redis);
            }

            #[test]
            fn etcd() {
                super::$name(Kind::Etcd);
            }
        })+
    };
}
pub(crate) use on_every_store;
