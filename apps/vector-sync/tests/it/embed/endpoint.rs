//! A service that embeds by the model `words`, and does what it is told instead at some of its calls.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use vector_sync::embed::{Embedder, Words};

/// What it does instead of an answer.
pub(super) enum Fault {
    None,
    /// This status with these headers and this complaint.
    Status(u16, &'static [(&'static str, &'static str)], String),
    /// This instead of vectors.
    Said(String),
    /// The right vectors, the last one first.
    Turned,
    /// Nothing, ever.
    Silence,
}

/// What it was asked.
pub(super) struct Asked {
    pub(super) texts: Vec<String>,
    pub(super) model: String,
    pub(super) key: Option<String>,
}

type Decide = dyn Fn(usize, &[String]) -> Fault + Send + Sync;

pub(super) struct Endpoint {
    pub(super) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    words: Words,
    decide: Box<Decide>,
    asked: Mutex<Vec<Asked>>,
    /// Told when somebody is met with silence.
    silent: Notify,
}

impl Endpoint {
    /// `decide` is given the number of the call, from 0, and its texts.
    pub(super) async fn start(decide: impl Fn(usize, &[String]) -> Fault + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            words: Words::default(),
            decide: Box::new(decide),
            asked: Mutex::default(),
            silent: Notify::new(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
        let app = Router::new().route("/v1/embeddings", post(embed)).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, shared }
    }

    pub(super) fn asked(&self) -> std::sync::MutexGuard<'_, Vec<Asked>> {
        self.shared.asked.lock().unwrap()
    }

    pub(super) fn calls(&self) -> usize {
        self.asked().len()
    }

    /// Until a call is met with silence.
    pub(super) async fn is_silent(&self) {
        self.shared.silent.notified().await;
    }
}

async fn embed(State(shared): State<Arc<Shared>>, headers: HeaderMap, Json(question): Json<Value>) -> Response {
    let texts: Vec<String> = serde_json::from_value(question["input"].clone()).unwrap();
    let number = {
        let mut asked = shared.asked.lock().unwrap();
        let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
        asked.push(Asked { texts: texts.clone(), model: question["model"].as_str().unwrap().to_owned(), key });
        asked.len() - 1
    };
    let fault = (shared.decide)(number, &texts);
    let is_turned = matches!(fault, Fault::Turned);
    match fault {
        Fault::Status(status, headers, why) => {
            let mut response = Json(json!({ "error": { "message": why } })).into_response();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            for (name, value) in headers {
                response.headers_mut().insert(*name, value.parse().unwrap());
            }
            response
        }
        Fault::Said(body) => body.into_response(),
        Fault::Silence => {
            shared.silent.notify_one();
            std::future::pending().await
        }
        Fault::None | Fault::Turned => {
            let vectors = shared.words.embed(&texts).await.unwrap();
            let mut data: Vec<Value> = vectors
                .into_iter()
                .enumerate()
                // Their length is the asker's business.
                .map(|(index, vector)| json!({ "index": index, "embedding": vector.iter().map(|number| number * 3.0).collect::<Vec<_>>() }))
                .collect();
            if is_turned {
                data.reverse();
            }
            Json(json!({ "data": data, "usage": { "total_tokens": 10 * texts.len() } })).into_response()
        }
    }
}
