//! The receivers that an operator's verb can reach.

use crate::problem::Problem;
use std::sync::Arc;
use tenure::authority::store::shown;
use tenure::core::SinkId;
use tenure::sink::{Sink, SinkError, connect};

/// Which receivers were named.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Receivers {
    /// The address of a receiver, such as file:/srv/out, sqlite:/srv/shop.db?id=shop or postgres://USER@HOST/DATABASE. May
    /// be given more than once. A receiver whose id is an address need not be named.
    #[arg(long = "sink", value_name = "URL")]
    urls: Vec<String>,
}

/// They, opened as far as that works.
#[derive(Debug)]
pub(crate) struct Reached(Vec<Named>);

#[derive(Debug)]
struct Named {
    url: String,
    sink: Result<Arc<dyn Sink>, SinkError>,
}

impl Receivers {
    /// Opens them. One that cannot be reached is no error yet: it may not be needed.
    pub(crate) fn reach(&self) -> Result<Reached, Problem> {
        let mut reached = Vec::new();
        for url in &self.urls {
            match connect(url) {
                Err(error @ SinkError::Address { .. }) => return Err(error.into()),
                sink => reached.push(Named { url: url.clone(), sink }),
            }
        }
        Ok(Reached(reached))
    }
}

impl Reached {
    /// The receiver that is enrolled under this id, or why it cannot be reached.
    pub(crate) fn find(&self, id: &SinkId) -> Result<Arc<dyn Sink>, String> {
        if let Some(sink) = self.opened().find(|sink| sink.id() == id) {
            return Ok(Arc::clone(sink));
        }
        match connect(id.as_str()) {
            Ok(sink) if sink.id() == id => return Ok(sink),
            // Its id is an address, and nothing else would be another way to it.
            Err(error) if !matches!(error, SinkError::Address { .. }) => return Err(error.to_string()),
            _ => {}
        }
        let failed: Vec<_> = self.failed().map(|(url, error)| format!("; {url} was not opened: {error}")).collect();
        Err(format!("its address is not known: give it with --sink URL?id={id}{}", failed.concat()))
    }

    /// Those that were named and opened.
    pub(crate) fn opened(&self) -> impl Iterator<Item = &Arc<dyn Sink>> {
        self.0.iter().filter_map(|named| named.sink.as_ref().ok())
    }

    /// Those that were named and not opened, without a password.
    pub(crate) fn failed(&self) -> impl Iterator<Item = (String, &SinkError)> {
        self.0.iter().filter_map(|named| Some((shown(&named.url), named.sink.as_ref().err()?)))
    }
}
