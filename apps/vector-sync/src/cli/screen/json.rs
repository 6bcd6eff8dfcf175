//! Each piece of news as a line of JSON on the standard output.

use serde::Serialize;
use vector_sync::tell::{News, Tell};
use vector_sync::tenant::Tenant;

#[derive(Debug)]
pub(super) struct Json;

#[derive(Serialize)]
struct Line<'a> {
    tenant: &'a str,
    #[serde(flatten)]
    news: &'a News,
}

impl Tell for Json {
    fn tell(&self, tenant: &Tenant, news: &News) {
        super::say_json(&Line { tenant: tenant.as_str(), news });
    }
}
