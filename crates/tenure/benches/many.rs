//! A hundred thousand leases in one process. `cargo bench -p tenure --bench many`
//!
//! Prints what a renewal costs with one lease and with all of them, and what a lease costs in memory beyond the store:
//! the growth of the process while leases are acquired, less its growth while as many are granted without a holder.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::authority::store::sqlite::{Options, SqliteStore};
use tenure::authority::{Authority, BootClock, Clock, random_bits};
use tenure::core::decide::{Reply, Request};
use tenure::core::record::{Owner, Seen};
use tenure::core::{GrantId, InstanceId, OwnerName, SessionId};
use tenure::{Lease, ResourceName, Tenure, Ttl};
use tokio::task::JoinSet;

const LEASES: usize = 100_000;
const CALLERS: usize = 64;
const RENEWALS: u32 = 2_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let options = Options { create: true, ..Options::new(Clock::Boot(BootClock)) };
    let store = Arc::new(SqliteStore::open(dir.path().join("many.db"), &options)?);
    let authority = Authority::new(store.clone());

    let (one, all) = (open_session(&authority).await?, open_session(&authority).await?);
    grant_without_holders(&authority, one, "one", 1).await?;
    let before = resident_bytes()?;
    grant_without_holders(&authority, all, "bare", LEASES).await?;
    let by_store = resident_bytes()?.saturating_sub(before);
    let [with_one, with_all] = renew_in_turns(&authority, [one, all]).await?;

    let tenure = Tenure::builder().owner("bench").clock(Clock::Boot(BootClock)).over(store).await?;
    let before = resident_bytes()?;
    let leases = acquire_all(&tenure).await?;
    let by_holder = resident_bytes()?.saturating_sub(before);
    let beyond = by_holder.saturating_sub(by_store);
    for lease in &leases {
        lease.ensure_local()?;
    }

    println!("leases held                          {:>12}", leases.len());
    println!("renewal of a session with 1 lease    {with_one:>12.1?}");
    println!("renewal of a session with {LEASES}     {with_all:>12.1?}   {:.2} times", ratio(with_all, with_one));
    println!("memory of the store for as many      {by_store:>12} bytes");
    println!("memory beyond the store              {beyond:>12} bytes   {} a lease", beyond / LEASES as u64);
    Ok(())
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

async fn open_session(authority: &Authority) -> Outcome<SessionId> {
    let Reply::Hello { now, seen, .. } = authority.execute(&Request::Hello { seen: Seen::default() }).await?? else {
        return Err("no hello".into());
    };
    let id = SessionId::from_bits(random_bits()?);
    let owner = Owner { name: OwnerName::new("bench")?, instance: InstanceId::from_bits(random_bits()?) };
    let request = Request::Open { id, owner, on_this_host: true, ttl: Ttl::MAX, asked_at: now, seen };
    authority.execute(&request).await??;
    Ok(id)
}

async fn grant_without_holders(authority: &Authority, session: SessionId, prefix: &str, count: usize) -> Outcome<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (authority, next, prefix) = (authority.clone(), Arc::clone(&next), prefix.to_owned());
        callers.spawn(async move {
            while let n = next.fetch_add(1, Ordering::Relaxed)
                && n < count as u64
            {
                let request = Request::Acquire {
                    resource: ResourceName::new(format!("{prefix}-{n:06}"))?,
                    grant: GrantId::from_bits(random_bits()?),
                    session,
                    sinks: [].into(),
                };
                authority.execute(&request).await??;
            }
            Outcome::Ok(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    Ok(())
}

async fn acquire_all(tenure: &Tenure) -> Outcome<Vec<Lease>> {
    let next = Arc::new(AtomicU64::new(0));
    let leases = Arc::new(Mutex::new(Vec::with_capacity(LEASES)));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (tenure, next, leases) = (tenure.clone(), Arc::clone(&next), Arc::clone(&leases));
        callers.spawn(async move {
            while let n = next.fetch_add(1, Ordering::Relaxed)
                && n < LEASES as u64
            {
                let lease = tenure.acquire(format!("held-{n:06}")).ttl(Ttl::MAX.get()).await?;
                leases.lock().map_err(|_| "a caller panicked")?.push(lease);
            }
            Outcome::Ok(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    let mut leases = leases.lock().map_err(|_| "a caller panicked")?;
    Ok(std::mem::take(&mut *leases))
}

/// In turns, so that both sessions meet the same disk and the same neighbours.
async fn renew_in_turns(authority: &Authority, sessions: [SessionId; 2]) -> Outcome<[Duration; 2]> {
    let mut spent = [Duration::ZERO; 2];
    for n in 0..u64::from(RENEWALS) {
        for (id, spent) in sessions.into_iter().zip(&mut spent) {
            let begin = BootClock.now_nanos();
            authority.execute(&Request::Renew { id, n, seen: Seen::default() }).await??;
            *spent += Duration::from_nanos(BootClock.now_nanos() - begin);
        }
    }
    Ok(spent.map(|spent| spent / RENEWALS))
}

fn resident_bytes() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes * 1024)
}
