//! Stores that do not put on a condition.

use super::wire::Wire;
use crate::id;
use futures_util::TryStreamExt;
use futures_util::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::sync::Arc;
use tenure_core::fence::Rule;
use tenure_sink::SinkError;
use tenure_sink::conformance::answered;
use tenure_sink::object::ObjectSink;

#[test]
fn a_local_folder_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let error = ObjectSink::create(store.clone(), "out", id(), Rule::Sealed).unwrap_err();
    assert!(matches!(error, SinkError::Unfit { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("LocalFileSystem") && said.contains("file sink (file:FOLDER)"), "{said}");
    let left: Vec<_> = runtime.block_on(store.list(None).try_collect()).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_store_that_does_not_heed_conditions_is_refused() {
    for ignores in [Ignores::Create, Ignores::Update, Ignores::Both] {
        let inner = Arc::new(InMemory::new());
        let store = Arc::new(Careless { inner: Arc::clone(&inner), ignores });
        let error = ObjectSink::create(store, "out", id(), Rule::Sealed).unwrap_err();
        assert!(matches!(error, SinkError::Unfit { .. }), "{ignores:?}: {error:?}");
        assert!(error.to_string().contains("overwrites"), "{error}");
        let left: Vec<_> = answered(inner.list(None).try_collect()).unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A sink that is there already is not opened through a gateway that loses the conditions.
#[test]
fn it_is_tried_at_each_opening() {
    let inner = Arc::new(InMemory::new());
    ObjectSink::create(inner.clone(), "out", id(), Rule::Sealed).unwrap();
    let careless = Arc::new(Careless { inner: Arc::clone(&inner), ignores: Ignores::Update });
    let error = ObjectSink::open(careless, "out", id(), Rule::Sealed).unwrap_err();
    assert!(matches!(error, SinkError::Unfit { .. }), "{error:?}");
    let wire = Wire::to(inner.clone());
    ObjectSink::open(wire, "out", id(), Rule::Sealed).unwrap();
    let left: Vec<ObjectMeta> = answered(inner.list(None).try_collect()).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ignores {
    Create,
    Update,
    Both,
}

/// Puts whatever the condition.
#[derive(Debug)]
struct Careless {
    inner: Arc<InMemory>,
    ignores: Ignores,
}

impl fmt::Display for Careless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("careless")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Careless {
    async fn put_opts(&self, key: &Path, body: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        let is_ignored = match &options.mode {
            PutMode::Create => self.ignores != Ignores::Update,
            PutMode::Update(_) => self.ignores != Ignores::Create,
            PutMode::Overwrite => false,
        };
        if is_ignored {
            options.mode = PutMode::Overwrite;
        }
        self.inner.put_opts(key, body, options).await
    }

    async fn put_multipart_opts(&self, key: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(key, options).await
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(below)
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
