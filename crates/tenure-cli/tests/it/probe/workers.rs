//! The workers of `examples/probe`, and others that are right or wrong in one thing.

use super::{Judged, Scene, examples, script, stderr};

/// Writes whatever it is, to the file `out`.
const CARELESS: &str = "READY; echo $TENURE_PROBE_WORKER >out; echo wrote it";
/// Looks at the file and does not write over a successor's.
const CAREFUL: &str =
    "READY; [ $TENURE_PROBE_WORKER$(cat out) = AB ] && { echo stale; exit 76; }; echo $TENURE_PROBE_WORKER >out";
const OUT: [&str; 4] = ["--pause-on", "^ready", "--read", "cat out"];

fn with<'a>(words: &[&'a str]) -> Vec<&'a str> {
    OUT.iter().chain(words).copied().collect()
}

/// The Python worker in a scene, with the words that read its target.
struct Python {
    scene: Scene,
    worker: String,
    read: String,
    refusals: String,
}

impl Python {
    fn new() -> Self {
        let worker = examples().join("worker.py").to_str().unwrap().to_owned();
        let (read, refusals) =
            (format!("python3 '{worker}' read shop.db"), format!("python3 '{worker}' refusals shop.db"));
        Self { scene: Scene::new(), worker, read, refusals }
    }

    fn judge(&self, words: &[&str], fenced: bool) -> Judged {
        let mut all = vec!["--pause-on", "^ready", "--read", &self.read];
        all.extend(words);
        let mut worker = vec!["python3", &self.worker, "write"];
        worker.extend(fenced.then_some("--fenced"));
        worker.push("shop.db");
        self.scene.judge(&all, &worker)
    }
}

const SHOP: [&str; 2] = ["--sink", "sqlite:shop.db?create=true"];

#[test]
fn the_shell_worker_without_a_lease_fails_with_both_values() {
    let scene = Scene::new();
    let worker = examples().join("worker.sh");
    let words = ["--no-lease", "--pause-on", "^ready", "--read", "cat out"];
    let judged = scene.judge(&words, &["sh", worker.to_str().unwrap(), "out"]);
    judged.expect("fail", 1).because("\"version of worker B\" after B, \"version of worker A\" after A went on");
    assert_eq!(judged.texts(), [None, Some("version of worker B\n"), Some("version of worker A\n")]);
    assert!(judged.json["lease"].is_null() && judged.round()["authority"].is_null());
}

#[test]
fn a_lease_alone_does_not_help_a_worker_that_shows_its_token_to_nobody() {
    let python = Python::new();
    let judged = python.judge(&SHOP, false);
    judged.expect("fail", 1);
    let [a, b] = ["a", "b"].map(|worker| judged.round()[worker]["epoch"].as_u64());
    assert_eq!((a, b), (Some(1), Some(2)));
    assert_eq!(judged.round()["authority"]["epoch"], 2);
}

#[test]
fn the_python_worker_with_the_fence_passes_and_the_control_run_is_the_evidence() {
    let python = Python::new();
    let judged = python.judge(&SHOP, true);
    judged.expect("pass", 0);
    assert_eq!(judged.evidence(), ["control"]);
    let b = Some("version of worker B\n");
    assert_eq!(judged.texts(), [Some(""), b, b]);
    let control = &judged.round()["control"];
    assert_eq!(control["after"]["text"], "version of worker A\n");
    // Stopped as long as before, so that what a pause alone does to a worker is no difference.
    let stopped = |account: &serde_json::Value| account["stopped_ms"].as_u64().unwrap();
    assert!(stopped(&control["a"]) >= stopped(&judged.round()["a"]), "{control}");
    let lines = judged.round()["a"]["lines"].as_array().unwrap();
    assert_eq!(lines.last().unwrap()["text"], "refused: stale: epoch 1 was shown, and 2 is registered");
}

#[test]
fn a_lease_that_expires_is_taken_over_and_a_refusal_that_the_receiver_recorded_is_evidence() {
    let python = Python::new();
    // The table of refusals is there before the first one.
    python.judge(&SHOP, true).expect("pass", 0);
    let judged =
        python.judge(&[&SHOP[..], &["--wait-ttl", "--ttl", "800ms", "--refusals", &python.refusals]].concat(), true);
    judged.expect("pass", 0).because("the receiver recorded its refusal");
    assert_eq!(judged.evidence(), ["refusal"]);
    assert!(judged.round()["control"].is_null(), "a recorded refusal needs no control run");
    let lost = judged.round()["a"]["lost"].as_str().unwrap();
    assert!(lost.contains("its own deadline passed"), "{lost}");
    assert_eq!(judged.json["lease"]["ended_by"], "expiry");
}

#[test]
fn a_worker_that_is_stopped_inside_its_transaction_keeps_its_successor_out_and_the_probe_says_why() {
    let python = Python::new();
    python.scene.write(
        "inside.py",
        "import sqlite3, time\n\
         db = sqlite3.connect('shop.db', isolation_level=None)\n\
         db.execute('BEGIN IMMEDIATE')\n\
         print('ready', flush=True)\n\
         time.sleep(0.1)\n\
         db.execute('ROLLBACK')\n",
    );
    let words =
        ["--pause-on", "ready", "--read", "true", "--sink", "sqlite:shop.db?create=true&wait=100ms", "--ttl", "1s"];
    let judged = python.scene.judge(&words, &["python3", "inside.py"]);
    judged.expect("undecided", 2).because("B did not get the lease").because("print the marker before it");
}

#[test]
fn what_the_worker_prints_when_it_is_refused_is_evidence_where_no_control_run_is_wanted() {
    let scene = Scene::new();
    scene.write("out", "old");
    let judged = scene.judge_shell(&with(&["--control", "never", "--tried", "^stale"]), CAREFUL);
    judged.expect("pass", 0);
    assert_eq!(judged.round()["evidence"][0]["line"], "stale");
    scene.write("out", "old");
    let judged = scene.judge_shell(&with(&["--control", "never", "--tried", "^never said"]), CAREFUL);
    judged.expect("undecided", 2).because("no line of A after it was woken fits --tried");
}

#[test]
fn a_line_before_the_pause_is_no_evidence() {
    let scene = Scene::new();
    scene.write("out", "old");
    let early = format!("echo stale; ({CAREFUL}) | sed -u s/stale/no/");
    let judged = scene.judge_shell(&with(&["--control", "never", "--tried", "^stale"]), &early);
    judged.expect("undecided", 2).because("no line of A after it was woken fits --tried");
}

#[test]
fn workers_that_write_the_same_prove_nothing_whatever_they_say() {
    // The late write lands, and cannot be seen.
    let scene = Scene::new();
    scene.write("out", "old");
    let same = "READY; echo same >out; echo wrote it";
    let judged = scene.judge_shell(&with(&["--no-lease", "--tried", "wrote it"]), same);
    judged.expect("undecided", 2).because("A alone changes nothing").because("TENURE_PROBE_WORKER");
}

#[test]
fn a_worker_that_gives_up_without_a_try_is_undecided() {
    let scene = Scene::new();
    scene.write("out", "old");
    let lazy = "READY; [ $TENURE_PROBE_WORKER = B ] && echo B >out; true";
    let judged = scene.judge_shell(&with(&[]), lazy);
    judged.expect("undecided", 2).because("A alone");
}

#[test]
fn a_successor_that_did_nothing_is_undecided() {
    let scene = Scene::new();
    scene.write("out", "old");
    let idle = "READY; [ $TENURE_PROBE_WORKER = B ] && exit 0; true";
    scene.judge_shell(&with(&["--tried", "."]), idle).expect("undecided", 2).because("B changed nothing");
    let broken = "READY; echo $TENURE_PROBE_WORKER$TENURE_EPOCH >>out; [ $TENURE_PROBE_WORKER = A ]";
    let judged = scene.judge_shell(&with(&[]), broken);
    judged.expect("fail", 1);
    let broken = "READY; [ $TENURE_PROBE_WORKER = A ] || { echo B >>out; exit 3; }";
    scene.judge_shell(&with(&[]), broken).expect("undecided", 2).because("B did not succeed (exit 3)");
}

#[test]
fn a_reading_that_changes_by_itself_is_undecided() {
    let scene = Scene::new();
    let judged = scene.judge_shell(&["--pause-on", "ready", "--read", "date +%N"], CARELESS);
    judged.expect("undecided", 2).because("changes by itself");
}

#[test]
fn a_worker_that_never_says_the_marker_is_undecided_with_its_last_words() {
    let scene = Scene::new();
    let judged = scene.judge_shell(&["--pause-on", "ready", "--read", "true"], "echo not yet >&2; exit 4");
    judged.expect("undecided", 2).because("A never reached the marker: exit 4; its last words: not yet");
    assert!(judged.round()["b"].is_null());
}

#[test]
fn without_a_marker_a_time_after_the_start_stops_the_worker() {
    let scene = Scene::new();
    let slow = "READY; echo $TENURE_PROBE_WORKER >out";
    let judged = scene.judge_shell(&["--no-lease", "--pause-after", "100ms", "--read", "cat out"], slow);
    judged.expect("fail", 1);
    assert_eq!(judged.json["pause_after_ms"], 100);
}

#[test]
fn what_has_left_the_group_and_lost_its_parent_is_stopped_and_followed() {
    let scene = Scene::new();
    // The first process ends at once; its grandchild is in another session, without a parent of its own.
    let daemon = "(setsid sh -c 'READY; echo $TENURE_PROBE_WORKER >out; echo wrote it' &) ; true";
    let judged = scene.judge_shell(&with(&["--no-lease"]), daemon);
    judged.expect("fail", 1);
    assert_eq!(judged.texts(), [None, Some("B\n"), Some("A\n")]);
    assert!(judged.round()["a"]["processes"].as_u64() >= Some(1));
    let lines = judged.round()["a"]["lines"].as_array().unwrap();
    assert_eq!(lines.last().unwrap()["text"], "wrote it", "the probe waits for the whole tree");
}

#[test]
fn the_target_is_reset_before_each_run_also_before_the_control_run() {
    let scene = Scene::new();
    // Writes only where nothing is, so that without a reset the control run could show nothing.
    let first = "READY; [ -s out ] || echo $TENURE_PROBE_WORKER >out";
    scene.judge_shell(&with(&["--reset", ": >out"]), first).expect("pass", 0);
    scene.judge_shell(&with(&["--reset", "[ -e out ]"]), first).expect("undecided", 2);
}

#[test]
fn the_worst_of_many_rounds_counts() {
    let scene = Scene::new();
    // Careful in the first round (two runs and a control run), careless in the second.
    let count = "echo x >>runs; : >out";
    let careless_later = format!("if [ $(wc -l <runs) -gt 2 ]; then {CARELESS}; else {CAREFUL}; fi");
    let words = with(&["--repeat", "2", "--reset", count, "--junit", "report.xml"]);
    let judged = scene.judge_shell(&words, &careless_later);
    judged.expect("fail", 1);
    assert_eq!(judged.json["counts"], serde_json::json!({ "pass": 1, "fail": 1, "undecided": 0 }));
    let verdicts: Vec<_> = judged.json["rounds"].as_array().unwrap().iter().map(|round| &round["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "fail"]);

    let xml = std::fs::read_to_string(scene.path("report.xml")).unwrap();
    let report = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (2, 1, 0));
    let cases = &report.test_suites[0].test_cases;
    assert!(cases[0].name.starts_with("round 1: sh -c"), "{xml}");
    let quick_junit::TestCaseStatus::NonSuccess { message, .. } = &cases[1].status else { panic!("{xml}") };
    assert!(message.as_ref().unwrap().as_str().contains("A's late write landed"), "{xml}");
}

#[test]
fn an_undecided_round_is_an_error_in_junit() {
    let scene = Scene::new();
    scene.judge_shell(&with(&["--junit", "report.xml"]), "exit 0").expect("undecided", 2);
    let xml = std::fs::read_to_string(scene.path("report.xml")).unwrap();
    let report = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (1, 0, 1));
}

#[test]
fn people_read_a_table_on_stdout_and_what_happens_on_stderr() {
    let scene = Scene::new();
    let output = scene.probe(&with(&["--no-lease"]), &["sh", "-c", &script(CARELESS)]).output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    for part in ["A was woken and has ended  \"A\"   <- overwritten", "FAIL: A's late write landed"] {
        assert!(table.contains(part), "{table}");
    }
    assert!(
        stderr(&output).contains("A | ready") && stderr(&output).contains("A is woken after"),
        "{}",
        stderr(&output)
    );
    let output = scene.probe(&with(&["--no-lease", "--quiet"]), &["sh", "-c", &script(CARELESS)]).output().unwrap();
    assert_eq!(stderr(&output), "");
}

/// Replaces what differs from run to run.
fn plain(text: &str) -> String {
    let rules = [
        (r#""at":\s*"[^"]*""#, r#""at": "TIME""#),
        (r#""stopped_ms":\s*\d+"#, r#""stopped_ms": MILLIS"#),
        (r#""processes":\s*\d+"#, r#""processes": NUMBER"#),
        (r"marker: \d+ process(es)?", "marker: NUMBER processes"),
        // Which of several signs of its end a holder sees first.
        (r#""lost":\s*"[^"]*""#, r#""lost": "WHY""#),
        (r"own lease is lost: [^.]*", "own lease is lost: WHY"),
        (r"woken after [^\x22]*", "woken after SPAN"),
        (r"probe/[0-9a-f]{8}", "probe/RANDOM"),
        (r"(probe-[AB])@[^/\x22\s]*/\d+", "$1@HOST/PID"),
        (r"sqlite:[^\x22]*authority.db", "sqlite:FOLDER/authority.db"),
    ];
    rules
        .iter()
        .fold(text.to_owned(), |text, (from, to)| regex::Regex::new(from).unwrap().replace_all(&text, *to).into_owned())
}

#[test]
fn the_json_forms_are_as_published() {
    let scene = Scene::new();
    scene.write("out", "old");
    let show = |judged: &Judged| plain(&serde_json::to_string_pretty(&judged.json).unwrap());
    let fail = scene.judge_shell(&with(&["--no-lease"]), CARELESS);
    insta::assert_snapshot!("probe_fail", show(&fail));
    let words = ["--refusals", "cat refused || true"];
    let recorded = CAREFUL.replace("echo stale;", "echo epoch $TENURE_EPOCH >refused;");
    let pass = scene.judge_shell(&with(&words), &recorded);
    insta::assert_snapshot!("probe_pass", show(&pass));
    let undecided = scene.judge_shell(&with(&[]), "echo not yet; exit 4");
    insta::assert_snapshot!("probe_undecided", show(&undecided));
}

/// The commands of the page beside the workers, each with what it prints.
fn typed(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut typed = Vec::new();
    for block in blocks {
        for entry in block.split("$ ").skip(1) {
            let mut lines = entry.lines();
            let mut command = String::new();
            for line in lines.by_ref() {
                command += line;
                if !line.ends_with('\\') {
                    break;
                }
                command.push('\n');
            }
            typed.push((command, lines.collect::<Vec<_>>().join("\n")));
        }
    }
    typed
}

/// Without what differs from run to run, and without the spaces that depend on it.
fn words(text: &str) -> String {
    let text = plain(text);
    let stopped =
        regex::Regex::new(r"[0-9.]+ m?s, \d+ process(es)?").unwrap().replace_all(&text, "STOPPED").into_owned();
    stopped.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_beside_the_workers_shows_what_they_do() {
    let scene = Scene::new();
    for name in ["worker.sh", "worker.py"] {
        std::fs::copy(examples().join(name), scene.path(name)).unwrap();
    }
    let page = std::fs::read_to_string(examples().join("README.md")).unwrap();
    let typed = typed(&page);
    assert_eq!(typed.len(), 6);
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for (command, shown) in typed {
        let output = scene.shell(&command).env("PATH", &path).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(words(&printed), words(&shown), "{command}\n{printed}{}", stderr(&output));
    }
}
