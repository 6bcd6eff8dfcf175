//! A store of objects behind a wire that loses, holds and repeats what it is told to.

use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tenure_sink::conformance::answered;
use tokio::sync::Semaphore;

/// Who is not at a gate by then does not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// What happens to one put.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It does not arrive, and nobody says so.
    LoseRequest,
    /// It is done, and nobody hears of it.
    LoseAnswer,
    /// The first of two attempts was done, and its answer lost; the second one's is heard.
    Twice,
    /// It waits at a gate before it arrives.
    Gate(Arc<Gate>),
    /// It arrives when it is [released](Wire::release), and until then nothing does.
    Late,
    /// The store refuses it.
    Refuse,
}

/// A place where a put waits.
#[derive(Debug)]
pub(super) struct Gate {
    arrived: Mutex<u32>,
    came: Condvar,
    open: Semaphore,
}

impl Gate {
    pub(super) fn closed() -> Arc<Self> {
        Arc::new(Self { arrived: Mutex::new(0), came: Condvar::new(), open: Semaphore::new(0) })
    }

    /// Waits on this thread until somebody is there.
    #[track_caller]
    pub(super) fn wait(&self) {
        let arrived = self.arrived.lock().unwrap();
        let (mut arrived, waited) = self.came.wait_timeout_while(arrived, PATIENCE, |arrived| *arrived == 0).unwrap();
        assert!(!waited.timed_out(), "nobody came to the gate");
        *arrived -= 1;
    }

    async fn pass(&self) {
        *self.arrived.lock().unwrap() += 1;
        self.came.notify_all();
        self.open.acquire().await.unwrap().forget();
    }

    pub(super) fn open(&self) {
        self.open.add_permits(1);
    }
}

pub(super) struct Wire {
    inner: Arc<dyn ObjectStore>,
    plans: Mutex<Vec<(&'static str, Trouble)>>,
    late: Mutex<Vec<(Path, PutPayload, PutMode)>>,
    is_dark: AtomicBool,
    /// Where the next look at a manifest waits that follows on a lost put.
    reads: Mutex<Option<Arc<Gate>>>,
    has_lost: AtomicBool,
    /// Which of the next looks at manifests fail.
    blind: Mutex<VecDeque<bool>>,
    /// Whether versions are digests of the bodies, as on S3.
    is_hashed: bool,
    one_put: tokio::sync::Mutex<()>,
    puts: AtomicU64,
    gets: AtomicU64,
}

impl Wire {
    pub(super) fn to(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self::new(inner, false))
    }

    /// With digests of the bodies for versions.
    pub(super) fn hashed(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self::new(inner, true))
    }

    fn new(inner: Arc<dyn ObjectStore>, is_hashed: bool) -> Self {
        Self {
            inner,
            plans: Mutex::default(),
            late: Mutex::default(),
            is_dark: AtomicBool::new(false),
            reads: Mutex::default(),
            has_lost: AtomicBool::new(false),
            blind: Mutex::default(),
            is_hashed,
            one_put: tokio::sync::Mutex::default(),
            puts: AtomicU64::new(0),
            gets: AtomicU64::new(0),
        }
    }

    /// The next put of a key with this in it meets trouble.
    pub(super) fn plan(&self, key: &'static str, trouble: Trouble) {
        self.plans.lock().unwrap().push((key, trouble));
    }

    /// Whether all that was planned has happened.
    pub(super) fn is_done(&self) -> bool {
        self.plans.lock().unwrap().is_empty()
    }

    /// Nothing is answered any more, or everything is again.
    pub(super) fn dark(&self, is_dark: bool) {
        self.is_dark.store(is_dark, Ordering::SeqCst);
    }

    /// Lets what is late arrive, and says whether it was done.
    pub(super) fn release(&self) -> Vec<bool> {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        late.into_iter().map(|(key, body, mode)| answered(self.put_now(&key, body, mode.into())).is_ok()).collect()
    }

    /// The next look at a manifest that follows on a lost put waits at a gate, before it arrives.
    pub(super) fn hold_reads(&self, gate: Arc<Gate>) {
        *self.reads.lock().unwrap() = Some(gate);
    }

    /// Which of the next looks at manifests fail. One that waits at a gate has begun already.
    pub(super) fn blind(&self, looks: impl IntoIterator<Item = bool>) {
        self.blind.lock().unwrap().extend(looks);
    }

    /// All looks succeed again.
    pub(super) fn see(&self) {
        self.blind.lock().unwrap().clear();
    }

    /// How many puts and gets there were so far.
    pub(super) fn asked(&self) -> (u64, u64) {
        (self.puts.load(Ordering::SeqCst), self.gets.load(Ordering::SeqCst))
    }

    fn lit(&self) -> Result<()> {
        if self.is_dark.load(Ordering::SeqCst) { Err(broken()) } else { Ok(()) }
    }

    fn planned(&self, key: &Path) -> Option<Trouble> {
        let mut plans = self.plans.lock().unwrap();
        let at = plans.iter().position(|(part, _)| key.as_ref().contains(part))?;
        Some(plans.remove(at).1)
    }

    async fn put_now(&self, key: &Path, body: PutPayload, options: PutOptions) -> Result<PutResult> {
        if !self.is_hashed {
            return self.inner.put_opts(key, body, options).await;
        }
        let _one = self.one_put.lock().await;
        let tag = tag(&body);
        if let PutMode::Update(wanted) = &options.mode {
            let stands = self.inner.get(key).await?.bytes().await?;
            if wanted.e_tag != Some(self::tag(&stands.into())) {
                return Err(Error::Precondition { path: key.to_string(), source: "another version".into() });
            }
            self.inner.put(key, body).await?;
        } else {
            self.inner.put_opts(key, body, options).await?;
        }
        Ok(PutResult { e_tag: Some(tag), version: None, extensions: Default::default() })
    }
}

fn tag(body: &PutPayload) -> String {
    let mut hash = Sha256::new();
    body.iter().for_each(|piece| hash.update(piece));
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn broken() -> Error {
    Error::Generic { store: "wire", source: "the connection broke".into() }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wire")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Wire {
    async fn put_opts(&self, key: &Path, body: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.lit()?;
        self.puts.fetch_add(1, Ordering::SeqCst);
        // As on a real wire, others come in between.
        tokio::task::yield_now().await;
        match self.planned(key) {
            None => self.put_now(key, body, options).await,
            Some(Trouble::LoseRequest) => Err(broken()),
            Some(Trouble::LoseAnswer) => {
                let done = self.put_now(key, body, options).await;
                self.has_lost.store(true, Ordering::SeqCst);
                done.and(Err(broken()))
            }
            Some(Trouble::Twice) => {
                let _ = self.put_now(key, body.clone(), options.clone()).await;
                self.has_lost.store(true, Ordering::SeqCst);
                self.put_now(key, body, options).await
            }
            Some(Trouble::Gate(gate)) => {
                gate.pass().await;
                self.put_now(key, body, options).await
            }
            Some(Trouble::Late) => {
                self.late.lock().unwrap().push((key.clone(), body, options.mode));
                self.dark(true);
                Err(broken())
            }
            Some(Trouble::Refuse) => Err(Error::PermissionDenied { path: key.to_string(), source: "no".into() }),
        }
    }

    async fn put_multipart_opts(&self, key: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.lit()?;
        match self.planned(key) {
            Some(Trouble::Gate(gate)) => gate.pass().await,
            Some(_) => return Err(broken()),
            None => {}
        }
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        self.lit()?;
        self.gets.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if key.as_ref().contains("manifests") && self.blind.lock().unwrap().pop_front() == Some(true) {
            return Err(broken());
        }
        if key.as_ref().contains("manifests") && self.has_lost.swap(false, Ordering::SeqCst) {
            let gate = self.reads.lock().unwrap().take();
            if let Some(gate) = gate {
                gate.pass().await;
            }
        }
        let mut got = self.inner.get_opts(key, options).await?;
        if self.is_hashed {
            let stands = self.inner.get(key).await?.bytes().await?;
            got.meta.e_tag = Some(tag(&stands.into()));
        }
        Ok(got)
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.lit() {
            Ok(()) => self.inner.delete_stream(keys),
            Err(error) => futures_util::stream::iter([Err(error)]).boxed(),
        }
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.lit() {
            Ok(()) => self.inner.list(below),
            Err(error) => std::future::ready(Err(error)).into_stream().boxed(),
        }
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
