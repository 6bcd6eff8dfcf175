//! Roles: whoever writes can neither seal, nor see a grant that it was not given, nor forge an admission.

use super::database::Database;
use crate::{id, seal, token};
use tenure_core::fence::{Rule, Sealing};
use tenure_servers::postgres::psql;
use tenure_sink::conformance::answered;
use tenure_sink::{PostgresFence, PostgresSink, Sink, SinkError};

/// A sink of `postgres`, and a role that was allowed something.
struct Roles {
    database: Database,
    role: String,
}

impl Roles {
    fn create(allowed: &[&str]) -> Self {
        let database = Database::create(Rule::Sealed);
        let role = format!("role_{}", database.url.rsplit('_').next().unwrap());
        database.run(&format!("CREATE ROLE {role} LOGIN; GRANT ALL ON shop TO {role}"));
        for what in allowed {
            database.run(&format!("SELECT tenure.allow('{role}', '{what}')"));
        }
        assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
        Self { database, role }
    }

    fn url(&self) -> String {
        self.database.url.replace("postgres@", &format!("{}@", self.role))
    }

    fn sink(&self) -> PostgresSink {
        PostgresSink::open(&self.url(), id(), Rule::Sealed).unwrap()
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        // Roles belong to the server, which other tests share.
        let _ = psql(&self.database.url, &format!("DROP OWNED BY {0}; DROP ROLE {0}", self.role));
    }
}

#[test]
fn a_writer_writes_and_can_do_nothing_else() {
    let roles = Roles::create(&["write"]);
    let (url, grant) = (roles.url(), token(1).grant);
    let write = format!("SELECT FROM tenure.admit('r', 1, '{grant}'); INSERT INTO shop VALUES ('r', 'x')");
    psql(&url, &write).unwrap();
    psql(&url, &format!("SELECT FROM tenure.apply('r', 1, '{grant}', 'op', sha256('x'))")).unwrap();
    psql(&url, &format!("SELECT FROM tenure.lookup('r', 1, '{grant}', 'op')")).unwrap();
    for sql in [
        "SELECT tenure.describe('r')",
        "SELECT tenure.rows()",
        "SELECT tenure.seal('r', 9, gen_random_uuid(), 'g')",
        "SELECT tenure.forget('r', 9)",
        "SELECT tenure.reopen()",
        "SELECT tenure.exempt('postgres', 'me')",
        "SELECT tenure.protect('shop', 'resource')",
        "SELECT tenure.allow('postgres', 'seal')",
        "SELECT tenure.sink_take('r', '1 s', true)",
        "SELECT tenure.sink_raise('r', 9, gen_random_uuid())",
        "SELECT tenure.sink_note('a', 'b', 'c')",
        "SELECT tenure.sink_is_exempt('shop')",
        "SELECT * FROM tenure.sink_fence",
        "UPDATE tenure.sink_fence SET epoch = 9",
        "SELECT * FROM tenure.sink_namespace",
        "DELETE FROM tenure.sink_operation",
    ] {
        let said = psql(&url, sql).expect_err(sql);
        assert!(said.contains("permission denied"), "{sql}: {said}");
    }
    // Refusals name epochs and no grant.
    let said = psql(&url, "SELECT tenure.admit('r', 1, gen_random_uuid())").unwrap_err();
    assert!(said.contains("conflict") && !said.contains(&grant.to_string()), "{said}");
    // A record needs an admission.
    let said = psql(&url, "SELECT tenure.record('r', 1, 1, 'forged', sha256('x'), '')").unwrap_err();
    assert!(said.contains("no token of 'r' was admitted"), "{said}");
}

#[test]
fn an_admission_cannot_be_forged_by_a_setting() {
    let roles = Roles::create(&["write"]);
    roles.database.run("SELECT tenure.protect('shop', 'resource')");
    let url = roles.url();
    for mark in [
        "r",
        "r 1",
        "'' || pg_current_xact_id()",
        "encode(sha256(convert_to(pg_current_xact_id()::text, 'UTF8')), 'hex')",
    ] {
        let mark = if mark.contains("pg_") { mark.to_owned() } else { format!("'{mark}'") };
        for local in ["true", "false"] {
            let sql = format!(
                "SELECT set_config('tenure.admitted', {mark}, {local}), set_config('tenure.exempted', \
                 pg_current_xact_id()::text || ' shop', {local}); INSERT INTO shop VALUES ('r', 'forged')"
            );
            let said = psql(&url, &sql).expect_err(&sql);
            assert!(said.contains("is protected"), "{said}");
        }
    }
    // Nor by functions and operators of one's own that would be found first.
    let said = psql(
        &url,
        "CREATE TEMP TABLE t (x int); CREATE FUNCTION pg_temp.strpos(text, text) RETURNS int LANGUAGE sql AS 'SELECT 1'; \
         SET search_path = pg_temp, pg_catalog; INSERT INTO public.shop VALUES ('r', 'forged')",
    );
    assert!(said.as_ref().is_err_and(|said| said.contains("is protected")), "{said:?}");
}

/// The check and the trigger of a table set no search path, so a writer's own functions, operators and types are found first where a
/// name is not written in full.
#[test]
fn a_writer_s_own_functions_and_operators_decide_nothing() {
    let roles = Roles::create(&["write"]);
    let (role, grant) = (&roles.role, token(1).grant);
    roles.database.run(&format!("SELECT tenure.protect('shop', 'resource'); CREATE SCHEMA own AUTHORIZATION {role}"));
    let mut own = String::from(
        "CREATE TYPE own.text AS ENUM ('r'); CREATE TYPE own.bytea AS ENUM ('r'); CREATE TABLE own.sink_fence (resource int);",
    );
    let raises = "LANGUAGE plpgsql AS $$ BEGIN RAISE 'found first'; END $$";
    for (at, (name, kind, result)) in [
        ("=", "text", "bool"),
        ("<>", "text", "bool"),
        ("=", "bigint", "bool"),
        ("=", "uuid", "bool"),
        ("=", "timestamptz", "bool"),
        ("=", "oid", "bool"),
        (">", "int", "bool"),
        ("||", "text", "text"),
        ("||", "bytea", "bytea"),
    ]
    .into_iter()
    .enumerate()
    {
        own += &format!(
            "CREATE FUNCTION own.f{at}({kind}, {kind}) RETURNS {result} {raises}; \
             CREATE OPERATOR own.{name} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = own.f{at});"
        );
    }
    for (signature, result) in [
        ("strpos(text, text)", "int"),
        ("current_setting(text, bool)", "text"),
        ("current_setting(text)", "text"),
        ("set_config(text, text, bool)", "text"),
        ("hashtextextended(text, bigint)", "bigint"),
        ("pg_advisory_xact_lock_shared(bigint)", "void"),
        ("sha256(bytea)", "bytea"),
        ("encode(bytea, text)", "text"),
        ("xid8send(xid8)", "bytea"),
        ("pg_current_xact_id()", "xid8"),
        ("pg_postmaster_start_time()", "timestamptz"),
    ] {
        own += &format!("CREATE FUNCTION own.{signature} RETURNS {result} {raises};");
    }
    psql(&roles.url(), &own).unwrap();
    // A session that has planned nothing yet.
    let path = "SET search_path = own, pg_catalog, public";
    let admitted =
        format!("{path}; SELECT FROM tenure.admit('r', 1, '{grant}'); INSERT INTO public.shop VALUES ('r', 'x')");
    psql(&roles.url(), &admitted).unwrap();
    for refused in
        ["INSERT INTO public.shop VALUES ('r', 'y')", "UPDATE public.shop SET value = 'y'", "DELETE FROM public.shop"]
    {
        let said = psql(&roles.url(), &format!("{path}; {refused}")).unwrap_err();
        assert!(said.contains("is protected: no token of 'r'"), "{refused}: {said}");
    }
    let said = psql(&roles.url(), &format!("{path}; SELECT tenure.admit('r', 2, '{grant}')")).unwrap_err();
    assert!(said.contains("unsealed: epoch 2 of 'r'"), "{said}");
}

/// Whoever may read a fence's secret can make the mark of an admission, and nobody would have written it down.
#[test]
fn an_operator_sees_the_fences_and_not_their_secrets() {
    let roles = Roles::create(&["operate"]);
    roles.database.run("SELECT tenure.protect('shop', 'resource')");
    let url = roles.url();
    assert_eq!(psql(&url, "SELECT resource, epoch FROM tenure.sink_fence").as_deref(), Ok("r|1"));
    for sql in [
        "SELECT secret FROM tenure.sink_fence",
        "SELECT * FROM tenure.sink_fence",
        "SELECT set_config('tenure.admitted', encode(sha256((SELECT secret FROM tenure.sink_fence) || \
         convert_to(pg_current_xact_id()::text, 'UTF8')), 'hex'), true); INSERT INTO shop VALUES ('r', 'forged')",
    ] {
        let said = psql(&url, sql).expect_err(sql);
        assert!(said.contains("permission denied"), "{sql}: {said}");
    }
}

/// Nothing of the schema need be open to who writes only protected tables without a token: it is refused with the reason.
#[test]
fn a_stranger_is_refused_with_the_reason() {
    let roles = Roles::create(&[]);
    roles.database.run("SELECT tenure.protect('shop', 'resource')");
    let said = psql(&roles.url(), "INSERT INTO shop VALUES ('r', 'x')").unwrap_err();
    assert!(said.contains("is protected") && said.contains("SELECT tenure.admit"), "{said}");
}

#[test]
fn missing_rights_are_named_with_what_gives_them() {
    let roles = Roles::create(&[]);
    let error = seal(&roles.sink(), &token(2)).unwrap_err();
    assert!(matches!(error, SinkError::NotWritable { .. }) && !error.is_transient(), "{error:?}");
    let advice = format!("SELECT tenure.allow('{}', 'seal')", roles.role);
    assert!(error.to_string().contains(&advice), "{error}");
    let fence = PostgresFence::default();
    let checked = roles.database.runtime.block_on(async {
        let mut client = super::database::connect(&roles.url()).await;
        let tx = client.transaction().await.unwrap();
        fence.admit(&tx, &token(1)).await.map(|verdict| verdict.map(drop))
    });
    let error = checked.unwrap_err();
    assert!(error.to_string().contains("tenure.allow(ROLE, 'write')"), "{error}");
    roles.database.run(&advice);
    assert!(matches!(seal(&roles.sink(), &token(2)), Ok(Sealing::Seal(_))));
    assert!(matches!(answered(roles.sink().reopen()), Err(SinkError::NotWritable { .. })));
    roles.database.run(&format!("SELECT tenure.allow('{}', 'operate')", roles.role));
    answered(roles.sink().reopen()).unwrap();
}

/// Who owns a table protects it, without owning the sink.
#[test]
fn an_owner_of_a_table_protects_it() {
    let roles = Roles::create(&["write", "protect"]);
    roles.database.run(&format!("CREATE SCHEMA theirs AUTHORIZATION {}", roles.role));
    let url = roles.url();
    psql(&url, "CREATE TABLE theirs.t (r text); SELECT tenure.protect('theirs.t', 'r')").unwrap();
    let said = psql(&url, "INSERT INTO theirs.t VALUES ('r')").unwrap_err();
    assert!(said.contains("theirs.t is protected"), "{said}");
    let grant = token(1).grant;
    psql(&url, &format!("SELECT FROM tenure.admit('r', 1, '{grant}'); INSERT INTO theirs.t VALUES ('r')")).unwrap();
    let said = psql(&url, "SELECT tenure.protect('shop', 'resource')").unwrap_err();
    assert!(said.contains("must be owner") || said.contains("permission denied"), "{said}");
    assert_eq!(psql(&url, "SELECT tenure.unprotect('theirs.t', 'done')").as_deref(), Ok("t"));
}

/// The guard runs as the sink's owner, and wrote the column as text by a cast. Of an enum that cast may be a function of its
/// owner's: one INSERT by a role that could only write and protect read the grants and put the fence back from epoch 5 to 1.
/// Nobody's code runs in a guard, whether it is the guard of one's own table or another's, set on a table by hand.
#[test]
fn no_code_of_a_table_s_owner_runs_as_the_sink_s() {
    let roles = Roles::create(&["write", "protect"]);
    let (url, role, grant) = (roles.url(), &roles.role, token(1).grant);
    roles
        .database
        .run(&format!("CREATE SCHEMA theirs AUTHORIZATION {role}; SELECT tenure.protect('shop', 'resource')"));
    let guard = psql(&roles.database.url, "SELECT guard FROM tenure.sink_protected").unwrap();
    let made = format!(
        "CREATE TYPE theirs.mood AS ENUM ('r', 'fine'); CREATE TYPE theirs.pair AS (mood theirs.mood); \
         CREATE TABLE theirs.seen (who text); GRANT ALL ON SCHEMA theirs TO PUBLIC; GRANT ALL ON theirs.seen TO PUBLIC; \
         CREATE FUNCTION theirs.evil(theirs.mood) RETURNS text LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO theirs.seen VALUES (current_user); RETURN 'r'; END $$; \
         CREATE FUNCTION theirs.evil(theirs.pair) RETURNS text LANGUAGE sql AS 'SELECT theirs.evil($1.mood)'; \
         CREATE CAST (theirs.mood AS text) WITH FUNCTION theirs.evil(theirs.mood); \
         CREATE CAST (theirs.pair AS text) WITH FUNCTION theirs.evil(theirs.pair); \
         CREATE TABLE theirs.own (m theirs.mood); SELECT tenure.protect('theirs.own', 'm'); \
         CREATE TABLE theirs.borrowed (resource theirs.pair); \
         CREATE TRIGGER t BEFORE INSERT ON theirs.borrowed FOR EACH ROW EXECUTE FUNCTION tenure.{guard}(); \
         CREATE TABLE theirs.forced (p theirs.pair)"
    );
    psql(&url, &made).unwrap();
    let forced = psql(&url, "SELECT tenure.sink_make_guard('theirs.forced', 'p', '', '')").unwrap();
    psql(
        &url,
        &format!("CREATE TRIGGER t BEFORE INSERT ON theirs.forced FOR EACH ROW EXECUTE FUNCTION tenure.{forced}()"),
    )
    .unwrap();
    for (table, value) in [("own", "'fine'"), ("borrowed", "ROW('fine')"), ("forced", "ROW('fine')")] {
        // The cast says 'r', which is admitted; the value is another.
        let sql = format!("SELECT FROM tenure.admit('r', 1, '{grant}'); INSERT INTO theirs.{table} VALUES ({value})");
        let said = psql(&url, &sql).expect_err(&sql);
        assert!(said.contains("is protected"), "{sql}: {said}");
    }
    psql(&url, &format!("SELECT FROM tenure.admit('r', 1, '{grant}'); INSERT INTO theirs.own VALUES ('r')")).unwrap();
    assert_eq!(psql(&url, "SELECT DISTINCT who FROM theirs.seen").as_deref(), Ok(""), "it ran as somebody else");
    // An enum that holds no resource's name is refused like any other.
    let said = psql(&url, "INSERT INTO theirs.own VALUES (NULL)").unwrap_err();
    assert!(said.contains("which is NULL"), "{said}");
}

/// `sink_keep` and `sink_drop_guard` run as the sink's owner, and dropped the function that they were told to.
#[test]
fn an_owner_of_a_table_takes_nothing_of_the_sink_away() {
    let roles = Roles::create(&["write", "protect"]);
    let (url, role) = (roles.url(), &roles.role);
    roles
        .database
        .run(&format!("CREATE SCHEMA theirs AUTHORIZATION {role}; SELECT tenure.protect('shop', 'resource')"));
    let guard = psql(&roles.database.url, "SELECT guard FROM tenure.sink_protected").unwrap();
    psql(&url, "CREATE TABLE theirs.t (r text)").unwrap();
    for named in ["sink_server", &guard] {
        let sql = format!(
            "SELECT tenure.sink_keep('theirs.t', 'r', '%s', '{named}'), tenure.sink_drop_guard('theirs.t', 'gone')"
        );
        let said = psql(&url, &sql).expect_err(&sql);
        assert!(said.contains("is not guarded by"), "{sql}: {said}");
    }
    assert!(matches!(seal(&roles.database.sink, &token(2)), Ok(Sealing::Seal(_))));
}
