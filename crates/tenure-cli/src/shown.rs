//! The token that a script shows.

use crate::exit::Exit;
use crate::problem::Problem;
use std::path::Path;
use tenure::core::Token;

/// Which token a verb speaks of.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Shown {
    /// The token, as resource@epoch:grant. Without it, what the file named by TENURE_TOKEN_FILE holds, then
    /// TENURE_TOKEN; `tenure run` sets them for its command.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl Shown {
    /// Reads it.
    pub(crate) fn token(&self) -> Result<Token, Problem> {
        let (text, from) = match (&self.token, std::env::var_os("TENURE_TOKEN_FILE"), std::env::var("TENURE_TOKEN")) {
            (Some(text), _, _) => (text.clone(), "--token"),
            (None, Some(path), _) if !path.is_empty() => (read(Path::new(&path))?, "the file of TENURE_TOKEN_FILE"),
            (None, _, Ok(text)) => (text, "TENURE_TOKEN"),
            _ => {
                return Err(Problem::usage(
                    "there is no token: run this inside `tenure run`, which sets TENURE_TOKEN, or give --token",
                ));
            }
        };
        text.trim().parse().map_err(|error| Problem::usage(format_args!("{from} holds no token: {error}")))
    }
}

/// A run that goes on under another epoch writes the file anew, and takes it away when it has lost.
fn read(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Problem::new(
            Exit::Lost,
            format_args!("lost: {} is gone, so that this run holds nothing any more. Stop here", path.display()),
        ),
        _ => Problem::new(Exit::Lost, format_args!("{} cannot be read ({error}): treat it as lost", path.display())),
    })
}
