//! An index by its address.

use super::sqlite::SqliteIndex;
use super::{Index, IndexError};
use std::path::{Path, PathBuf};
use tenure::core::address::Address;

/// What an address looks like.
const RIGHT: &str = "sqlite:FOLDER";

/// Opens the index at an address. Nothing is made, and nobody is asked, before it is used.
///
/// | address | index |
/// |---|---|
/// | `sqlite:FOLDER`, `sqlite:///ABSOLUTE/FOLDER` | a SQLite file for each tenant, in a folder |
///
/// # Errors
/// [`IndexError::Address`] when the address makes no sense.
pub fn connect(url: &str) -> Result<Box<dyn Index>, IndexError> {
    match url.split(':').next().unwrap_or_default() {
        "sqlite" => Ok(Box::new(SqliteIndex::new(&folder(url)?))),
        other => Err(wrong(url, format!("there is no index called {other:?}; write {RIGHT}"))),
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
