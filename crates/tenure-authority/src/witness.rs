//! What was seen of a store, kept outside of it: a store that went back in time does not know it by itself.

mod folder;
mod paper;
mod scribe;

pub use folder::{WitnessError, WitnessFolder};
#[cfg(feature = "sqlite")]
pub(crate) use paper::{Found, Paper};
pub use scribe::Scribe;

use std::fmt::Write as _;
use std::time::Duration;
use tenure_core::record::Seen;
use tenure_core::{StoreIdentity, Ttl};

/// The newest that was seen of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Which store.
    pub identity: StoreIdentity,
    /// The newest point of its history.
    pub seen: Seen,
    /// The longest ttl that its sessions may have.
    pub max_ttl: Ttl,
    /// The longest ttl that one of its sessions was given; `None` when that is not watched.
    pub longest_ttl: Option<Ttl>,
    /// Which file it was, where the store is a file.
    pub file: Option<FileMark>,
}

/// What tells a file from its copies, also after a reboot: a device's number may be another one then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMark {
    /// The number of its inode.
    pub inode: u64,
    /// When it was made, in nanoseconds of the wall clock; `None` where the file system does not say.
    pub born: Option<u128>,
}

/// The first line of each witness.
const TITLE: &str = "tenure witness 1";

impl Witness {
    /// As it stands in a file: a line for each value, for people as well.
    fn text(&self) -> String {
        let mut text = format!(
            "{TITLE}\nstore {}\nincarnation {}\nnumber {}\nmax_ttl_ns {}\n",
            self.identity,
            self.seen.incarnation,
            self.seen.number,
            self.max_ttl.get().as_nanos()
        );
        // Writing to a text does not fail.
        if let Some(longest) = self.longest_ttl {
            let _ = writeln!(text, "longest_ttl_ns {}", longest.get().as_nanos());
        }
        if let Some(file) = self.file {
            let _ = writeln!(text, "inode {}", file.inode);
        }
        if let Some(born) = self.file.and_then(|file| file.born) {
            let _ = writeln!(text, "born_ns {born}");
        }
        // Whatever was cut off lacks it.
        text.push_str("end\n");
        text
    }

    /// `None`: it is damaged, or of another version.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_prefix(TITLE)?.strip_suffix("end\n")?.lines().skip(1);
        let mut next = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let identity = StoreIdentity::new(next("store")?).ok()?;
        let seen = Seen { incarnation: next("incarnation")?.parse().ok()?, number: next("number")?.parse().ok()? };
        let max_ttl = ttl(&next("max_ttl_ns")?)?;
        let mut witness = Self { identity, seen, max_ttl, longest_ttl: None, file: None };
        for line in lines {
            let (name, value) = line.split_once(' ')?;
            match name {
                "longest_ttl_ns" => witness.longest_ttl = Some(ttl(value)?),
                "inode" => witness.file = Some(FileMark { inode: value.parse().ok()?, born: None }),
                "born_ns" => witness.file.as_mut()?.born = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        Some(witness)
    }
}

fn ttl(nanos: &str) -> Option<Ttl> {
    Ttl::new(Duration::from_nanos(nanos.parse().ok()?)).ok()
}

#[cfg(test)]
mod tests;
