//! Changes, as many as wait in one call of the server.

use super::fault::Fault;
use super::link::{Lane, Parameter, Server};
use super::row::{self, Bits, Columns, escaped, halves, instant_to, nanos_of};
use crate::StoreError;
use crate::store::{After, RecallOutcome, Version};
use std::borrow::Cow;
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{AuthorityRecord, Event, Holdings, LeaseRecord, SessionRecord, SessionState};
use tenure_core::{Actor, AuthorityClock, Instant, ResourceName, SessionId};
use tokio::sync::oneshot;
use tokio_postgres::types::{Kind as TypeKind, ToSql, Type};

/// What came of a change, or why it was certainly not made.
pub(super) type Made = Result<RecallOutcome, StoreError>;

/// A change that waits.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) swap: Swap,
    pub(super) expected: Option<Version>,
    pub(super) recalled: Conditions,
    pub(super) answer: oneshot::Sender<Made>,
}

/// Further conditions of a change that was decided on records from memory; none for one that was decided on a reading.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conditions {
    pub(super) authority: Option<Version>,
    pub(super) valid_before: Option<Instant<AuthorityClock>>,
}

/// Which function makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Renewal,
    Lease,
    Session,
    /// One of those that are made one at a time.
    One,
}

/// Which record changes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Authority,
    Session(SessionId),
    Lease(ResourceName),
}

/// Whether it needs no row of the history, and changes a session that is there and stays Live.
pub(super) fn is_renewal(swap: &Swap, expected: Option<Version>) -> bool {
    let lives = matches!(&swap.change, Change::Session(after) if after.state == SessionState::Live);
    lives && expected.is_some() && swap.transition.event == Event::Renewed
}

impl Job {
    pub(super) fn kind(&self) -> Kind {
        match &self.swap.change {
            Change::Session(_) if is_renewal(&self.swap, self.expected) => Kind::Renewal,
            Change::Session(_) => Kind::Session,
            Change::Lease(_) => Kind::Lease,
            Change::Authority(_) | Change::DropSession(_) | Change::DropLease(_) => Kind::One,
        }
    }

    pub(super) fn key(&self) -> Key {
        match &self.swap.change {
            Change::Session(after) => Key::Session(after.id),
            Change::DropSession(id) => Key::Session(*id),
            Change::Lease(after) => Key::Lease(after.resource.clone()),
            Change::DropLease(resource) => Key::Lease(resource.clone()),
            Change::Authority(_) => Key::Authority,
        }
    }

    /// Whether a function makes it alone, and for less. That for renewals looks at no other session.
    fn has_function_of_its_own(&self) -> bool {
        match (self.kind(), &self.swap.change) {
            (Kind::Renewal, Change::Session(after)) => self.swap.relies_on.is_none_or(|id| id == after.id),
            (kind, _) => kind == Kind::Lease,
        }
    }

    fn session(&self) -> Option<&SessionRecord> {
        if let Change::Session(after) = &self.swap.change { Some(after) } else { None }
    }

    fn lease(&self) -> Option<&LeaseRecord> {
        if let Change::Lease(after) = &self.swap.change { Some(after) } else { None }
    }
}

/// The calls.
#[derive(Debug)]
pub(super) struct Statements {
    renewal: String,
    renewals: String,
    lease: String,
    leases: String,
    sessions: String,
    one: String,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let call = |function: &str, parameters: usize| {
            let places: Vec<_> = (1..=parameters).map(|place| format!("${place}")).collect();
            format!("SELECT * FROM {schema}.{function}({})", places.join(", "))
        };
        Self {
            renewal: call("renew_one", 14),
            renewals: call("renew", 14),
            lease: call("put_lease", 27),
            leases: call("put_leases", 27),
            sessions: call("put_sessions", 23),
            one: call("change_one", 20),
        }
    }
}

/// The parameters of a call, in their order.
#[derive(Default)]
pub(super) struct Parameters<'job> {
    given: Vec<(Box<dyn ToSql + Sync + Send + 'job>, Type)>,
    /// What is given of each is one value, and not an array of one.
    is_alone: bool,
}

impl<'job> Parameters<'job> {
    pub(super) fn add(&mut self, value: impl ToSql + Sync + Send + 'job, of: Type) {
        self.given.push((Box::new(value), of));
    }

    pub(super) fn as_given(&self) -> Vec<Parameter<'_>> {
        self.given.iter().map(|(value, of)| (value.as_ref() as &(dyn ToSql + Sync), of.clone())).collect()
    }

    /// One array of a value of each, of this type.
    pub(super) fn each<Of, T: ToSql + Sync + Send + 'job>(&mut self, all: &[Of], value: impl Fn(&Of) -> T, of: Type) {
        self.all(all.iter().map(value).collect(), of);
    }

    fn all<T: ToSql + Sync + Send + 'job>(&mut self, mut values: Vec<T>, of: Type) {
        if self.is_alone
            && let TypeKind::Array(alone) = of.kind()
            && let Some(value) = values.pop()
        {
            self.add(value, alone.clone());
        } else {
            self.add(values, of);
        }
    }

    fn conditions(&mut self, jobs: &'job [Job]) {
        self.each(jobs, |job| job.expected.map(signed), Type::INT8_ARRAY);
        match jobs {
            [job] if self.is_alone && job.kind() == Kind::Renewal => {
                self.add(job.swap.relies_on.is_some(), Type::BOOL);
            }
            _ => self.each(jobs, |job| job.swap.relies_on.map(|id| Bits(id.bits())), Type::BYTEA_ARRAY),
        }
        self.each(jobs, |job| job.recalled.authority.map(signed), Type::INT8_ARRAY);
        self.each(jobs, |job| job.recalled.valid_before.map(instant_to), Type::INT8_ARRAY);
    }

    fn sessions(&mut self, sessions: &[&'job SessionRecord]) {
        self.each(sessions, |session| session.owner.name.as_str(), Type::TEXT_ARRAY);
        self.each(sessions, |session| Bits(session.owner.instance.bits()), Type::BYTEA_ARRAY);
        self.each(sessions, |session| session.on_this_host, Type::BOOL_ARRAY);
        self.each(sessions, |session| nanos_of(session.ttl.get()), Type::INT8_ARRAY);
        self.each(sessions, |session| instant_to(session.deadline), Type::INT8_ARRAY);
        self.each(sessions, |session| session.renew_seq.cast_signed(), Type::INT8_ARRAY);
        self.each(sessions, |session| session.incarnation.cast_signed(), Type::INT8_ARRAY);
    }

    pub(super) fn leases(&mut self, leases: &[&'job LeaseRecord]) -> Result<(), StoreError> {
        self.each(leases, |lease| lease.resource.as_str(), Type::TEXT_ARRAY);
        self.each(leases, |lease| lease.epoch.as_i64(), Type::INT8_ARRAY);
        self.each(leases, |lease| Bits(lease.grant.bits()), Type::BYTEA_ARRAY);
        self.each(leases, |lease| Bits(lease.session.bits()), Type::BYTEA_ARRAY);
        self.each(leases, |lease| lease.owner.name.as_str(), Type::TEXT_ARRAY);
        self.each(leases, |lease| Bits(lease.owner.instance.bits()), Type::BYTEA_ARRAY);
        self.each(leases, |lease| instant_to(lease.since), Type::INT8_ARRAY);
        self.each(leases, |lease| lease.phase.name(), Type::TEXT_ARRAY);
        let (mut outcomes, mut cuts, mut forgotten) = (Vec::new(), Vec::new(), Vec::new());
        for lease in leases {
            let (outcome, cut, gone) = row::phase_columns(&lease.phase)?;
            outcomes.push(outcome);
            cuts.push(cut);
            forgotten.push(gone);
        }
        self.all(outcomes, Type::TEXT_ARRAY);
        self.all(cuts, Type::INT8_ARRAY);
        self.all(forgotten, Type::TEXT_ARRAY);
        let sinks = leases.iter().map(|lease| row::sinks_to(&lease.sinks)).collect::<Result<Vec<_>, _>>()?;
        self.all(sinks, Type::TEXT_ARRAY);
        let marks: Vec<_> = leases.iter().map(|lease| halves(mark(lease))).collect();
        self.each(&marks, |mark| mark.0, Type::INT8_ARRAY);
        self.each(&marks, |mark| mark.1, Type::INT8_ARRAY);
        Ok(())
    }

    /// The rows of the history. A renewal hands nothing over, and has none.
    fn transitions(&mut self, jobs: &'job [Job]) {
        let rows: Vec<_> = jobs.iter().map(|job| &job.swap.transition).collect();
        self.each(&rows, |row| instant_to(row.at), Type::INT8_ARRAY);
        self.each(&rows, |row| (row.event != Event::Renewed).then(|| row.event.name()), Type::TEXT_ARRAY);
        self.each(&rows, |row| row::name(row.resource.as_ref()), Type::TEXT_ARRAY);
        self.each(&rows, |row| row.session.map(|id| Bits(id.bits())), Type::BYTEA_ARRAY);
        self.each(&rows, |row| row.epoch.map(tenure_core::Epoch::as_i64), Type::INT8_ARRAY);
        self.each(&rows, |row| row.grant.map(|id| Bits(id.bits())), Type::BYTEA_ARRAY);
        self.each(&rows, |row| row.actor.as_ref().map(Actor::as_str), Type::TEXT_ARRAY);
        self.each(&rows, |row| row.why.as_ref().map(|why| escaped(why.as_str())), Type::TEXT_ARRAY);
    }
}

/// What the grant of a resource is in the fingerprint of its session.
pub(super) fn mark(lease: &LeaseRecord) -> Holdings {
    lease.holding().map(|(_, grant)| Holdings::default().toggled(grant)).unwrap_or_default()
}

fn signed(version: Version) -> i64 {
    version.0.cast_signed()
}

/// Makes the changes, all of one kind and each of another record, in one transaction. The outcomes come in their order;
/// `None`: another session holds its row, and this lane does not wait for that.
pub(super) async fn make(
    server: &Server,
    lane: Lane,
    statements: &Statements,
    jobs: &[Job],
) -> Result<Vec<Option<RecallOutcome>>, Fault> {
    let Some(first) = jobs.first() else { return Ok(Vec::new()) };
    let seen = server.time.seen();
    let kind = first.kind();
    let is_alone = jobs.len() == 1 && first.has_function_of_its_own();
    let mut parameters = Parameters { is_alone, ..Parameters::default() };
    if kind == Kind::Renewal {
        parameters.add(lane == Lane::Held, Type::BOOL);
    }
    parameters.add(instant_to(seen), Type::INT8);
    let sql = match kind {
        Kind::Renewal => {
            let sessions: Vec<_> = jobs.iter().filter_map(Job::session).collect();
            parameters.each(&sessions, |session| Bits(session.id.bits()), Type::BYTEA_ARRAY);
            parameters.conditions(jobs);
            parameters.sessions(&sessions);
            if is_alone { &statements.renewal } else { &statements.renewals }
        }
        Kind::Lease => {
            let leases: Vec<_> = jobs.iter().filter_map(Job::lease).collect();
            parameters.conditions(jobs);
            parameters.leases(&leases).map_err(Fault::Certain)?;
            parameters.transitions(jobs);
            if is_alone { &statements.lease } else { &statements.leases }
        }
        Kind::Session => {
            let sessions: Vec<_> = jobs.iter().filter_map(Job::session).collect();
            parameters.conditions(jobs);
            parameters.each(&sessions, |session| Bits(session.id.bits()), Type::BYTEA_ARRAY);
            parameters.sessions(&sessions);
            parameters.each(&sessions, |session| ended(session).map(|(why, _)| why), Type::TEXT_ARRAY);
            parameters.each(&sessions, |session| ended(session).map(|(_, at)| at), Type::INT8_ARRAY);
            parameters.transitions(jobs);
            &statements.sessions
        }
        Kind::One => {
            one(&mut parameters, first);
            &statements.one
        }
    };
    let rows = server.ask(lane, sql, &parameters.as_given()).await?;
    let mut outcomes = vec![Some(RecallOutcome::Changed); jobs.len()];
    for row in &rows {
        // It was made: an answer that makes no sense leaves only that unknown which it was to tell.
        let (place, after) = after(server, seen, row, kind).map_err(|error| Fault::Lost(error.to_string()))?;
        if let Some(outcome) = outcomes.get_mut(place) {
            *outcome = after.map(RecallOutcome::Done);
        }
    }
    Ok(outcomes)
}

fn after(
    server: &Server,
    seen: Instant<AuthorityClock>,
    row: &tokio_postgres::Row,
    kind: Kind,
) -> Result<(usize, Option<After>), StoreError> {
    let mut columns = Columns::new(row);
    let place = usize::try_from(columns.next::<i64>()? - 1).unwrap_or(usize::MAX);
    let Some(version) = columns.next::<Option<i64>>()? else { return Ok((place, None)) };
    let version = Version(version.cast_unsigned());
    let now = server.time.settle(seen, None, columns.instant()?)?;
    let history = columns.unsigned()?;
    let holdings = if kind == Kind::Renewal { columns.holdings()? } else { Holdings::default() };
    Ok((place, Some(After { version, now, history, holdings })))
}

fn ended(session: &SessionRecord) -> Option<(&'static str, i64)> {
    match session.state {
        SessionState::Live => None,
        SessionState::Ended { why, at } => Some((why.name(), instant_to(at))),
    }
}

/// The parameters of a change that is made alone.
fn one<'job>(parameters: &mut Parameters<'job>, job: &'job Job) {
    parameters.add(job.expected.map(signed), Type::INT8);
    parameters.add(job.swap.relies_on.map(|id| Bits(id.bits())), Type::BYTEA);
    parameters.add(job.recalled.authority.map(signed), Type::INT8);
    let made_before = [job.recalled.valid_before, job.swap.made_before()].into_iter().flatten().min();
    parameters.add(made_before.map(instant_to), Type::INT8);
    let (mut session, mut lease, mut authority) = (None, None, None::<&AuthorityRecord>);
    match &job.swap.change {
        Change::DropSession(id) => session = Some(Bits(id.bits())),
        Change::DropLease(resource) => lease = Some(resource.as_str()),
        Change::Authority(after) => authority = Some(after),
        // Of other kinds.
        Change::Session(_) | Change::Lease(_) => {}
    }
    parameters.add(session, Type::BYTEA);
    parameters.add(lease, Type::TEXT);
    parameters.add(authority.map(|after| after.identity.as_str()), Type::TEXT);
    parameters.add(authority.map(|after| after.incarnation.cast_signed()), Type::INT8);
    parameters.add(authority.and_then(|after| after.floor).map(tenure_core::Epoch::as_i64), Type::INT8);
    parameters.add(authority.map(|after| nanos_of(after.max_ttl.get())), Type::INT8);
    parameters.add(authority.and_then(|after| after.quarantined_until).map(instant_to), Type::INT8);
    let row = &job.swap.transition;
    parameters.add(instant_to(row.at), Type::INT8);
    parameters.add((row.event != Event::Renewed).then(|| row.event.name()), Type::TEXT);
    parameters.add(row::name(row.resource.as_ref()), Type::TEXT);
    parameters.add(row.session.map(|id| Bits(id.bits())), Type::BYTEA);
    parameters.add(row.epoch.map(tenure_core::Epoch::as_i64), Type::INT8);
    parameters.add(row.grant.map(|id| Bits(id.bits())), Type::BYTEA);
    parameters.add(row.actor.as_ref().map(Actor::as_str), Type::TEXT);
    let why: Option<Cow<'_, str>> = row.why.as_ref().map(|why| escaped(why.as_str()));
    parameters.add(why, Type::TEXT);
}

/// Who holds the store up, as far as the server tells this user: the session on its tables that has been idle in its
/// transaction for longest. Others are at work, or wait themselves.
pub(super) async fn held(server: &Server) -> StoreError {
    let sql = "SELECT a.pid, a.application_name, floor(extract(epoch FROM clock_timestamp() - a.xact_start))::bigint \
               FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid \
               LEFT JOIN pg_class c ON c.oid = coalesce(l.relation, l.objid) \
               WHERE l.granted AND c.relnamespace = to_regnamespace($1) AND l.database = \
               (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) \
               AND l.mode NOT IN ('AccessShareLock') AND a.state LIKE 'idle in transaction%' \
               ORDER BY a.xact_start LIMIT 1";
    let rows = server.ask(Lane::List, sql, &[(&server.place.schema, Type::TEXT)]).await.unwrap_or_default();
    let idle = |row: &tokio_postgres::Row| -> Result<String, tokio_postgres::Error> {
        let (pid, name, seconds): (i32, Option<&str>, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let name = name.unwrap_or_default();
        Ok(format!("process {pid} of the server ({name:?}) has been idle in transaction for {seconds} s and holds"))
    };
    StoreError::Unavailable(match rows.first().and_then(|row| idle(row).ok()) {
        Some(idle) => {
            format!("{idle} what this needs of {}: let it commit, or end it with pg_terminate_backend", server.place)
        }
        None => format!(
            "others hold what this needs of {} for too long: if it stays so, look in pg_stat_activity for a session that \
             is idle in transaction",
            server.place
        ),
    })
}
