//! How much of the model's own speed is left: texts of a real manual through `Embedder`, and through the same model called by
//! hand in a loop, with the same batches and threads. Ends with status 1 when less than 0.8 is left.
//!
//! `cargo bench -p vector-sync --bench embed` (texts: 512; another number as an argument).

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "whoever measures wants to see it fail")]

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use futures_util::StreamExt as _;
use std::process::ExitCode;
use tokenizers::{Tokenizer, TruncationParams};
use vector_sync::chunk::chunks;
use vector_sync::embed::{EXAMPLES, Embedder, MINILM, Minilm};
use vector_sync::patience::Stopwatch;
use vector_sync::source::{FolderSource, Source};

#[tokio::main]
async fn main() -> ExitCode {
    let count = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(512);
    let texts = texts(count).await;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let model = Minilm::open(&MINILM.folder(), threads).unwrap();
    let by_hand = ByHand::load();
    let batch = model.batch();
    println!("{} texts in batches of {batch}, {threads} threads", texts.len());
    // What is loaded when it is first asked for is not measured.
    let watch = Stopwatch::start();
    model.embed(&texts[..1]).await.unwrap();
    println!("the model was loaded, looked at and asked once in {:.2} s", watch.spent().as_secs_f64());
    by_hand.embed(&texts[..1]);
    let mut ratios = Vec::new();
    // In turns, since a machine may be busy with something else for a while.
    for _ in 0..3 {
        let watch = Stopwatch::start();
        let mut direct = Vec::new();
        for batch in texts.chunks(batch) {
            direct.extend(by_hand.embed(batch));
        }
        let first = watch.spent();
        let watch = Stopwatch::start();
        let mut ours = Vec::new();
        for batch in texts.chunks(batch) {
            ours.extend(model.embed(batch).await.unwrap());
        }
        let second = watch.spent();
        for (one, other) in direct.iter().zip(&ours) {
            let cosine: f32 = one.iter().zip(other).map(|(one, other)| one * other).sum();
            assert!(cosine > 0.9999, "they differ");
        }
        let rate = |spent: std::time::Duration| texts.len() as f64 / spent.as_secs_f64();
        let ratio = first.as_secs_f64() / second.as_secs_f64();
        println!("by hand {:.1} texts/s, through Embedder {:.1} texts/s: {ratio:.2}", rate(first), rate(second));
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    if ratios[1] < 0.8 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Pieces of the manual, from all over it.
async fn texts(count: usize) -> Vec<String> {
    let source = FolderSource::new(&EXAMPLES.folder().join("ec2"), 1 << 24);
    let mut documents = source.documents();
    let mut texts = Vec::new();
    while let Some(document) = documents.next().await {
        texts.extend(chunks(&document.unwrap()).into_iter().map(|chunk| chunk.words()));
    }
    let step = (texts.len() / count).max(1);
    texts.into_iter().step_by(step).take(count).collect()
}

/// The model as the examples of its runtime call it.
struct ByHand {
    tokenizer: Tokenizer,
    bert: BertModel,
}

impl ByHand {
    fn load() -> Self {
        let folder = MINILM.folder();
        let config: Config = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
        let mut tokenizer = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        let truncation = TruncationParams { max_length: 256, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).unwrap().with_padding(Some(tokenizers::PaddingParams::default()));
        let weights = std::fs::read(folder.join("model.safetensors")).unwrap();
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu).unwrap();
        Self { tokenizer, bert: BertModel::load(weights, &config).unwrap() }
    }

    fn embed(&self, texts: &[String]) -> Vec<Vec<f32>> {
        let encodings = self.tokenizer.encode_batch(texts.to_vec(), true).unwrap();
        let rows = |of: fn(&tokenizers::Encoding) -> &[u32]| {
            let rows: Vec<Tensor> =
                encodings.iter().map(|encoding| Tensor::new(of(encoding), &Device::Cpu).unwrap()).collect();
            Tensor::stack(&rows, 0).unwrap()
        };
        let (ids, mask) = (rows(tokenizers::Encoding::get_ids), rows(tokenizers::Encoding::get_attention_mask));
        let said = self.bert.forward(&ids, &ids.zeros_like().unwrap(), Some(&mask)).unwrap();
        let mask = mask.to_dtype(DType::F32).unwrap().unsqueeze(2).unwrap();
        let sum = said.broadcast_mul(&mask).unwrap().sum(1).unwrap();
        let mean = sum.broadcast_div(&mask.sum(1).unwrap()).unwrap();
        let length = mean.sqr().unwrap().sum_keepdim(1).unwrap().sqrt().unwrap();
        mean.broadcast_div(&length).unwrap().to_vec2().unwrap()
    }
}
