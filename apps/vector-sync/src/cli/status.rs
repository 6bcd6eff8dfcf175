use super::place::{AuthorityAt, IndexAt};
use super::{Problem, screen};
use serde::Serialize;
use std::time::Duration;
use tenure::Tenure;
use tenure::authority::WallTime;
use tenure::core::record::Phase;
use vector_sync::index::{Generation, Index, Live, Moved, Round};
use vector_sync::tenant::Tenant;

/// Show what is live: version, epoch, documents, chunks, model, age, and who works on it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One tenant, with its audit trail, its generations and its last rounds. Without it, all.
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    #[command(flatten)]
    index: IndexAt,
    #[command(flatten)]
    authority: AuthorityAt,
    /// Write JSON: a line for each tenant.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Standing {
    tenant: String,
    live: Option<Live>,
    holder: Option<Holder>,
    generations: Vec<Generation>,
    moves: Vec<Moved>,
    rounds: Vec<Round>,
}

#[derive(Serialize)]
struct Holder {
    name: String,
    epoch: u64,
}

/// So many of the last rounds are shown.
const ROUNDS: usize = 10;

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        let index = self.index.open()?;
        let tenants = match &self.tenant {
            Some(tenant) => vec![tenant.clone()],
            None => index.tenants().await.map_err(Problem::failure)?,
        };
        let tenure = self.authority.connect(&self.index).await?;
        let mut standings = Vec::new();
        for tenant in &tenants {
            standings.push(standing(&*index, &tenure, tenant).await?);
        }
        if self.json {
            standings.iter().for_each(screen::say_json);
        } else if let (Some(_), [standing]) = (&self.tenant, &standings[..]) {
            standing.story();
        } else if standings.is_empty() {
            screen::say(&format!("{} has no tenant yet", index.place()));
        } else {
            let title = ["TENANT", "VERSION", "EPOCH", "DOCUMENTS", "CHUNKS", "MODEL", "AGE", "HOLDER"]
                .map(str::to_owned)
                .to_vec();
            let rows: Vec<Vec<String>> = standings.iter().map(Standing::row).collect();
            screen::table(&[vec![title], rows].concat());
        }
        Ok(0)
    }
}

async fn standing(index: &dyn Index, tenure: &Tenure, tenant: &Tenant) -> Result<Standing, Problem> {
    let live = index.live(tenant).await.map_err(Problem::failure)?;
    let read = tenure.authority().inspect(&tenant.resource()).await.map_err(Problem::failure)?;
    let held = read.view.lease.filter(|lease| matches!(lease.phase, Phase::Held | Phase::Sealing));
    Ok(Standing {
        tenant: tenant.to_string(),
        live,
        holder: held.map(|lease| Holder { name: lease.owner.name.to_string(), epoch: lease.epoch.get() }),
        generations: index.generations(tenant).await.map_err(Problem::failure)?,
        moves: index.switches(tenant).await.map_err(Problem::failure)?,
        rounds: index.rounds(tenant, ROUNDS).await.map_err(Problem::failure)?,
    })
}

impl Standing {
    fn row(&self) -> Vec<String> {
        let holder =
            self.holder.as_ref().map_or("-".to_owned(), |holder| format!("{} (epoch {})", holder.name, holder.epoch));
        let Some(live) = &self.live else {
            return [&self.tenant, "-", "-", "-", "-", "-", "-", &holder].map(str::to_owned).to_vec();
        };
        let manifest = &live.manifest;
        vec![
            self.tenant.clone(),
            live.version.to_string(),
            live.epoch.to_string(),
            manifest.documents.to_string(),
            manifest.chunks.to_string(),
            manifest.making.model.clone(),
            ago(live.since_ms),
            holder,
        ]
    }

    fn story(&self) {
        match &self.live {
            None => screen::say(&format!("{}: no version is live yet", self.tenant)),
            Some(live) => {
                let manifest = &live.manifest;
                screen::say(&format!("{}: version {} is live, for {}", self.tenant, live.version, ago(live.since_ms)));
                let facts = [
                    ("epoch", live.epoch.to_string()),
                    ("documents", manifest.documents.to_string()),
                    ("chunks", manifest.chunks.to_string()),
                    ("source", manifest.source.clone()),
                    ("snapshot", manifest.making.snapshot.short()),
                    ("model", format!("{}, {} numbers", manifest.making.model, manifest.making.dimensions)),
                    ("chunker", manifest.making.chunker.clone()),
                    ("digest", manifest.digest.short()),
                ];
                screen::table(&facts.map(|(name, fact)| vec![format!("  {name}"), fact]));
                if live.rejected.is_some() {
                    screen::say(
                        "  rolled back: what was live before is published again only when its documents change, or by --again",
                    );
                }
            }
        }
        if let Some(holder) = &self.holder {
            screen::say(&format!("  held by {} under epoch {}", holder.name, holder.epoch));
        }
        let section = |title: &str, rows: Vec<Vec<String>>| {
            if rows.len() > 1 {
                screen::say(&format!("\n{title}"));
                screen::table(&rows);
            }
        };
        let head = |titles: &[&str]| vec![titles.iter().map(|title| (*title).to_owned()).collect::<Vec<_>>()];
        let moves = self.moves.iter().map(|moved| {
            let from = moved.from.map_or("-".to_owned(), |from| from.to_string());
            let why = if moved.to == moved.by { "sync" } else { "rollback" };
            vec![
                moved.version.to_string(),
                from,
                moved.to.to_string(),
                moved.by.to_string(),
                why.to_owned(),
                ago(moved.at_ms),
            ]
        });
        section(
            "The alias",
            [head(&["VERSION", "FROM", "TO EPOCH", "BY EPOCH", "WHY", "AGO"]), moves.collect()].concat(),
        );
        let generations = self.generations.iter().map(|it| {
            let state = format!("{:?}", it.state).to_lowercase();
            vec![it.epoch.to_string(), state, it.chunks.to_string(), ago(it.begun_ms)]
        });
        section("Generations", [head(&["EPOCH", "STATE", "CHUNKS", "BEGUN AGO"]), generations.collect()].concat());
        let rounds = self.rounds.iter().map(|round| {
            let version = round.version.map_or("-".to_owned(), |version| version.to_string());
            vec![round.epoch.to_string(), round.outcome.clone(), version, ago(round.at_ms), round.note.clone()]
        });
        section("Rounds", [head(&["EPOCH", "OUTCOME", "VERSION", "AGO", "NOTE"]), rounds.collect()].concat());
    }
}

/// How long ago a moment of the index's clock is, by the clock of this machine.
fn ago(at_ms: i64) -> String {
    let spent = WallTime::now().as_millis().saturating_sub(u64::try_from(at_ms).unwrap_or(0));
    screen::span(Duration::from_millis(spent))
}
