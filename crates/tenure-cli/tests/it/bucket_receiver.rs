//! A receiver in a bucket, as an operator meets it.

use crate::site::{Said, Site, made};
use serde_json::json;
use tenure_servers::S3;

const JOB: &str = "nightly";

#[test]
fn a_run_seals_a_bucket_and_every_verb_reaches_it_by_its_id() {
    let (site, server) = (Site::new(), S3::shared());
    let url = format!("s3://{}/{}?endpoint={}", server.bucket(), server.prefix(), server.endpoint());
    let tenure = |args: &[&str]| Said::of(site.command(args).envs(server.credentials()).output().unwrap());
    tenure(&["run", "--resource", JOB, "--sink", &url, "--", "true"]).ended(69).with(&["is not there", "s3://"]);
    tenure(&["run", "--resource", JOB, "--sink", &made(&url), "--", "true"]).ended(0);
    // Its id is its address, and so nobody has to name it.
    tenure(&["sinks", JOB, "ls"]).ended(0).with(&["sealed", "has epoch", &url]);
    tenure(&["doctor"]).with(&[&url]);
    tenure(&["sinks", JOB, "reopen", &url, "--reason", "a bucket was put back"]).ended(0).with(&["Reopened"]);
    tenure(&["run", "--resource", JOB, "--sink", &url, "--", "true"]).ended(0);
    let learnt = tenure(&["restore", "--learn-only", "--learn-from", &url, "--reason", "to be sure"]).ended(0);
    learnt.with(&["Nothing new from"]);
    let remove = ["sinks", JOB, "remove", &url, "--reason", "moved", "--json"];
    assert_eq!(tenure(&remove).ended(0).json()["forgotten"], json!(true));
}

#[test]
fn without_credentials_the_variables_are_named_and_with_wrong_ones_nothing_is_shown() {
    let (site, server) = (Site::new(), S3::shared());
    let url = format!("s3://{}/{}?endpoint={}&create=true", server.bucket(), server.prefix(), server.endpoint());
    let words = ["run", "--resource", JOB, "--sink", &url, "--", "true"];
    let with = |key: &str, secret: &str| {
        let mut command = site.command(&words);
        command.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", secret);
        Said::of(command.output().unwrap())
    };
    let [(_, key), _] = server.credentials();
    let said = with(key, "hunter2").ended(69);
    assert!(!format!("{said:?}").contains("hunter2"), "{said:?}");
    said.with(&["credentials", "docs/object-sink.md"]);
    let inside = url.replacen("s3://", "s3://key:hunter2@", 1);
    let said = site.tenure(&["run", "--resource", JOB, "--sink", &inside, "--", "true"]).ended(64);
    assert!(!format!("{said:?}").contains("hunter2"), "{said:?}");
    said.with(&["AWS_ACCESS_KEY_ID"]);
}
