//! `tenure.toml`: only for what repeats.

use crate::problem::Problem;
use crate::span;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a configuration file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The authority's address.
    pub(crate) authority: Option<String>,
    /// The name under which this user asks.
    pub(crate) owner: Option<String>,
    /// How long a lease lasts without a renewal.
    pub(crate) ttl: Option<Duration>,
    /// When to write in colours.
    pub(crate) color: Option<Color>,
    /// The file; none was found otherwise.
    pub(crate) file: Option<PathBuf>,
}

/// When to write in colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    /// Lets this hold for all that this process writes.
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => {}
            Self::Always => anstream::ColorChoice::Always.write_global(),
            Self::Never => anstream::ColorChoice::Never.write_global(),
        }
    }
}

const KEYS: [&str; 4] = ["authority", "owner", "ttl", "color"];

impl Settings {
    /// The named file, or the first of `./tenure.toml` and `tenure/tenure.toml` in the user's folder for settings that is
    /// there.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, Problem> {
        if let Some(path) = named {
            return Self::read(path);
        }
        let usual = [Some(PathBuf::from("tenure.toml")), config_home().map(|home| home.join("tenure/tenure.toml"))];
        match usual.into_iter().flatten().find(|path| path.is_file()) {
            Some(path) => Self::read(&path),
            None => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Problem::usage(format_args!("{} cannot be read: {error}", path.display())))?;
        let settings = Self::parse(&text)
            .map_err(|why| Problem::usage(format_args!("{} is no configuration: {why}", path.display())))?;
        Ok(Self { file: Some(path.to_owned()), ..settings })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table = text.parse().map_err(|error| unread(text, &error))?;
        let mut settings = Self::default();
        for (key, value) in &table {
            let text = || value.as_str().map(str::to_owned).ok_or_else(|| wrong(key, value, "a text in quotes"));
            match key.as_str() {
                "authority" => settings.authority = Some(text()?),
                "owner" => settings.owner = Some(text()?),
                "ttl" => settings.ttl = Some(span::parse(&text()?).map_err(|why| format!("ttl: {why}"))?),
                "color" => {
                    let color = clap::ValueEnum::from_str(&text()?, false);
                    settings.color = Some(color.map_err(|_| wrong(key, value, "\"auto\", \"always\" or \"never\""))?);
                }
                _ => return Err(unknown(key)),
            }
        }
        Ok(settings)
    }
}

/// The line itself stays unsaid: an address in it may hold a password.
fn unread(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

fn wrong(key: &str, value: impl fmt::Display, right: &str) -> String {
    match key {
        "authority" => format!("{key} does not fit: write {right}"),
        key => format!("{key} = {value} does not fit: write {right}"),
    }
}

fn unknown(key: &str) -> String {
    let near = KEYS.into_iter().map(|known| (strsim::jaro_winkler(&key.to_lowercase(), known), known));
    let nearest = near.max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |(_, known)| known);
    format!("there is no key {key:?}; did you mean {nearest:?}? The keys are {}", KEYS.join(", "))
}

fn config_home() -> Option<PathBuf> {
    folder("XDG_CONFIG_HOME", ".config")
}

/// Where an authority lies when nobody has said where.
pub(crate) fn state_home() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// As the XDG base directory specification has it: a relative path in the variable is ignored.
fn folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(in_home)))
}

#[cfg(test)]
mod tests;
