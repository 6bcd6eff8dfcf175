//! Models, those that are called and those that run here.

mod chosen;
mod endpoint;
mod fetch;
mod http;
#[cfg(feature = "minilm")]
mod minilm;

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
