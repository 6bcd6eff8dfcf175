//! The keys that grants are signed with.

use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::table::{Column, Table, mark};
use crate::screen::when::{relative, rfc3339, short};
use crate::screen::{Out, Tint, say, width};
use crate::settings;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use tempfile::NamedTempFile;
use tenure::authority::WallTime;
use tenure::grant::{KeyError, KeyFolder, KeyId, KeyInfo, KeyState, UnixTime};

/// The keys with which grants are signed, for receivers that ask for a signature.
///
/// A worker signs with the keys in its folder, which are made with the first signature, or by `make`. There is always one key that signs and one
/// that will sign after the next rotation; receivers are given the public halves of both, so that a rotation needs nothing
/// of them. Whoever can read the folder can sign.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The folder with the keys. Without it, tenure/keys in your folder for state.
    #[arg(long = "keys", global = true, env = "TENURE_KEYS", value_name = "DIR", hide_env_values = true)]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

const AFTER_HELP: &str = "\
Examples:
  tenure keys make
  tenure keys ls
  tenure keys export --file /etc/shop/tenure-keys.json
  tenure keys rotate
  tenure keys remove KEY --at-once

Exit status:
  0   done
  1   there is no such key, or it is in use
  70  the folder, or a file, cannot be used, or there are no keys in it";

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Make(Make),
    Ls(Ls),
    Export(Export),
    Rotate(Rotate),
    Remove(Remove),
}

/// Make the keys before the first signature does, where there are none, so that receivers can be given the public ones.
///
/// Say the folder that the workers have: what is made elsewhere signs nothing.
#[derive(Debug, clap::Args)]
struct Make {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// List the keys: which one signs, which is next, and until when the old ones are known.
#[derive(Debug, clap::Args)]
struct Ls {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Print the public keys, for receivers: a JSON Web Key Set.
///
/// A receiver verifies with what it was given last. Give it the keys again after each rotation, at the latest before the next
/// one.
#[derive(Debug, clap::Args)]
struct Export {
    /// Write them into this file, in one step, instead of printing them.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Let the next key sign from now on, and make another next one.
///
/// What the old key signed counts until it has expired, some minutes later. Receivers know the new key already, if they were
/// given the public keys since the last rotation.
#[derive(Debug, clap::Args)]
struct Rotate {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Take a key out that somebody else may have, or that is not needed any more.
///
/// The key that signs is not taken out: rotate first. Receivers accept what the key signs until they are given the public keys
/// again.
#[derive(Debug, clap::Args)]
struct Remove {
    /// The key's id, as `ls` shows it.
    id: KeyId,
    /// Also when what it signed has not expired yet: holders sign anew, and what is under way is refused.
    #[arg(long)]
    at_once: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const COLUMNS: [Column; 4] =
    [Column::text("KEY"), Column::text("STATE"), Column::text("MADE"), Column::flexible("KNOWN UNTIL")];

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let nowhere =
            || Problem::usage("no folder is named, and there is no home folder to keep keys in: give --keys DIR");
        let folder = KeyFolder::new(self.folder.clone().or_else(usual_folder).ok_or_else(nowhere)?);
        match &self.verb {
            Verb::Make(args) => show(&folder, &folder.make()?, args.json),
            Verb::Ls(args) => show(&folder, &folder.list()?, args.json),
            Verb::Export(args) => args.run(&folder),
            Verb::Rotate(args) => args.run(&folder),
            Verb::Remove(args) => args.run(&folder),
        }
    }
}

/// Where keys are when nobody has said where.
pub(crate) fn usual_folder() -> Option<PathBuf> {
    settings::state_home().map(|folder| folder.join("tenure").join("keys"))
}

/// Where a worker's keys are: named by the environment, or in the usual place.
pub(crate) fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("TENURE_KEYS").filter(|named| !named.is_empty());
    named.map(PathBuf::from).or_else(usual_folder)
}

fn show(folder: &KeyFolder, keys: &[KeyInfo], as_json: bool) -> Result<Exit, Problem> {
    if as_json {
        let keys: Vec<_> = keys.iter().map(shown).collect();
        Out::new().json(&json!({ "folder": folder.path().display().to_string(), "keys": keys }))?;
        return Ok(Exit::Success);
    }
    let (mut table, now) = (Table::new(width(), &COLUMNS), WallTime::now());
    for key in keys {
        let state = mark(if key.state == KeyState::Active { Tint::Good } else { Tint::Faint }, key.state.name());
        table.row(vec![key.id.to_string(), state, short(now, wall(key.created)), until(key, now)]);
    }
    Out::new().write(&table.draw())?;
    Ok(Exit::Success)
}

fn until(key: &KeyInfo, now: WallTime) -> String {
    match (key.state, key.known_until.map(wall)) {
        (KeyState::Active, _) => "it signs".to_owned(),
        (KeyState::Next, _) => "it signs after the next rotation".to_owned(),
        (KeyState::Retired, Some(until)) if until > now => relative(now, until),
        (KeyState::Retired, _) => "over; it goes at the next rotation".to_owned(),
    }
}

impl Export {
    fn run(&self, folder: &KeyFolder) -> Result<Exit, Problem> {
        let text = format!("{}\n", folder.public_keys()?.to_json());
        let Some(path) = &self.file else {
            Out::new().write(&text)?;
            return Ok(Exit::Success);
        };
        let unwritten =
            |error: std::io::Error| Problem::failure(format_args!("{} cannot be written: {error}", path.display()));
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
        let mut file = NamedTempFile::new_in(beside).map_err(unwritten)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(unwritten)?;
        // Receivers may be other users: there is nothing secret in it.
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(readable).map_err(unwritten)?;
        file.persist(path).map_err(|error| unwritten(error.error))?;
        Ok(Exit::Success)
    }
}

impl Rotate {
    fn run(&self, folder: &KeyFolder) -> Result<Exit, Problem> {
        let rotation = folder.rotate()?;
        if self.json {
            let gone: Vec<_> = rotation.gone.iter().map(KeyId::as_str).collect();
            Out::new().json(&json!({
                "active": shown(&rotation.active),
                "retired": shown(&rotation.retired),
                "next": shown(&rotation.next),
                "gone": gone,
                "known_for_s": rotation.known_for.as_secs(),
            }))?;
            return Ok(Exit::Success);
        }
        let now = WallTime::now();
        let mut out = Out::new();
        out.line(&format!(
            "Signs from now on: {}, known since {}.",
            rotation.active.id,
            short(now, wall(rotation.active.created))
        ))?;
        out.line(&format!("Retired: {}; what it signed counts until it has expired.", rotation.retired.id))?;
        out.line(&format!(
            "Next: {}. Give the receivers the public keys before the next rotation: tenure keys export",
            rotation.next.id
        ))?;
        if rotation.known_for.as_secs() < SOON {
            say(
                "keys",
                "the key that signs now is a few minutes old: a receiver that was not given it since then refuses what it signs",
            );
        }
        Ok(Exit::Success)
    }
}

/// A key that is younger may not have come to every receiver.
const SOON: u64 = 300;

impl Remove {
    fn run(&self, folder: &KeyFolder) -> Result<Exit, Problem> {
        let removed = folder.remove(&self.id, self.at_once)?;
        if self.json {
            Out::new().json(&json!({ "removed": shown(&removed) }))?;
        } else {
            Out::new().line(&format!(
                "Taken out: {}. Receivers accept what it signs until they are given the public keys again: tenure keys export",
                removed.id
            ))?;
        }
        Ok(Exit::Success)
    }
}

fn shown(key: &KeyInfo) -> Value {
    json!({
        "id": key.id.as_str(),
        "state": key.state.name(),
        "made": rfc3339(wall(key.created)),
        "known_until": key.known_until.map(|until| rfc3339(wall(until))),
    })
}

fn wall(time: UnixTime) -> WallTime {
    WallTime::from_millis(time.as_secs().saturating_mul(1_000))
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        let exit = match &error {
            KeyError::NoKey { .. } | KeyError::InUse { .. } => Exit::Different,
            _ => Exit::Failure,
        };
        Self::new(exit, error)
    }
}
