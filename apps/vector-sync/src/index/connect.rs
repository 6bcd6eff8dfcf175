//! An index by its address.

use super::catalog::Catalog;
use super::chroma::ChromaIndex;
use super::postgres::{Database, PostgresIndex};
use super::sqlite::{Files, SqliteIndex};
use super::{Index, IndexError};
use std::path::{Path, PathBuf};
use tenure::core::address::Address;

/// What an address looks like.
const RIGHT: &str = "sqlite:FOLDER, postgres://USER@HOST/DATABASE, or chroma:http://HOST:PORT?catalog=ADDRESS";

/// Opens the index at an address. Nothing is made, and nobody is asked, before it is used.
///
/// | address | index |
/// |---|---|
/// | `sqlite:FOLDER`, `sqlite:///ABSOLUTE/FOLDER` | a SQLite file for each tenant, in a folder |
/// | `postgres://USER:PASSWORD@HOST:PORT/DATABASE` | a schema with pgvector; `?schema=NAME` unless it is `vector_sync` |
/// | `chroma:http://HOST:PORT?catalog=ADDRESS` | a Chroma server, with its records in one of the two above |
///
/// # Errors
/// [`IndexError::Address`] when the address makes no sense.
pub fn connect(url: &str) -> Result<Box<dyn Index>, IndexError> {
    match url.split(':').next().unwrap_or_default() {
        "chroma" => Ok(Box::new(ChromaIndex::new(url)?)),
        "postgres" | "postgresql" => Ok(Box::new(PostgresIndex::new(url)?)),
        "sqlite" => Ok(Box::new(SqliteIndex::new(&folder(url)?))),
        other => Err(wrong(url, format!("there is no index called {other:?}; write {RIGHT}"))),
    }
}

/// Records without vectors, by their address.
pub(super) fn catalog(url: &str) -> Result<Box<dyn Catalog>, IndexError> {
    match url.split(':').next().unwrap_or_default() {
        "postgres" | "postgresql" => Ok(Box::new(Database::new(url, false)?)),
        "sqlite" => Ok(Box::new(Files::new(&folder(url)?))),
        other => Err(wrong(
            url,
            format!("there is no catalog called {other:?}; write sqlite:FOLDER or postgres://USER@HOST/DATABASE"),
        )),
    }
}

/// The folder of such an address.
fn folder(url: &str) -> Result<PathBuf, IndexError> {
    let said = |why: tenure::core::address::AddressError| wrong(url, why.to_string());
    let address = Address::parse(url).map_err(said)?;
    if let Some((name, _)) = address.parameters().first() {
        return Err(wrong(url, format!("the index in a folder has no parameter {name:?}; write sqlite:FOLDER")));
    }
    let folder = Path::new(address.place().map_err(said)?);
    if folder.is_file() {
        let why = format!("{} is a file: name a folder, which will have a file for each tenant", folder.display());
        return Err(wrong(url, why));
    }
    Ok(folder.to_owned())
}

/// The address makes no sense. It is shown without what may be a password.
fn wrong(url: &str, why: String) -> IndexError {
    IndexError::Address { url: tenure::sink::shown(url), why }
}
