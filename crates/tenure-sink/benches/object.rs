//! What a fenced write costs in a store of objects, beside plain puts. Run on demand:
//! `cargo bench -p tenure-sink --bench object`. It starts a server of its own, which speaks S3.
//!
//! Variants take turns, so that a noisy machine is noisy to all of them; what is printed are medians.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::fence::Sealing;
use tenure_core::{Epoch, GrantId, OperationId, Outcome, ResourceName, SinkId, Token};
use tenure_servers::S3;
use tenure_sink::object::{ObjectSink, Operation};
use tenure_sink::{Sink, digest_of};

const ROUNDS: u64 = 60;

const VARIANTS: [&str; 5] = ["one plain put", "two plain puts", "a fenced write", "with an operation", "a seal"];

fn token(epoch: u64) -> Token {
    let resource = ResourceName::new("bench").unwrap();
    Token { resource, epoch: Epoch::new(epoch).unwrap(), grant: GrantId::from_bits(epoch.into()) }
}

fn main() {
    let server = S3::start();
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let [(_, key), (_, secret)] = server.credentials();
    let store: Arc<dyn ObjectStore> = Arc::new(
        AmazonS3Builder::new()
            .with_endpoint(server.endpoint())
            .with_allow_http(true)
            .with_bucket_name(server.bucket())
            .with_access_key_id(key)
            .with_secret_access_key(secret)
            .build()
            .unwrap(),
    );
    let url = format!("s3://{}/bench?endpoint={}&create=true", server.bucket(), server.endpoint());
    let sink = ObjectSink::at_with(&url, server.credentials()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut spans = VARIANTS.map(|_| Vec::new());
    runtime.block_on(async {
        seal(&sink, 1).await;
        for round in 0..ROUNDS {
            for (variant, spans) in spans.iter_mut().enumerate() {
                let began = Instant::now();
                run(&sink, &*store, variant, round).await;
                spans.push(began.elapsed());
            }
        }
    });
    let medians = spans.map(median);
    for (name, span) in VARIANTS.iter().zip(medians) {
        println!("{name:20} {span:>10.2?}   {:.2} times one plain put", span.as_secs_f64() / medians[0].as_secs_f64());
    }
}

async fn run(sink: &ObjectSink, store: &dyn ObjectStore, variant: usize, round: u64) {
    let content = format!("round {round}");
    let token = token(round + 1);
    match variant {
        0 | 1 => {
            for n in 0..=variant {
                store.put(&Path::from(format!("plain/{round}-{variant}-{n}")), content.clone().into()).await.unwrap();
            }
        }
        2 => drop(sink.write(&token).put("value", content).send().await.unwrap()),
        3 => {
            let id = OperationId::new(format!("round-{round}")).unwrap();
            let once = Operation { id, digest: digest_of(content.as_bytes()), outcome: Outcome::new("done").unwrap() };
            drop(sink.write(&token).put("value", content).once(&once).send().await.unwrap());
        }
        _ => seal(sink, round + 2).await,
    }
}

async fn seal(sink: &ObjectSink, epoch: u64) {
    let token = token(epoch);
    let generation = sink.describe(&token.resource).await.unwrap().generation;
    let sealing = sink.seal(&token, &generation, &BTreeSet::from([SinkId::new("bench").unwrap()])).await.unwrap();
    assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans[spans.len() / 2]
}
