//! Which model is meant.

use super::{EmbedError, Embedder, HttpModel, HttpSettings, Words};

/// A model by its name: `words`; `minilm`, or `minilm:DIR` when its files are elsewhere than in the cache folder, each perhaps
/// with `#threads=N`; or the address of one behind HTTP, `https://HOST/PATH#MODEL&dimensions=N` ([`HttpSettings::parse`]).
///
/// # Errors
/// [`EmbedError::Unfit`]: there is no such model, or it is not there.
pub fn choose(name: &str) -> Result<Box<dyn Embedder>, EmbedError> {
    let unfit = |why: String| EmbedError::Unfit { model: shown(name).to_owned(), why };
    if name == "words" {
        return Ok(Box::new(Words::default()));
    }
    if name.starts_with("http://") || name.starts_with("https://") {
        let settings = HttpSettings::parse(name).map_err(unfit)?;
        return Ok(Box::new(HttpModel::open(settings)?));
    }
    let (model, setting) = name.split_once('#').map_or((name, None), |(model, setting)| (model, Some(setting)));
    let folder = model.strip_prefix("minilm").filter(|rest| rest.is_empty() || rest.starts_with(':'));
    let folder = folder
        .ok_or_else(|| unfit("there is no such model: name words, minilm, or https://HOST/PATH#MODEL".to_owned()))?;
    let threads = match setting.map(|setting| setting.strip_prefix("threads=").and_then(|number| number.parse().ok())) {
        None => std::thread::available_parallelism().map_or(1, usize::from),
        Some(Some(number @ 1..=1024)) => number,
        Some(_) => return Err(unfit("write minilm#threads=N, with a number from 1 to 1024".to_owned())),
    };
    minilm(folder.trim_start_matches(':'), threads)
}

#[cfg(feature = "minilm")]
fn minilm(folder: &str, threads: usize) -> Result<Box<dyn Embedder>, EmbedError> {
    let folder = if folder.is_empty() { super::MINILM.folder() } else { folder.into() };
    Ok(Box::new(super::Minilm::open(&folder, threads)?))
}

#[cfg(not(feature = "minilm"))]
fn minilm(_: &str, _: usize) -> Result<Box<dyn Embedder>, EmbedError> {
    let why = "this program was built without it: build it with the feature `minilm`, or take `words`".to_owned();
    Err(EmbedError::Unfit { model: "minilm".to_owned(), why })
}

/// The name for people. A service may take what stands behind a `?` for a password, and a user's name stands before a host.
fn shown(name: &str) -> &str {
    let name = name.split(['?', '#']).next().unwrap_or_default();
    name.rsplit_once('@').map_or(name, |(_, host)| host)
}
