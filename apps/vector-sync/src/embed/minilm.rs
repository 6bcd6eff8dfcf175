//! A sentence model that runs in this process, on the processor.

use super::files::MINILM;
use super::{EmbedError, Embedder, Spent, normalise};
use async_trait::async_trait;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use rayon::ThreadPool;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokenizers::{Tokenizer, TruncationParams};
use tokio::sync::OnceCell;

/// all-MiniLM-L6-v2 as its authors trained it: 384 numbers for the meaning of at most 256 parts of words, English above all.
/// What is longer is cut off there.
///
/// The model is read from its files, and these are compared with the digests that are known of them, when something is
/// embedded for the first time: whoever embeds nothing does not wait for that.
pub struct Minilm {
    folder: PathBuf,
    name: String,
    threads: usize,
    loaded: OnceCell<Arc<Loaded>>,
    spent: Arc<Counters>,
}

/// How many numbers a vector has.
const DIMENSIONS: u32 = 384;
/// How many parts of words are looked at, with the two marks of beginning and end.
const PARTS: usize = 256;
impl Minilm {
    /// The model in this folder, which has been fetched (`vector-sync fetch`), on so many threads.
    ///
    /// # Errors
    /// [`EmbedError::Unfit`]: the files are not there. Whether they are the right ones is seen later.
    pub fn open(folder: &Path, threads: usize) -> Result<Self, EmbedError> {
        MINILM.look(folder)?;
        let (folder, loaded, spent) = (folder.to_owned(), OnceCell::new(), Arc::default());
        Ok(Self { folder, name: MINILM.model(), threads: threads.max(1), loaded, spent })
    }

    async fn loaded(&self) -> Result<Arc<Loaded>, EmbedError> {
        let load = || async {
            let (folder, threads) = (self.folder.clone(), self.threads);
            let loaded = tokio::task::spawn_blocking(move || Loaded::load(&folder, threads)).await;
            let loaded = loaded.unwrap_or_else(|error| Err(unfit(format!("reading it broke off: {error}"))))?;
            Ok(Arc::new(loaded))
        };
        self.loaded.get_or_try_init(load).await.cloned()
    }
}

#[async_trait]
impl Embedder for Minilm {
    fn model(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> u32 {
        DIMENSIONS
    }

    fn batch(&self) -> usize {
        64
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let loaded = self.loaded().await?;
        self.spent.calls.fetch_add(1, Ordering::Relaxed);
        let (texts, spent, wanted) = (texts.to_vec(), Arc::clone(&self.spent), Wanted::new());
        let still = wanted.still();
        let embedding = tokio::task::spawn_blocking(move || loaded.embed(&texts, &still, &spent));
        match embedding.await {
            Ok(vectors) => vectors,
            Err(error) => Err(EmbedError::Failed { model: self.name.clone(), why: format!("it broke off: {error}") }),
        }
    }

    fn spent(&self) -> Spent {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Spent { calls: read(&self.spent.calls), texts: read(&self.spent.texts), tokens: read(&self.spent.tokens) }
    }
}

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    texts: AtomicU64,
    tokens: AtomicU64,
}

/// Tells the threads that nobody waits any more, when it is dropped.
struct Wanted(Arc<AtomicBool>);

impl Wanted {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    fn still(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The model in memory.
struct Loaded {
    tokenizer: Tokenizer,
    bert: BertModel,
    threads: ThreadPool,
}

impl Loaded {
    fn load(folder: &Path, threads: usize) -> Result<Self, EmbedError> {
        let config: Config = serde_json::from_slice(&MINILM.read(folder, "config.json")?)
            .map_err(|error| unfit(format!("its settings cannot be read: {error}")))?;
        let mut tokenizer = Tokenizer::from_bytes(MINILM.read(folder, "tokenizer.json")?)
            .map_err(|error| unfit(format!("its vocabulary cannot be read: {error}")))?;
        let truncation = TruncationParams { max_length: PARTS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(|error| unfit(error.to_string()))?;
        tokenizer.with_padding(None);
        let weights = MINILM.read(folder, "model.safetensors")?;
        let bert = VarBuilder::from_slice_safetensors(&weights, DType::F32, &Device::Cpu)
            .and_then(|weights| BertModel::load(weights, &config))
            .map_err(|error| unfit(format!("its weights cannot be used: {error}")))?;
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("minilm-{number}"))
            .build()
            .map_err(|error| unfit(format!("no threads for it: {error}")))?;
        Ok(Self { tokenizer, bert, threads })
    }

    fn embed(&self, texts: &[String], wanted: &AtomicBool, spent: &Counters) -> Result<Vec<Vec<f32>>, EmbedError> {
        let failed = |why: String| EmbedError::Failed { model: MINILM.model(), why };
        self.threads.install(|| {
            let parts: Result<Vec<Vec<u32>>, EmbedError> = texts
                .par_iter()
                .map(|text| {
                    let encoding = self.tokenizer.encode_fast(text.as_str(), true);
                    encoding.map(|encoding| encoding.get_ids().to_vec()).map_err(|error| failed(error.to_string()))
                })
                .collect();
            let parts = parts?;
            let mut order: Vec<usize> = (0..texts.len()).collect();
            // The longest first, so that no thread begins one when the others are done.
            order.sort_by_key(|at| std::cmp::Reverse(parts[*at].len()));
            let found: Result<Vec<Vec<f32>>, EmbedError> = order
                .par_iter()
                .with_max_len(1)
                .map(|at| {
                    if !wanted.load(Ordering::Relaxed) {
                        return Err(failed("nobody waits for it any more".to_owned()));
                    }
                    let mut vector = forward(&self.bert, &parts[*at]).map_err(|error| failed(error.to_string()))?;
                    normalise(&mut vector).ok_or_else(|| failed("it gave numbers that are none".to_owned()))?;
                    spent.texts.fetch_add(1, Ordering::Relaxed);
                    spent.tokens.fetch_add(parts[*at].len() as u64, Ordering::Relaxed);
                    Ok(vector)
                })
                .collect();
            let mut vectors = vec![Vec::new(); texts.len()];
            for (at, vector) in order.iter().zip(found?) {
                vectors[*at] = vector;
            }
            Ok(vectors)
        })
    }
}

/// The sum of what the model says about each part of a text: it has the direction of the mean.
///
/// One text at a time, with nothing filled up: so its vector does not depend on what it is embedded with, and the threads are
/// as busy with a text each as they would be with many in one.
fn forward(bert: &BertModel, parts: &[u32]) -> candle_core::Result<Vec<f32>> {
    let parts = Tensor::from_slice(parts, (1, parts.len()), &Device::Cpu)?;
    bert.forward(&parts, &parts.zeros_like()?, None)?.squeeze(0)?.sum(0)?.to_vec1()
}

fn unfit(why: String) -> EmbedError {
    EmbedError::Unfit { model: MINILM.model(), why }
}

impl std::fmt::Debug for Minilm {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Minilm({}, {} threads)", self.folder.display(), self.threads)
    }
}
