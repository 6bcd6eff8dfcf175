use super::super::DemoError;
use super::{Page, Place, id, outcome};
use std::path::PathBuf;
use std::sync::Arc;
use tenure::core::fence::Rule;
use tenure::sink::file::Operation;
use tenure::sink::{FileSink, Sink, one_value_per_epoch};
use tenure::{Token, Verdict};

/// A plain file of a folder.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

const DOCUMENT: &str = "document.json";

impl Folder {
    pub(super) fn at(path: &str) -> Self {
        Self(path.into())
    }

    fn failed(&self, error: std::io::Error) -> DemoError {
        DemoError::File { path: self.0.clone(), error }
    }
}

impl Place for Folder {
    fn create(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        match rule {
            None => std::fs::create_dir_all(&self.0).map_err(|error| self.failed(error)),
            Some(rule) => Ok(FileSink::create(&self.0, id()?, rule).map(drop)?),
        }
    }

    fn sink(&self, rule: Rule) -> Result<Arc<dyn Sink>, DemoError> {
        Ok(Arc::new(FileSink::open(&self.0, id()?, rule)?))
    }

    fn write(&self, rule: Option<Rule>, token: &Token, value: &str) -> Result<Verdict, DemoError> {
        let page = Page::text(token, value);
        match rule {
            None => {
                // As a careful program does it that has no fence: aside first, then one rename.
                let aside = self.0.join("document.new");
                std::fs::write(&aside, page).map_err(|error| self.failed(error))?;
                std::fs::rename(aside, self.0.join(DOCUMENT)).map_err(|error| self.failed(error))?;
                Ok(Verdict::Written)
            }
            Some(rule) => {
                let operation = Operation { id: one_value_per_epoch(token.epoch), outcome: outcome(value) };
                Ok(FileSink::open(&self.0, id()?, rule)?.write(token, Some(&operation), DOCUMENT, page.as_bytes())?)
            }
        }
    }

    fn document(&self, _rule: Option<Rule>, _resource: &str) -> Result<Option<(i64, String)>, DemoError> {
        match std::fs::read(self.0.join(DOCUMENT)) {
            Ok(page) => Page::read(&page).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }
}
