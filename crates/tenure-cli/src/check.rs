use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;

/// What is asked of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let _ = self.access.setup()?;
        Err(Problem::failure("under way"))
    }
}
