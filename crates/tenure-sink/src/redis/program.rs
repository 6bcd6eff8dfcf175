//! The verbs: functions of a library, or the same text as scripts where there are no functions.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// The number of the library. Raised with each change of its text once it was released: servers keep the libraries of
/// several versions side by side, so that no program runs another one's verbs.
const NUMBER: u32 = 2;

const HEAD: &str = include_str!("lua/head.lua");

/// What a server can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Write,
    Lookup,
    Mend,
    Describe,
    Seal,
    Forget,
    Reopen,
    Rows,
    Create,
    Rights,
}

impl Verb {
    const ALL: [Self; 10] = [
        Self::Write,
        Self::Lookup,
        Self::Mend,
        Self::Describe,
        Self::Seal,
        Self::Forget,
        Self::Reopen,
        Self::Rows,
        Self::Create,
        Self::Rights,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Lookup => "lookup",
            Self::Mend => "mend",
            Self::Describe => "describe",
            Self::Seal => "seal",
            Self::Forget => "forget",
            Self::Reopen => "reopen",
            Self::Rows => "rows",
            Self::Create => "create",
            Self::Rights => "rights",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Write => include_str!("lua/write.lua"),
            Self::Lookup => include_str!("lua/lookup.lua"),
            Self::Mend => include_str!("lua/mend.lua"),
            Self::Describe => include_str!("lua/describe.lua"),
            Self::Seal => include_str!("lua/seal.lua"),
            Self::Forget => include_str!("lua/forget.lua"),
            Self::Reopen => include_str!("lua/reopen.lua"),
            Self::Rows => include_str!("lua/rows.lua"),
            Self::Create => include_str!("lua/create.lua"),
            Self::Rights => include_str!("lua/rights.lua"),
        }
    }

    /// A full server still answers these. The others it refuses before they begin.
    const fn only_reads(self) -> bool {
        matches!(self, Self::Describe | Self::Rows | Self::Rights)
    }

    pub(super) fn program(self) -> Arc<Program> {
        static ALL: LazyLock<[Arc<Program>; 10]> = LazyLock::new(|| {
            Verb::ALL.map(|verb| {
                let function = Some(format!("tenure{NUMBER}_{}", verb.name()));
                Arc::new(Program::new(function, format!("{HEAD}{}", verb.text())))
            })
        });
        Arc::clone(&ALL[self as usize])
    }
}

/// The library, as `FUNCTION LOAD` takes it.
pub(super) static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    // Functions get their keys and arguments as parameters; the shared part sees them as these two.
    let mut text = format!("#!lua name=tenure{NUMBER}\nlocal KEYS, ARGV\n{HEAD}");
    for verb in Verb::ALL {
        let flags = if verb.only_reads() { ", flags = {'no-writes'}" } else { "" };
        let (name, body) = (verb.name(), verb.text());
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "redis.register_function({{function_name = 'tenure{NUMBER}_{name}', callback = function(keys, args)\n\
             KEYS, ARGV = keys, args\n{body}end{flags}}})\n"
        );
    }
    text
});

/// One that a server can run.
#[derive(Debug)]
pub(super) struct Program {
    /// Its name in the library; a caller's own script is in none.
    pub(super) function: Option<String>,
    pub(super) text: String,
    pub(super) hash: String,
}

impl Program {
    fn new(function: Option<String>, text: String) -> Self {
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { function, text, hash }
    }

    /// A caller's script behind the check.
    pub(super) fn of_body(body: &str) -> Self {
        let behind = include_str!("lua/body.lua");
        Self::new(None, format!("{HEAD}local function body(redis, KEYS, ARGV)\n{body}\nend\n{behind}"))
    }
}

#[cfg(test)]
mod tests;
