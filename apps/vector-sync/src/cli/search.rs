use super::place::{IndexAt, ModelAt};
use super::{Problem, screen};
use serde::Serialize;
use std::io::BufRead;
use vector_sync::embed::Embedder;
use vector_sync::index::{Answer, Index, IndexError};
use vector_sync::patience::Stopwatch;
use vector_sync::tenant::Tenant;

/// Find what a tenant's documents say about something. Each answer is of one version.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose documents.
    #[arg(long, value_name = "NAME")]
    tenant: Tenant,
    /// What to look for; `-` reads a question from each line of the standard input.
    #[arg(value_name = "WORDS")]
    words: String,
    #[command(flatten)]
    index: IndexAt,
    #[command(flatten)]
    model: ModelAt,
    /// How many chunks to show.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Write each answer as a line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found<'a> {
    words: &'a str,
    #[serde(flatten)]
    answer: &'a Answer,
    took_ms: u64,
}

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        let index = self.index.open()?;
        let live = index.live(&self.tenant).await.map_err(Problem::failure)?;
        let none = || IndexError::Empty { place: index.place().to_owned(), tenant: self.tenant.clone() };
        let making = live.ok_or_else(none).map_err(Problem::failure)?.manifest.making;
        let embedder = self.model.open()?;
        if making.model != embedder.model() {
            let (made, given) = (making.model, embedder.model());
            return Err(Problem::usage(format!(
                "the live version was made by the model {made}, and this is {given}: name the same one with --model"
            )));
        }
        if self.words != "-" {
            self.find(&*index, &*embedder, &self.words).await?;
            return Ok(0);
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| Problem::usage(format!("the standard input cannot be read: {error}")))?;
            if !line.trim().is_empty() {
                self.find(&*index, &*embedder, line.trim()).await?;
            }
        }
        Ok(0)
    }

    async fn find(&self, index: &dyn Index, embedder: &dyn Embedder, words: &str) -> Result<(), Problem> {
        let mut watch = Stopwatch::start();
        let vectors = embedder.embed(&[words.to_owned()]).await.map_err(Problem::failure)?;
        let vector = vectors.first().ok_or_else(|| Problem::failure("the model gave no vector for the question"))?;
        let answer = index.search(&self.tenant, vector, self.limit.into()).await.map_err(Problem::failure)?;
        let took_ms = watch.lap();
        if self.json {
            screen::say_json(&Found { words, answer: &answer, took_ms });
            return Ok(());
        }
        screen::say(&format!("{words}  (version {}, epoch {}, {took_ms} ms)", answer.version, answer.epoch));
        for hit in &answer.hits {
            let chunk = &hit.chunk;
            screen::say(&format!("  {:.3}  {}  {}", hit.score, chunk.document, chunk.heading.replace('\n', " / ")));
            screen::say(&format!("         {}", beginning(&chunk.text)));
        }
        Ok(())
    }
}

/// The first words of a text, on one line.
fn beginning(text: &str) -> String {
    const SHOWN: usize = 100;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut characters = line.chars();
    let begin: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_some() { format!("{begin}…") } else { begin }
}
