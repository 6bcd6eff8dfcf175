//! What a checkpoint costs. `cargo bench -p tenure --bench holder`

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use tenure::authority::store::memory::MemoryStore;
use tenure::authority::{BootClock, Clock};
use tenure::{Tenure, Ttl, blocking};

fn checkpoints(criterion: &mut Criterion) {
    let store = MemoryStore::new(Clock::Boot(BootClock), Ttl::MAX).expect("a store in memory");
    let tenure = blocking::wait_for(Tenure::builder().over(Arc::new(store))).expect("a connection");
    let lease = blocking::wait_for(tenure.acquire("bench").into_future()).expect("a lease");
    let watched = tenure.acquire("watched").progress_within(std::time::Duration::from_secs(60));
    let watched = blocking::wait_for(watched.into_future()).expect("a lease");
    let mut group = criterion.benchmark_group("checkpoint");
    group.bench_function("ensure_local", |bencher| bencher.iter(|| black_box(lease.ensure_local()).is_ok()));
    group.bench_function("ensure_local with progress_within", |bencher| {
        bencher.iter(|| black_box(watched.ensure_local()).is_ok());
    });
    group.bench_function("ensure_owned, in memory", |bencher| {
        bencher.iter(|| black_box(blocking::wait_for(lease.ensure_owned())).is_ok());
    });
    group.finish();
}

criterion_group!(benches, checkpoints);
criterion_main!(benches);
