//! How a verb comes to its authority: the flag, then the environment, then the configuration file.

use crate::owner::Who;
use crate::problem::Problem;
use crate::settings::{self, Color, Settings};
use std::path::PathBuf;
use tenure::authority::{Authority, Clock, Scope, store};
use tenure::blocking::wait_for;
use tenure::core::decide::Keys;
use tenure::core::{Actor, address};

/// Said of each option and not once of all: what a verb declares behind these would otherwise stand under it as well.
const HEADING: &str = "Authority";

/// Where the authority is, and who asks.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Access {
    /// The authority's address, such as sqlite:/var/lib/tenure.db, postgres://HOST/DATABASE, redis://HOST,
    /// redis+sentinel://HOST,HOST/PRIMARY or etcd://HOST,HOST. Without it, the configuration file's, or a file in your
    /// folder for state, which is made when it is first used. Everybody on this machine can read the words of a command: a
    /// password belongs into TENURE_AUTHORITY or the configuration file.
    #[arg(long, help_heading = HEADING, env = "TENURE_AUTHORITY", value_name = "URL", hide_env_values = true)]
    authority: Option<String>,
    /// Who you are, for refusals and for the history. Without it, the configuration file's, or your user name and host.
    #[arg(long, help_heading = HEADING, env = "TENURE_OWNER", value_name = "NAME", hide_env_values = true)]
    owner: Option<String>,
    /// The configuration file. Without it, ./tenure.toml, then tenure/tenure.toml in your folder for settings.
    #[arg(long, help_heading = HEADING, env = "TENURE_CONFIG", value_name = "FILE", hide_env_values = true)]
    config: Option<PathBuf>,
    /// When to write in colours.
    #[arg(long, help_heading = HEADING, value_name = "WHEN", value_enum)]
    color: Option<Color>,
}

/// What a verb works with after the flags, the environment and the file were put together.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The authority's address.
    pub(crate) url: String,
    /// Who asks; not yet of a process.
    pub(crate) who: Who,
    /// What the file says.
    pub(crate) settings: Settings,
}

impl Access {
    /// Who named the authority's address.
    pub(crate) fn named_by(&self, settings: &Settings) -> String {
        let by_variable = std::env::var("TENURE_AUTHORITY").ok();
        match (&self.authority, &settings.authority, &settings.file) {
            (Some(url), _, _) if by_variable.as_ref() == Some(url) => "TENURE_AUTHORITY".to_owned(),
            (Some(_), _, _) => "--authority".to_owned(),
            (None, Some(_), Some(file)) => file.display().to_string(),
            _ => "nobody: the usual place".to_owned(),
        }
    }

    /// Who asks, for a verb that asks no authority.
    pub(crate) fn who(&self) -> Result<Who, Problem> {
        self.person().map(|(who, _)| who)
    }

    fn person(&self) -> Result<(Who, Settings), Problem> {
        let settings = Settings::load(self.config.as_deref())?;
        self.color.or(settings.color).unwrap_or_default().apply();
        Ok((Who::here(self.owner.as_deref().or(settings.owner.as_deref())), settings))
    }

    /// Puts them together. Nothing is opened yet.
    pub(crate) fn setup(&self) -> Result<Setup, Problem> {
        let (who, settings) = self.person()?;
        let url = match self.authority.clone().or_else(|| settings.authority.clone()) {
            Some(url) => url,
            None => usual_authority()?,
        };
        Ok(Setup { url, who, settings })
    }
}

impl Setup {
    /// Opens the authority, for looking and for what only an operator does.
    pub(crate) fn authority(&self) -> Result<Authority, Problem> {
        Ok(Authority::new(store::connect(&self.url, Clock::from_env()?)?))
    }

    /// The same for what makes no sense where nothing was ever held: a store that is not there is not made.
    pub(crate) fn existing(&self) -> Result<Authority, Problem> {
        Ok(Authority::new(store::connect(&self.shared_url(), Clock::from_env()?)?))
    }

    /// Connects as a worker.
    pub(crate) fn connect(&self, owner: &Who) -> Result<tenure::Tenure, Problem> {
        let builder = tenure::Tenure::builder().owner(owner.to_string());
        let builder = match self.witness() {
            Some(folder) => builder.witness(folder),
            None => builder,
        };
        let builder = match crate::keys::folder() {
            Some(folder) => builder.keys(folder),
            None => builder,
        };
        wait_for(builder.connect(&self.url)).map_err(|error| match error {
            tenure::ConnectError::Store(error) => error.into(),
            tenure::ConnectError::Name(error) => error.into(),
            error => Problem::unavailable(error),
        })
    }

    /// Where this machine keeps what it has seen of authorities on a network. A file has its witness beside it.
    fn witness(&self) -> Option<PathBuf> {
        let is_file = self.url.starts_with("sqlite:");
        settings::state_home().filter(|_| !is_file).map(|folder| folder.join("tenure").join("witness"))
    }

    /// The address as another process understands it, which may work in another folder, and which is not to make a store
    /// where none is.
    pub(crate) fn shared_url(&self) -> String {
        store::shared(&self.url)
    }

    /// The address as it may be shown: without a password.
    pub(crate) fn shown_url(&self) -> String {
        store::shown(&self.url)
    }

    /// Who does it, for the history.
    pub(crate) fn actor(&self) -> Result<Actor, Problem> {
        Ok(Actor::new(self.who.to_string())?)
    }
}

/// The authority that a verb asks only when it is told to: the address, or for `--authority` alone the one that
/// `TENURE_AUTHORITY` or the configuration file names, so that a password stays out of the command line.
pub(crate) fn named_authority(named: &str) -> Result<String, Problem> {
    let by_file = || Settings::load(None).map(|settings| settings.authority);
    let url = match (named, std::env::var("TENURE_AUTHORITY")) {
        ("", Ok(url)) if !url.is_empty() => Some(url),
        ("", _) => by_file()?,
        (url, _) => Some(url.to_owned()),
    };
    url.ok_or_else(|| Problem::usage("no authority is named: give --authority URL, or set TENURE_AUTHORITY"))
}

/// Opens it, and asks it once. One that belongs to a process is nobody else's.
pub(crate) fn open_shared(url: &str) -> Result<Authority, Problem> {
    let store = store::connect(url, Clock::from_env()?)?;
    if store.capabilities().scope == Scope::Process {
        return Err(Problem::usage(format_args!(
            "{} is the memory of one process, and several take part here: name another authority",
            store::shown(url)
        )));
    }
    wait_for(store.read(&Keys::default()))?;
    Ok(Authority::new(store))
}

fn usual_authority() -> Result<String, Problem> {
    let nowhere =
        || Problem::usage("no authority is named, and there is no home folder to keep one in: give --authority URL");
    let folder = settings::state_home().ok_or_else(nowhere)?.join("tenure");
    std::fs::create_dir_all(&folder)
        .map_err(|error| Problem::failure(format_args!("{} cannot be made: {error}", folder.display())))?;
    let path = folder.join("authority.db");
    Ok(format!("sqlite:{}?create=true", address::escaped(&path.to_string_lossy())))
}
