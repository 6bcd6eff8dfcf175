//! One call.

use super::answer::Answer;
use super::settings::HttpSettings;
use reqwest::{Response, StatusCode};
use serde::Serialize;
use std::time::Duration;

/// The longest answer that is read: 512 vectors of 4,096 numbers are well below it.
const BYTES_MAX: usize = 64 << 20;
/// The longest complaint that is read, and how much of it is repeated.
const COMPLAINT_MAX: usize = 64 << 10;
const REPEATED: usize = 200;

/// A call that gave no vectors.
pub(super) struct Asked {
    pub(super) wrong: Wrong,
    /// When the service wants to be asked again.
    pub(super) after: Option<Duration>,
}

/// Why it gave none.
pub(super) enum Wrong {
    /// It may pass.
    Passing(String),
    /// The batch is larger than it takes.
    TooLarge(String),
    /// Key, address or model are not right.
    Unfit(String),
    /// Something else.
    Failed(String),
    /// It was not asked.
    Budget(String),
}

impl From<Wrong> for Asked {
    fn from(wrong: Wrong) -> Self {
        Self { wrong, after: None }
    }
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

pub(super) async fn ask(client: &reqwest::Client, settings: &HttpSettings, texts: &[String]) -> Result<Answer, Asked> {
    let question = Question { model: &settings.model, input: texts, encoding_format: "float" };
    let mut request = client.post(&settings.url).json(&question);
    if let Some(key) = &settings.key {
        request = request.header(reqwest::header::AUTHORIZATION, key.clone());
    }
    let response = request.send().await.map_err(|error| Wrong::Passing(innermost(&error)))?;
    let status = response.status();
    if status.is_success() {
        let body = body(response, BYTES_MAX).await?;
        return Answer::read(&body, texts.len(), settings.dimensions).map_err(|why| Wrong::Failed(why).into());
    }
    let after = after(response.headers());
    let complaint = match body(response, COMPLAINT_MAX).await {
        Ok(body) => complaint(&body, settings, texts),
        Err(_) => String::new(),
    };
    let why = format!("it answers {}{complaint}", status.as_u16());
    let wrong = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Wrong::Passing(why),
        _ if status.is_server_error() => Wrong::Passing(why),
        StatusCode::PAYLOAD_TOO_LARGE => Wrong::TooLarge(why),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY if is_about_size(&complaint) => Wrong::TooLarge(why),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Wrong::Unfit(format!("{why}: look at the key, which is read from {}", settings.key_from()))
        }
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            Wrong::Unfit(format!("{why}: look at the address, {}, and the model's name", settings.shown()))
        }
        _ => Wrong::Failed(why),
    };
    Err(Asked { wrong, after })
}

async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Wrong> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| Wrong::Passing(innermost(&error)))? {
        if body.len() + piece.len() > most {
            return Err(Wrong::Failed(format!("its answer has more than {most} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// How long the service wants to be left alone: `Retry-After` in seconds, or as a date, which is compared with the service's
/// own clock.
fn after(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let said = header("retry-after")?.trim();
    if let Ok(seconds) = said.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(said).ok()?;
    let now = httpdate::parse_http_date(header("date")?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

/// What the service says, as far as it may be shown.
fn complaint(body: &[u8], settings: &HttpSettings, texts: &[String]) -> String {
    let said: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let places = ["/error/message", "/message", "/detail", "/error"];
    let Some(words) = places.into_iter().find_map(|place| said.pointer(place)?.as_str()) else { return String::new() };
    let repeats = texts.iter().any(|text| text.split_whitespace().any(|word| word.len() > 12 && words.contains(word)));
    if repeats || settings.is_secret(words) {
        return " (its words repeat what was sent, and are left out)".to_owned();
    }
    let mut words: String = words.chars().filter(|char| !char.is_control()).take(REPEATED + 1).collect();
    if words.chars().count() > REPEATED {
        words.pop();
        words.push('…');
    }
    format!(": {words}")
}

fn is_about_size(complaint: &str) -> bool {
    let complaint = complaint.to_lowercase();
    ["token", "length", "long", "large", "batch", "too many", "maximum", "size"]
        .into_iter()
        .any(|word| complaint.contains(word))
}

/// What really went wrong: the outer errors only say that a request failed. The address is left out of it.
fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer in time".to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests;
