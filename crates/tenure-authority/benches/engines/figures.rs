use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// What one line was measured at.
pub(crate) struct Figures {
    pub(crate) rate: f64,
    spans: Vec<Duration>,
}

impl Figures {
    pub(crate) fn median(&self) -> Duration {
        self.at(50)
    }

    pub(crate) fn p50(&self) -> String {
        micros(self.at(50))
    }

    pub(crate) fn p99(&self) -> String {
        micros(self.at(99))
    }

    fn at(&self, percent: usize) -> Duration {
        self.spans.get(self.spans.len() * percent / 100).copied().unwrap_or_default()
    }
}

fn micros(span: Duration) -> String {
    format!("{:.0} µs", span.as_secs_f64() * 1e6)
}

fn budget() -> Duration {
    let seconds = std::env::var("TENURE_BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(3.0))
}

/// Runs `step` for each of the callers on one thread until the time is up, after a fifth of it for warming up.
pub(crate) fn measure<Caller>(
    runtime: &Runtime,
    callers: Vec<Caller>,
    step: impl AsyncFn(&mut Caller) + Copy + 'static,
) -> Figures
where
    Caller: 'static,
{
    let began = Instant::now();
    let (counts, over) = (began + budget() / 5, began + budget() / 5 + budget());
    let spans = std::rc::Rc::new(RefCell::new(Vec::new()));
    let last = std::rc::Rc::new(Cell::new(began));
    let local = LocalSet::new();
    for mut caller in callers {
        let (spans, last) = (std::rc::Rc::clone(&spans), std::rc::Rc::clone(&last));
        local.spawn_local(async move {
            loop {
                let before = Instant::now();
                if before >= over {
                    return;
                }
                step(&mut caller).await;
                if before >= counts {
                    spans.borrow_mut().push(before.elapsed());
                    last.set(Instant::now());
                }
            }
        });
    }
    runtime.block_on(local);
    let mut spans = spans.take();
    spans.sort_unstable();
    let elapsed = last.get().duration_since(counts);
    Figures { rate: spans.len() as f64 / elapsed.as_secs_f64(), spans }
}
