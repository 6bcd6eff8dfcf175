//! Where the receivers of a run are.

use super::DemoError;
use super::incident::scene;
use super::receiver::{Kind, Receiver};
use std::path::Path;
use std::str::FromStr;
use tenure::authority::random_bits;
use tenure::sink::shown;

/// Where the receivers of all scenes are: each has a name of its own there.
#[derive(Clone, Debug)]
pub(super) enum Shelf {
    /// A SQLite file each, in the demo's folder.
    Sqlite,
    /// A folder of plain files each, in the demo's folder.
    Files,
    /// A server: a schema, or keys, each.
    Server(Server),
}

/// A server that others may use.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// With its password.
    url: String,
    /// What names that which belongs together there.
    named: Named,
}

/// Where in an address the name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// A parameter.
    By(&'static str),
    /// The end of the path.
    Path,
}

/// What the word for a server that is not an address should have been.
const SERVERS: [(&str, Named, &str); 3] = [
    ("postgres", Named::By("schema"), "postgres://USER@HOST/DATABASE"),
    ("redis", Named::By("name"), "redis://HOST:PORT"),
    ("s3", Named::Path, "s3://BUCKET/PREFIX"),
];

impl FromStr for Shelf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => return Ok(Self::Sqlite),
            "files" => return Ok(Self::Files),
            _ => {}
        }
        for (word, named, right) in SERVERS {
            let Some(rest) = text.strip_prefix(word) else { continue };
            if !rest.contains("://") {
                return Err(format!("which server? write its address, such as {right}"));
            }
            let parameters = text.split_once('?').map_or("", |(_, parameters)| parameters);
            for part in parameters.split('&') {
                let name = part.split('=').next().unwrap_or_default();
                if matches!(named, Named::By(own) if own == name) || ["create", "id", "rule"].contains(&name) {
                    return Err(format!("leave {name}= out of the address: the demo chooses it"));
                }
            }
            return Ok(Self::Server(Server { url: text.to_owned(), named }));
        }
        // It may hold a password.
        Err("it is none of sqlite, files, postgres://…, redis://…, s3://…".to_owned())
    }
}

/// The receivers of one run.
#[derive(Debug)]
pub(super) struct Receivers {
    shelf: Shelf,
    /// What all names of this run have in common.
    run: String,
}

impl Receivers {
    pub(super) fn on(shelf: Shelf) -> Result<Self, DemoError> {
        let bits = random_bits().map_err(crate::problem::Problem::from)?;
        Ok(Self { shelf, run: format!("demo_{:08x}", bits >> 96) })
    }

    /// The address of the receiver of a scene whose folder is `dir`.
    pub(super) fn address(&self, what: &str, kind: Kind, dir: &Path) -> String {
        match &self.shelf {
            Shelf::Sqlite => format!("sqlite:{}", dir.join("receiver.db").display()),
            Shelf::Files => format!("file:{}", dir.join("receiver").display()),
            Shelf::Server(Server { url, named }) => {
                let name = format!("{}_{}", self.run, scene(what, kind).replace('-', "_"));
                match (named, url.split_once('?')) {
                    (Named::By(parameter), None) => format!("{url}?{parameter}={name}"),
                    (Named::By(parameter), Some(_)) => format!("{url}&{parameter}={name}"),
                    (Named::Path, None) => format!("{}/{name}", url.trim_end_matches('/')),
                    (Named::Path, Some((place, rest))) => format!("{}/{name}?{rest}", place.trim_end_matches('/')),
                }
            }
        }
    }

    /// How the place is called in front of people.
    pub(super) fn shown(&self) -> String {
        match &self.shelf {
            Shelf::Sqlite => "SQLite files".to_owned(),
            Shelf::Files => "plain files".to_owned(),
            Shelf::Server(server) => shown(&server.url),
        }
    }

    /// The words for what was made on a server; `None` when all of it is in the demo's folder.
    pub(super) fn there(&self) -> Option<String> {
        matches!(self.shelf, Shelf::Server(_)).then(|| format!("{}_* at {}", self.run, self.shown()))
    }

    /// Removes what the scenes made on a server. What is left is returned, with the reason.
    pub(super) fn clear(&self, scenes: &[(&str, Kind)], dir: &Path) -> Vec<String> {
        let clear = |what: &str, kind| Receiver::at(&self.address(what, kind, dir), kind)?.clear();
        let failed = scenes.iter().filter_map(|(what, kind)| Some((what, kind, clear(what, *kind).err()?)));
        failed.map(|(what, kind, why)| format!("{} ({why})", scene(what, *kind))).collect()
    }
}

#[cfg(test)]
mod tests;
