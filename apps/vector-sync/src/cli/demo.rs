use super::place::{AuthorityAt, IndexAt, ModelAt, time};
use super::{Problem, screen};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use vector_sync::patience::{Patience, Stopwatch};
use vector_sync::point::{Point, STOP};
use vector_sync::tenant::Tenant;

/// Stop a worker right before it publishes, let another take over, wake the first, and see what becomes of its write.
///
/// Both workers are real processes of this program, on a real index. Nothing is played.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tenant's documents.
    #[arg(long, value_name = "DIR")]
    source: PathBuf,
    /// The tenant.
    #[arg(long, value_name = "NAME", default_value = "demo")]
    tenant: Tenant,
    /// Where the first worker is stopped.
    #[arg(long, value_name = "POINT", default_value = "before-switch", value_parser = known_point)]
    at: String,
    /// The index, which must have no such tenant yet. Without it, a folder that is removed afterwards.
    #[arg(long, value_name = "URL")]
    index: Option<String>,
    #[command(flatten)]
    authority: AuthorityAt,
    #[command(flatten)]
    model: ModelAt,
    /// How long a lease lasts without a renewal: so long the second worker waits.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    ttl: Duration,
}

/// How long a worker may take to come to its point, or to its end.
const PATIENCE: Duration = Duration::from_secs(900);

fn known_point(name: &str) -> Result<String, String> {
    let known = Point::ALL.map(Point::name);
    if known.contains(&name) { Ok(name.to_owned()) } else { Err(format!("there are the points {}", known.join(", "))) }
}

/// Where it happens.
struct Stage {
    index: IndexAt,
    authority: String,
}

/// A worker of ours. It is ended with this value.
struct Worker {
    name: &'static str,
    child: Child,
}

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        let folder =
            tempfile::tempdir().map_err(|error| Problem::failure(format!("no folder can be made: {error}")))?;
        let index = self.index.clone().unwrap_or_else(|| format!("sqlite:{}", folder.path().display()));
        let index = IndexAt::from(index);
        if index.open()?.live(&self.tenant).await.map_err(Problem::failure)?.is_some() {
            let (tenant, place) = (&self.tenant, index.url());
            return Err(Problem::usage(format!(
                "{tenant} has a version already in {place}: name another tenant, or another index"
            )));
        }
        let stage = Stage { authority: self.authority.url(&index)?, index };
        screen::say(&format!("A builds {} and is stopped {}.", self.tenant, self.at.replace('-', " ")));
        let mut first = self.start("A", &stage, Some(&self.at))?;
        first.is_stopped().await?;
        screen::say("A is stopped: it holds the lease, believes so, and does nothing.");
        let watch = Stopwatch::start();
        let mut second = self.start("B", &stage, None)?;
        let second = second.ends().await?;
        screen::say(&format!("B ended with status {second} after {}.", screen::span(watch.spent())));
        first.wake()?;
        screen::say("A was woken: it goes on where it was, with a token that is older than the seal.");
        let status = first.ends().await?;
        screen::say(&format!("A ended with status {status}."));
        screen::say("");
        let shown = Self::command(&["status", "--tenant", self.tenant.as_str()], &stage).status().await;
        shown.map_err(|error| Problem::failure(format!("this program cannot be started: {error}")))?;
        // 0 would mean that A published, or believes that it did.
        Ok(if second == 0 && status == 76 { 0 } else { 1 })
    }

    fn command(words: &[&str], stage: &Stage) -> Command {
        let program = std::env::current_exe().unwrap_or_else(|_| "vector-sync".into());
        let mut command = Command::new(program);
        // In the environment: an address may hold a password.
        command.args(words).env("TENURE_AUTHORITY", &stage.authority).env("VECTOR_SYNC_INDEX", stage.index.url());
        command
    }

    fn start(&self, name: &'static str, stage: &Stage, stop: Option<&str>) -> Result<Worker, Problem> {
        let ttl = format!("{}ms", self.ttl.as_millis());
        let words = ["sync", "--tenant", self.tenant.as_str(), "--ttl", &ttl, "--wait", "600s", "--owner", name];
        let mut command = Self::command(&words, stage);
        command.arg("--source").arg(&self.source).env("VECTOR_SYNC_MODEL", self.model.words());
        command.env_remove(STOP);
        stop.map(|stop| command.env(STOP, stop));
        let child = command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| Problem::failure(format!("worker {name} cannot be started: {error}")))?;
        if let Some(out) = child.stdout.take() {
            repeat(name, out);
        }
        if let Some(out) = child.stderr.take() {
            repeat(name, out);
        }
        Ok(Worker { name, child })
    }
}

/// Repeats what a worker says, under its name.
fn repeat(name: &'static str, out: impl tokio::io::AsyncRead + Send + Unpin + 'static) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(out).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            screen::say(&format!("  {name} | {line}"));
        }
    });
}

impl Worker {
    async fn is_stopped(&mut self) -> Result<(), Problem> {
        let (name, mut patience) = (self.name, Patience::new(PATIENCE));
        let pid = self.child.id().ok_or_else(|| Problem::failure(format!("worker {name} has ended")))?;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Problem::failure(format!(
                    "worker {name} ended ({status}) before its point: it found nothing to do there"
                )));
            }
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The state stands behind the name, which may hold anything.
            if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')) {
                return Ok(());
            }
            if patience.is_over() {
                return Err(Problem::failure(format!(
                    "worker {name} did not come to its point in {}",
                    screen::span(PATIENCE)
                )));
            }
            patience.pause().await;
        }
    }

    fn wake(&self) -> Result<(), Problem> {
        let pid = self.child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| Problem::failure(format!("worker {} has ended", self.name)))?;
        rustix::process::kill_process(pid, rustix::process::Signal::CONT)
            .map_err(|error| Problem::failure(format!("worker {} cannot be woken: {error}", self.name)))
    }

    async fn ends(&mut self) -> Result<i32, Problem> {
        let status = tokio::select! {
            status = self.child.wait() => status.map_err(|error| Problem::failure(format!("worker {}: {error}", self.name)))?,
            () = vector_sync::patience::pause(PATIENCE) => {
                return Err(Problem::failure(format!("worker {} did not end in {}", self.name, screen::span(PATIENCE))));
            }
        };
        Ok(status.code().unwrap_or(-1))
    }
}
