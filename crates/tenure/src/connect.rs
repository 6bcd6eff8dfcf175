use crate::acquire::Acquire;
use crate::error::ConnectError;
use crate::keeper::{Keeper, Keys};
use crate::losses::LossCounts;
use std::path::PathBuf;
use std::sync::Arc;
use tenure_authority::witness::WitnessFolder;
use tenure_authority::{Authority, Clock, Store, random_bits};
use tenure_core::record::Owner;
use tenure_core::{InstanceId, NameError, OwnerName, ResourceName};

/// Connects to the authority at `url`, such as `sqlite:jobs.db`, under a name made of this program's name. What an address
/// may be stands at [`tenure_authority::store::connect`]; one that does not answer within 10 s is given up.
///
/// # Errors
/// [`ConnectError`]; its message says what to do.
pub async fn connect(url: &str) -> Result<Tenure, ConnectError> {
    Builder::default().connect(url).await
}

/// A connection to an authority: one owner instance. Cheap to clone; all clones are one.
///
/// When the last clone and the last lease are dropped, its sessions are closed.
#[derive(Clone, Debug)]
pub struct Tenure {
    pub(crate) keeper: Arc<Keeper>,
}

impl Tenure {
    /// A connection with settings of its own.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Asks for a resource; await the answer. The defaults are those of a job of minutes: a ttl of 120 s, a renewal
    /// every 40 s, and at most 30 s of waiting.
    pub fn acquire(&self, resource: impl IntoResource) -> Acquire {
        Acquire::new(Arc::clone(&self.keeper), resource.into_resource())
    }

    /// Who this connection is.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        self.keeper.owner()
    }

    /// The authority, for what an operator asks of it.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        self.keeper.authority()
    }

    /// How many leases of this connection were lost, by reason.
    #[must_use]
    pub fn losses(&self) -> LossCounts {
        self.keeper.losses().read()
    }
}

/// A name, or a text that is checked when it is used.
pub trait IntoResource {
    /// The name.
    ///
    /// # Errors
    /// [`NameError`] when the text is not a name.
    fn into_resource(self) -> Result<ResourceName, NameError>;
}

impl IntoResource for &str {
    fn into_resource(self) -> Result<ResourceName, NameError> {
        ResourceName::new(self)
    }
}

impl IntoResource for String {
    fn into_resource(self) -> Result<ResourceName, NameError> {
        ResourceName::new(self)
    }
}

impl IntoResource for ResourceName {
    fn into_resource(self) -> Result<ResourceName, NameError> {
        Ok(self)
    }
}

/// Settings of a connection.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    owner: Option<String>,
    clock: Option<Clock>,
    witness: Option<WitnessFolder>,
    keys: Keys,
}

impl Builder {
    /// The worker's name, for people. Two workers may carry the same one: each start of a process is told apart by
    /// 128 random bits.
    #[must_use]
    pub fn owner(mut self, name: impl Into<String>) -> Self {
        self.owner = Some(name.into());
        self
    }

    /// Keeps what was seen of the authority in this folder, a small file for each store; several processes may share it. A
    /// worker that is started again then notices that the store went back in time meanwhile, also where the store cannot.
    /// A folder that cannot be used is told in the log and is no error.
    #[must_use]
    pub fn witness(mut self, folder: impl Into<PathBuf>) -> Self {
        self.witness = Some(WitnessFolder::new(folder.into()));
        self
    }

    /// Signs grants with the keys of this folder, for receivers that ask for it and for [`Checkpoint::signed`]. The keys are
    /// made when the first grant is signed. Whoever can read the folder can sign.
    ///
    /// [`Checkpoint::signed`]: crate::Checkpoint::signed
    #[cfg(feature = "signed")]
    #[must_use]
    pub fn keys(mut self, folder: impl Into<PathBuf>) -> Self {
        self.keys.folder = Some(folder.into());
        self
    }

    /// Signs in the name of this authority, which receivers may ask for. The store's identity unless said otherwise; that one
    /// changes when the store is restored.
    #[cfg(feature = "signed")]
    #[must_use]
    pub fn signs_as(mut self, authority: tenure_core::StoreIdentity) -> Self {
        self.keys.name = Some(authority);
        self
    }

    /// Another clock than the environment's. For tests.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Connects to the authority at `url`, and gives up after 10 s without an answer.
    ///
    /// # Errors
    /// [`ConnectError`]; its message says what to do.
    pub async fn connect(self, url: &str) -> Result<Tenure, ConnectError> {
        let (clock, owner) = (self.time()?, self.new_owner()?);
        let (url, store_clock) = (url.to_owned(), clock.clone());
        // On the keeper's thread, within its runtime: a store on a network has its connections there.
        #[cfg(feature = "network")]
        let open = move || tenure_authority::store::connect_on(&url, store_clock, &tokio::runtime::Handle::current());
        #[cfg(not(feature = "network"))]
        let open = move || tenure_authority::store::connect(&url, store_clock);
        let keeper = Keeper::start(clock, owner, self.witness, self.keys, open).await?;
        Ok(Tenure { keeper })
    }

    /// Connects to an authority over this store.
    ///
    /// # Errors
    /// [`ConnectError`] when the store does not answer.
    pub async fn over(self, store: Arc<dyn Store>) -> Result<Tenure, ConnectError> {
        let (clock, owner) = (self.time()?, self.new_owner()?);
        let keeper = Keeper::start(clock, owner, self.witness, self.keys, move || Ok(store)).await?;
        Ok(Tenure { keeper })
    }

    fn time(&self) -> Result<Clock, ConnectError> {
        Ok(match &self.clock {
            Some(clock) => clock.clone(),
            None => Clock::from_env()?,
        })
    }

    fn new_owner(&self) -> Result<Owner, ConnectError> {
        let name = match &self.owner {
            Some(name) => OwnerName::new(name)?,
            None => OwnerName::new(program_name())?,
        };
        Ok(Owner { name, instance: InstanceId::from_bits(random_bits()?) })
    }
}

fn program_name() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(std::path::Path::file_stem).and_then(std::ffi::OsStr::to_str);
    let printable = name.filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
    printable.unwrap_or("worker").to_owned()
}
