//! Whose documents lie where.

use super::Problem;
use clap::Args;
use std::path::{Path, PathBuf};
use vector_sync::source::{self, Source};
use vector_sync::tenant::Tenant;

/// One tenant, or all of a folder.
#[derive(Clone, Debug, Args)]
pub(crate) struct Tenants {
    /// The tenant.
    #[arg(
        long,
        value_name = "NAME",
        requires = "source",
        required_unless_present = "sources",
        conflicts_with = "sources"
    )]
    tenant: Option<Tenant>,
    /// Its documents: a folder of Markdown, HTML, reStructuredText and text, or a PostgreSQL database with --query.
    #[arg(long, value_name = "DIR or URL", requires = "tenant")]
    source: Option<String>,
    /// What to read of a database: a query that gives a name and a text for each document, and perhaps its format (markdown,
    /// html, rst or text).
    #[arg(long, value_name = "SQL", requires = "source")]
    query: Option<String>,
    /// A folder with a folder for each tenant, called as the tenant is.
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    /// The largest document, in MiB. A larger one fails the round.
    #[arg(long, value_name = "MIB", default_value_t = 16)]
    max_document: u32,
}

/// Tenants with their documents.
pub(crate) type Listed = Vec<(Tenant, Box<dyn Source>)>;

impl Tenants {
    /// Each tenant with its documents. The folder is read anew each time.
    pub(crate) fn list(&self) -> Result<Listed, Problem> {
        if let Some(folder) = &self.sources {
            return self.folders(folder);
        }
        // Both are there, or the command line was refused.
        let (Some(tenant), Some(place)) = (&self.tenant, &self.source) else { return Ok(Vec::new()) };
        let source = source::open(place, &self.settings()).map_err(Problem::usage)?;
        Ok(vec![(tenant.clone(), source)])
    }

    fn settings(&self) -> source::Settings {
        source::Settings { max_document: u64::from(self.max_document) << 20, query: self.query.clone() }
    }

    fn folders(&self, folder: &Path) -> Result<Listed, Problem> {
        let cannot = |error: std::io::Error| Problem::usage(format!("{} cannot be read: {error}", folder.display()));
        let mut tenants = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Hidden folders are no tenants', and files belong to nobody.
            if name.starts_with('.') || !entry.path().is_dir() {
                continue;
            }
            let tenant: Tenant = name.parse().map_err(Problem::usage)?;
            let source = source::open(&entry.path().to_string_lossy(), &self.settings()).map_err(Problem::usage)?;
            tenants.push((tenant, source));
        }
        if tenants.is_empty() {
            return Err(Problem::usage(format!("{} has no folder for any tenant", folder.display())));
        }
        tenants.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(tenants)
    }
}
