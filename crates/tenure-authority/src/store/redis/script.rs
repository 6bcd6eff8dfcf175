//! The scripts: one per step, so that a step is atomic, and one round trip.

use std::sync::LazyLock;

/// A script, known to servers by its hash.
pub(super) struct Script {
    pub(super) text: String,
    pub(super) hash: String,
}

/// The flags make a server refuse a script before it begins, or not at all: also one that is full, cannot save or is a
/// replica. Without writes, a script runs on a full server as well.
macro_rules! scripts {
    ($($name:ident = $flags:literal, $($part:literal),+;)*) => { $(
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!("#!lua", $flags, "\n", $(include_str!($part)),+))
        });
    )* };
}

scripts! {
    READ = " flags=no-writes", "lua/head.lua", "lua/whole.lua", "lua/read.lua";
    LEASES = " flags=no-writes", "lua/head.lua", "lua/whole.lua", "lua/leases.lua";
    GRANTS = " flags=no-writes", "lua/head.lua", "lua/whole.lua", "lua/grants.lua";
    HISTORY = " flags=no-writes", "lua/head.lua", "lua/whole.lua", "lua/history.lua";
    IDLE = "", "lua/head.lua", "lua/whole.lua", "lua/idle.lua";
    SWAP = "", "lua/head.lua", "lua/swap.lua";
    IMPORT = "", "lua/head.lua", "lua/whole.lua", "lua/import.lua";
    TOUCH = "", "lua/head.lua", "lua/touch.lua";
    CREATE = "", "lua/create.lua";
    RIGHTS = " flags=no-writes", "lua/rights.lua";
}

impl Script {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), hash: redis::Script::new(text).get_hash().to_owned() }
    }
}
