//! Tables that cannot be written without the token, whoever runs the statement.

use super::database::Database;
use crate::{id, seal};
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Epoch, GrantId, ResourceName, Token};
use tenure_servers::postgres::psql;

const GRANT: &str = "00000000000000000000000000000007";

fn of(resource: &str) -> Token {
    Token { resource: ResourceName::new(resource).unwrap(), epoch: Epoch::FIRST, grant: GrantId::from_bits(7) }
}

/// A database with a protected table of two tenants, each with a row.
struct Shop(Database);

impl Shop {
    fn create(table: &str, protect: &str) -> Self {
        let database = Database::create(Rule::Sealed);
        for tenant in ["a", "b"] {
            assert!(matches!(seal(&database.sink, &of(tenant)), Ok(Sealing::Seal(_))));
        }
        let shop = Self(database);
        shop.done(&format!("{table}; INSERT INTO document VALUES ('a', 1), ('b', 1)"));
        shop.done(protect);
        shop
    }

    fn usual() -> Self {
        Self::create("CREATE TABLE document (tenant text, n int)", "SELECT tenure.protect('document', 'tenant')")
    }

    /// Runs a script as psql does; its statements are one transaction.
    fn psql(&self, sql: &str) -> Result<String, String> {
        psql(&self.0.url, sql)
    }

    fn done(&self, sql: &str) -> String {
        self.psql(sql).unwrap_or_else(|said| panic!("`{sql}`: {said}"))
    }

    /// With a token of `a`.
    fn held(&self, sql: &str) -> Result<String, String> {
        self.psql(&format!("SELECT FROM tenure.admit('a', 1, '{GRANT}'); {sql}"))
    }

    #[track_caller]
    fn refused(&self, sql: &str, said: Result<String, String>, part: &str) {
        let before = self.done("SELECT * FROM document ORDER BY tenant, n");
        let said = said.expect_err(sql);
        assert!(said.contains("is protected") && said.contains(part), "`{sql}`: {said}");
        assert_eq!(self.done("SELECT * FROM document ORDER BY tenant, n"), before, "`{sql}`");
    }
}

const WRITES_TO_A: &[&str] = &[
    "INSERT INTO document VALUES ('a', 2)",
    "INSERT INTO document SELECT 'a', g FROM generate_series(2, 4) g",
    "UPDATE document SET n = n + 1 WHERE tenant = 'a'",
    "WITH gone AS (DELETE FROM document WHERE tenant = 'a' AND n = 3 RETURNING *) INSERT INTO document SELECT * FROM gone",
    "DELETE FROM document WHERE tenant = 'a' AND n > 1",
    "MERGE INTO document d USING (VALUES ('a', 9)) v (t, n) ON d.tenant = v.t AND d.n = v.n \
     WHEN MATCHED THEN UPDATE SET n = 10 WHEN NOT MATCHED THEN INSERT VALUES (v.t, v.n)",
    "COPY document FROM PROGRAM 'printf \"a\\t5\\n\"'",
];

#[test]
fn only_an_admitted_token_of_the_row_s_resource_lets_a_statement_in() {
    let shop = Shop::usual();
    for sql in WRITES_TO_A {
        shop.refused(sql, shop.psql(sql), "no token of 'a' was admitted in this transaction");
        shop.held(sql).unwrap_or_else(|said| panic!("`{sql}`: {said}"));
        shop.done("DELETE FROM document WHERE false");
    }
    for sql in WRITES_TO_A.iter().map(|sql| sql.replace("'a'", "'b'").replace("\"a", "\"b")) {
        if !sql.starts_with("DELETE FROM document WHERE tenant = 'b' AND n > 1") && !sql.starts_with("WITH gone") {
            shop.refused(&sql, shop.held(&sql), "no token of 'b' was admitted in this transaction");
        }
    }
}

#[test]
fn a_row_does_not_move_between_resources_without_both_tokens() {
    let shop = Shop::usual();
    for (sql, part) in [
        ("UPDATE document SET tenant = 'b' WHERE tenant = 'a'", "no token of 'b'"),
        ("UPDATE document SET tenant = 'a' WHERE tenant = 'b'", "no token of 'b'"),
        ("UPDATE document SET tenant = NULL WHERE tenant = 'a'", "which is NULL"),
        ("UPDATE document SET n = 7", "no token of 'b'"),
    ] {
        shop.refused(sql, shop.held(sql), part);
    }
    let both = format!("SELECT FROM tenure.admit('b', 1, '{GRANT}'); UPDATE document SET tenant = 'b'");
    shop.held(&both).unwrap();
    assert_eq!(shop.done("SELECT count(*) FROM document WHERE tenant = 'b'"), "2");
}

#[test]
fn truncate_takes_the_rows_of_every_resource() {
    let shop = Shop::usual();
    shop.refused("TRUNCATE document", shop.held("TRUNCATE document"), "TRUNCATE takes the rows of every resource");
}

/// Superusers, owners and replication roles are writers like others.
#[test]
fn nobody_is_past_it_by_who_it_is() {
    let shop = Shop::usual();
    for before in
        ["SET session_replication_role = replica", "SET session_replication_role = local", "SET ROLE postgres"]
    {
        let sql = format!("{before}; UPDATE document SET n = 5 WHERE tenant = 'a'");
        shop.refused(&sql, shop.psql(&sql), "no token of 'a'");
        let sql = format!("{before}; TRUNCATE document");
        shop.refused(&sql, shop.psql(&sql), "TRUNCATE");
    }
}

/// The admission is this transaction's: not that of the one before on the same connection, nor a setting of the session.
#[test]
fn what_was_admitted_in_another_transaction_counts_for_nothing() {
    let shop = Shop::usual();
    let write = "UPDATE document SET n = 5 WHERE tenant = 'a'";
    let said = shop.psql(&format!("BEGIN; SELECT FROM tenure.admit('a', 1, '{GRANT}'); COMMIT; {write}"));
    shop.refused(write, said, "no token of 'a'");
    // A mark that was read in one transaction and set in another.
    let said = shop.psql(&format!(
        "BEGIN; SELECT FROM tenure.admit('a', 1, '{GRANT}'); \
         CREATE TEMP TABLE mark AS SELECT current_setting('tenure.admitted') AS mark; COMMIT; \
         SELECT set_config('tenure.admitted', mark, false) FROM mark; {write}"
    ));
    shop.refused(write, said, "no token of 'a'");
    // One that was rolled back to before the check.
    let said = shop.psql(&format!(
        "BEGIN; SAVEPOINT s; SELECT FROM tenure.admit('a', 1, '{GRANT}'); ROLLBACK TO s; {write}; COMMIT"
    ));
    shop.refused(write, said, "no token of 'a'");
    // And one from before the check is not spoilt by it.
    shop.done(&format!(
        "BEGIN; SELECT FROM tenure.admit('a', 1, '{GRANT}'); SAVEPOINT s; SELECT FROM tenure.admit('b', 1, '{GRANT}'); \
         ROLLBACK TO s; {write}; COMMIT"
    ));
}

/// A mark was read, the check was rolled back, and its locks with it; then the mark was set by hand. A newer seal passed, and
/// the write as well.
#[test]
fn a_mark_counts_for_nothing_after_another_seal() {
    let shop = Shop::usual();
    let (mut client, runtime) = (shop.0.connect(), &shop.0.runtime);
    let tx = runtime.block_on(client.transaction()).unwrap();
    runtime.block_on(async {
        tx.batch_execute(&format!("SAVEPOINT s; SELECT FROM tenure.admit('a', 1, '{GRANT}')")).await.unwrap();
        let mark: String = tx.query_one("SELECT current_setting('tenure.admitted')", &[]).await.unwrap().get(0);
        tx.batch_execute("ROLLBACK TO s").await.unwrap();
        tx.execute("SELECT set_config('tenure.admitted', $1, true)", &[&mark]).await.unwrap();
    });
    let next = Token { epoch: Epoch::FIRST.next().unwrap(), ..of("a") };
    assert!(matches!(seal(&shop.0.sink, &next), Ok(Sealing::Seal(_))), "something held it off");
    let written = runtime.block_on(tx.batch_execute("UPDATE document SET n = 5 WHERE tenant = 'a'"));
    assert!(written.as_ref().is_err_and(|error| format!("{error:?}").contains("is protected")), "{written:?}");
}

#[test]
fn a_late_writer_is_refused_and_learns_who_holds_it() {
    let shop = Shop::usual();
    let next = Token { epoch: Epoch::FIRST.next().unwrap(), ..of("a") };
    assert!(matches!(seal(&shop.0.sink, &next), Ok(Sealing::Seal(_))));
    let said = shop.held("UPDATE document SET n = 5 WHERE tenant = 'a'").unwrap_err();
    for part in
        ["stale: epoch 1 of 'a' was shown, epoch 2 is registered", "Epoch 2 was registered at", "stop this worker"]
    {
        assert!(said.contains(part), "{said}");
    }
}

/// What others do to a row before it is written, they do before it is checked.
#[test]
fn a_trigger_that_moves_the_row_is_seen() {
    let shop = Shop::usual();
    shop.done(
        "CREATE FUNCTION moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.tenant := 'b'; RETURN NEW; END $$; \
         CREATE TRIGGER moves BEFORE UPDATE ON document FOR EACH ROW EXECUTE FUNCTION moves()",
    );
    let sql = "UPDATE document SET n = 5 WHERE tenant = 'a'";
    shop.refused(sql, shop.held(sql), "no token of 'b'");
}

/// The trigger of a table whose column has a collation of its own failed at each write, with a word about collations. And where
/// two spellings are equal to the column, they are still two resources.
#[test]
fn a_column_with_a_collation_of_its_own_is_compared_as_bytes() {
    for collation in ["\"en-x-icu\"", "blind"] {
        let shop = Shop::create(
            &format!(
                "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
                 CREATE TABLE document (tenant text COLLATE {collation}, n int)"
            ),
            "SELECT tenure.protect('document', 'tenant')",
        );
        let sql = "UPDATE document SET n = 5 WHERE tenant = 'a'";
        shop.refused(sql, shop.psql(sql), "no token of 'a'");
        shop.held(sql).unwrap();
        let sql = "UPDATE document SET tenant = 'A' WHERE tenant = 'a'";
        shop.refused(sql, shop.held(sql), "no token of 'A'");
    }
}

/// A trigger whose name sorts behind the guard's sees the row after it was checked, and may make another one of it.
#[test]
fn a_trigger_behind_the_check_is_shown() {
    let shop = Shop::usual();
    let whole = || shop.done("SELECT whole FROM tenure.protected()");
    shop.done(
        "CREATE FUNCTION moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.tenant := 'b'; RETURN NEW; END $$",
    );
    for (name, when, is_whole) in [
        ("before_it", "BEFORE UPDATE ON document FOR EACH ROW", "t"),
        ("zzz_statement", "BEFORE UPDATE ON document FOR EACH STATEMENT", "t"),
        ("zzz_after", "AFTER UPDATE ON document FOR EACH ROW", "t"),
        ("zzz_before", "BEFORE UPDATE ON document FOR EACH ROW", "f"),
    ] {
        shop.done(&format!("CREATE TRIGGER {name} {when} EXECUTE FUNCTION moves()"));
        assert_eq!(whole(), is_whole, "{name}");
        shop.done(&format!("DROP TRIGGER {name} ON document"));
    }
    assert_eq!(whole(), "t");
}

/// What the table's owner does to the table is shown as far as it can be: a dropped one stood there for ever, as a number.
#[test]
fn a_renamed_column_is_shown_and_a_dropped_table_is_not() {
    let shop = Shop::usual();
    shop.done("ALTER TABLE document RENAME tenant TO customer");
    assert_eq!(shop.done("SELECT relation, whole FROM tenure.protected()"), "document|f");
    shop.psql("UPDATE document SET n = 5").expect_err("nobody knows whose rows they are");
    shop.done("SELECT tenure.unprotect('document', 'renamed'); SELECT tenure.protect('document', 'customer')");
    assert_eq!(shop.done("SELECT relation, whole FROM tenure.protected()"), "document|t");
    shop.done("DROP TABLE document");
    assert_eq!(shop.done("SELECT count(*) FROM tenure.protected()"), "0");
}

#[test]
fn on_conflict_is_checked_for_both_rows() {
    let shop = Shop::create(
        "CREATE TABLE document (tenant text, n int); CREATE UNIQUE INDEX one ON document ((tenant || n))",
        "SELECT tenure.protect('document', 'tenant')",
    );
    shop.held("INSERT INTO document VALUES ('a', 1) ON CONFLICT ((tenant || n)) DO UPDATE SET n = 9").unwrap();
    for sql in [
        "INSERT INTO document VALUES ('b', 1) ON CONFLICT ((tenant || n)) DO UPDATE SET n = 9",
        "INSERT INTO document VALUES ('b', 1) ON CONFLICT DO NOTHING",
        "INSERT INTO document VALUES ('a', 9) ON CONFLICT ((tenant || n)) DO UPDATE SET tenant = 'b'",
    ] {
        shop.refused(sql, shop.held(sql), "no token of 'b'");
    }
}

#[test]
fn a_foreign_key_that_deletes_is_a_writer_too() {
    let shop = Shop::create(
        "CREATE TABLE folder (n int PRIMARY KEY); INSERT INTO folder VALUES (1); \
         CREATE TABLE document (tenant text, n int REFERENCES folder ON DELETE CASCADE)",
        "SELECT tenure.protect('document', 'tenant')",
    );
    shop.refused("DELETE FROM folder", shop.held("DELETE FROM folder"), "no token of 'b'");
}

#[test]
fn partitions_are_covered_also_those_that_come_later() {
    let shop = Shop::create(
        "CREATE TABLE document (tenant text, n int) PARTITION BY LIST (tenant); \
         CREATE TABLE of_a PARTITION OF document FOR VALUES IN ('a') PARTITION BY RANGE (n); \
         CREATE TABLE of_a_low PARTITION OF of_a FOR VALUES FROM (0) TO (100); \
         CREATE TABLE of_b PARTITION OF document FOR VALUES IN ('b')",
        "SELECT tenure.protect('document', 'tenant')",
    );
    shop.done("CREATE TABLE of_c PARTITION OF document FOR VALUES IN ('c')");
    shop.done("CREATE TABLE of_d (n int, dropped int, tenant text); ALTER TABLE of_d DROP dropped");
    shop.done("ALTER TABLE document ATTACH PARTITION of_d FOR VALUES IN ('d')");
    for (table, tenant) in [("of_a_low", "a"), ("of_b", "b"), ("of_c", "c"), ("of_d", "d"), ("document", "a")] {
        for setting in ["origin", "replica"] {
            let sql = format!(
                "SET session_replication_role = {setting}; INSERT INTO {table} (tenant, n) VALUES ('{tenant}', 3)"
            );
            shop.refused(&sql, shop.psql(&sql), &format!("no token of '{tenant}'"));
        }
    }
    shop.held("INSERT INTO of_a_low VALUES ('a', 3)").unwrap();
    let moved = "UPDATE document SET tenant = 'b' WHERE tenant = 'a'";
    shop.refused(moved, shop.held(moved), "no token of 'b'");
    shop.refused("TRUNCATE of_a_low", shop.held("TRUNCATE of_a_low"), "TRUNCATE");
    // A trigger on TRUNCATE is not handed down to partitions that come later: that shows, and is made up for.
    assert_eq!(shop.done("SELECT whole FROM tenure.protected()"), "f");
    shop.done("SELECT tenure.protect('document', 'tenant')");
    assert_eq!(shop.done("SELECT whole FROM tenure.protected()"), "t");
    shop.refused("TRUNCATE of_c", shop.held("TRUNCATE of_c"), "TRUNCATE");
}

/// A partition of a protected table has its trigger already, and one of its own was refused in the server's words: "trigger
/// already exists". One that was protected alone was in the way of the whole table.
#[test]
fn a_partition_is_not_protected_alone() {
    let shop = Shop::create(
        "CREATE TABLE document (tenant text, n int) PARTITION BY LIST (tenant); \
         CREATE TABLE of_a PARTITION OF document FOR VALUES IN ('a') PARTITION BY RANGE (n); \
         CREATE TABLE of_a_low PARTITION OF of_a FOR VALUES FROM (0) TO (100); \
         CREATE TABLE others PARTITION OF document DEFAULT",
        "SELECT",
    );
    let refuses = || {
        for table in ["of_a", "of_a_low"] {
            let refused = shop.psql(&format!("SELECT tenure.protect('{table}', 'tenant')")).unwrap_err();
            let says = format!(
                "public.{table} is a partition, and is covered with the table that it is part of: protect public.document"
            );
            assert!(refused.contains(&says), "{refused}");
        }
    };
    refuses();
    shop.done("SELECT tenure.protect('document', 'tenant')");
    refuses();
    assert_eq!(shop.done("SELECT relation, whole FROM tenure.protected()"), "document|t");
}

#[test]
fn the_resource_s_name_may_be_made_of_the_column_or_be_one_for_the_whole_table() {
    let shop = Shop::create(
        "CREATE TABLE document (tenant text, n bigint)",
        "SELECT tenure.protect('document', 'n', named => 'shop ''%s'' of \\ $body$')",
    );
    let name = of(r"shop '1' of \ $body$");
    let sql = "UPDATE document SET n = 1";
    shop.refused(sql, shop.held(sql), r"no token of E'shop ''1'' of \\ $body$'");
    assert!(matches!(seal(&shop.0.sink, &name), Ok(Sealing::Seal(_))));
    shop.done(&format!("SELECT FROM tenure.admit(E'shop ''1'' of \\\\ $body$', 1, '{GRANT}'); {sql}"));

    let shop =
        Shop::create("CREATE TABLE document (tenant text, n int)", "SELECT tenure.protect('document', named => 'a')");
    shop.refused("DELETE FROM document", shop.psql("DELETE FROM document"), "no token of 'a'");
    shop.held("UPDATE document SET tenant = NULL; DELETE FROM document").unwrap();
}

#[test]
fn an_operator_is_exempt_by_taking_a_role_and_it_is_written_down() {
    let shop = Shop::usual();
    let role = format!("operator_{}", shop.0.url.rsplit('_').next().unwrap());
    shop.done(&format!("CREATE ROLE {role}; GRANT ALL ON document TO {role}"));
    let write = "UPDATE document SET n = 5; UPDATE document SET n = 6";
    let taken = format!("SET ROLE {role}; {write}");
    shop.refused(&taken, shop.psql(&taken), "no token of 'a'");
    shop.done(&format!("SELECT tenure.exempt('{role}', 'repairs by hand')"));
    // Being able to take it is not enough, for a superuser neither.
    shop.refused(write, shop.psql(write), "no token of 'a'");
    shop.done(&taken);
    shop.done(&format!("SET ROLE {role}; TRUNCATE document"));
    let journal =
        shop.done("SELECT event, about, who FROM tenure.sink_journal WHERE event LIKE 'exempt%' ORDER BY number");
    let events: Vec<&str> = journal.lines().map(|line| line.split('|').next().unwrap()).collect();
    assert_eq!(events, ["exempt", "exemption used", "exemption used"], "{journal}");
    assert!(journal.contains(&format!("document|role {role} (postgres), application \"psql\"")), "{journal}");
    // Nobody gets past the journal by saying that it stands there already.
    for said in ["pg_current_xact_id()::text || ' document'", "pg_current_xact_id()::text || ' public.document'"] {
        shop.done(&format!(
            "SET ROLE {role}; SELECT set_config('tenure.exempted', {said}, true); INSERT INTO document VALUES ('a', 1)"
        ));
    }
    assert_eq!(shop.done("SELECT count(*) FROM tenure.sink_journal WHERE event = 'exemption used'"), "4");
    assert_eq!(shop.done(&format!("SELECT tenure.unexempt('{role}', 'done')")), "t");
    let insert = format!("SET ROLE {role}; INSERT INTO document VALUES ('a', 1)");
    shop.refused(&insert, shop.psql(&insert), "no token of 'a'");
    shop.done(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn protection_is_taken_away_with_a_reason() {
    let shop = Shop::usual();
    let said = shop.psql("SELECT tenure.unprotect('document', '')").unwrap_err();
    assert!(said.contains("say why"), "{said}");
    assert_eq!(shop.done("SELECT tenure.unprotect('document', 'moved')"), "t");
    assert_eq!(shop.done("SELECT tenure.unprotect('document', 'moved')"), "f");
    shop.done("UPDATE document SET n = 5; TRUNCATE document");
    assert_eq!(shop.done("SELECT count(*) FROM tenure.protected()"), "0");
    assert_eq!(shop.done("SELECT why FROM tenure.sink_journal WHERE event = 'unprotect'"), "moved");
    assert_eq!(shop.done("SELECT count(*) FROM pg_proc WHERE proname ~ '^sink_guard_[0-9a-f]{16}$'"), "0");
    // And again, under another column.
    shop.done("SELECT tenure.protect('document', 'n')");
    let said = shop.psql("SELECT tenure.protect('document', 'tenant')").unwrap_err();
    assert!(said.contains("is protected already, by the column n"), "{said}");
}

/// `protect` once more said that it was done, while a trigger that was gone, switched off, or there in name alone stayed so.
#[test]
fn protecting_once_more_mends_what_was_taken_away() {
    let shop = Shop::create(
        "CREATE TABLE document (tenant text, n int) PARTITION BY LIST (tenant); \
         CREATE TABLE of_a PARTITION OF document FOR VALUES IN ('a'); \
         CREATE TABLE of_b PARTITION OF document FOR VALUES IN ('b')",
        "SELECT tenure.protect('document', 'tenant')",
    );
    shop.done("CREATE FUNCTION lets_in() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$");
    let guard = shop.done("SELECT guard FROM tenure.sink_protected");
    let instead = |name: &str, when: &str, function: &str| {
        format!(
            "DROP TRIGGER {name} ON document; CREATE TRIGGER {name} BEFORE {when} EXECUTE FUNCTION {function}(); \
             ALTER TABLE document ENABLE ALWAYS TRIGGER {name}"
        )
    };
    let (row, all) = ("INSERT OR UPDATE OR DELETE ON document FOR EACH ROW", "TRUNCATE ON document");
    for harm in [
        "DROP TRIGGER zz_tenure_guard ON document",
        "DROP TRIGGER zz_tenure_guard_truncate ON of_a",
        "ALTER TABLE document DISABLE TRIGGER zz_tenure_guard",
        "ALTER TABLE of_a DISABLE TRIGGER ALL",
        "ALTER TABLE document DISABLE TRIGGER zz_tenure_guard_truncate",
        // No longer where session_replication_role is replica.
        "ALTER TABLE document ENABLE TRIGGER zz_tenure_guard",
        "ALTER TABLE of_b ENABLE REPLICA TRIGGER zz_tenure_guard",
        &instead("zz_tenure_guard", row, "lets_in"),
        &instead("zz_tenure_guard", "INSERT ON document FOR EACH ROW", &format!("tenure.{guard}")),
        &instead("zz_tenure_guard", &format!("{row} WHEN (pg_trigger_depth() > 9)"), &format!("tenure.{guard}")),
        &instead("zz_tenure_guard_truncate", all, "lets_in"),
        &format!("DROP FUNCTION tenure.{guard}() CASCADE"),
    ] {
        shop.done(harm);
        assert_eq!(shop.done("SELECT whole FROM tenure.protected()"), "f", "{harm}");
        shop.done("SELECT tenure.protect('document', 'tenant')");
        assert_eq!(shop.done("SELECT whole FROM tenure.protected()"), "t", "{harm}");
        for setting in ["origin", "replica"] {
            for sql in ["UPDATE document SET n = 5", "UPDATE of_a SET n = 5", "TRUNCATE of_a", "TRUNCATE document"] {
                let sql = format!("SET session_replication_role = {setting}; {sql}");
                shop.refused(&format!("{harm}; {sql}"), shop.psql(&sql), "");
            }
        }
    }
    shop.held("UPDATE document SET n = 5 WHERE tenant = 'a'").unwrap();
}

#[test]
fn what_cannot_be_protected_is_refused() {
    let shop = Shop::usual();
    shop.done(
        "CREATE VIEW seen AS SELECT * FROM document; CREATE TABLE odd (at timestamptz, x float, made text GENERATED ALWAYS AS \
         ('A') STORED, ok text); CREATE TYPE mood AS ENUM ('fine'); CREATE DOMAIN short AS text; \
         CREATE TABLE typed (m mood, s short, u uuid)",
    );
    for (call, part) in [
        ("'seen', 'tenant'", "is no table"),
        ("'odd', 'nix'", "no column nix"),
        ("'odd', 'at'", "can be written in several ways"),
        ("'odd', 'x'", "can be written in several ways"),
        ("'odd', 'made'", "is generated"),
        ("'odd', 'ok', 'x'", "does not fit"),
        ("'odd', 'ok', '%s%s'", "does not fit"),
        ("'odd'", "does not fit"),
        ("'odd', named => ''", "no name of a resource"),
        ("'tenure.sink_fence', 'resource'", "the sink''s own".replace("''", "'").as_str()),
        ("'nowhere', 'x'", "does not exist"),
    ] {
        let said = shop.psql(&format!("SELECT tenure.protect({call})")).expect_err(call);
        assert!(said.contains(part), "{call}: {said}");
    }
    for column in ["m", "s", "u"] {
        shop.done(&format!("SELECT tenure.protect('typed', '{column}'); SELECT tenure.unprotect('typed', 'next')"));
    }
    let _ = id();
}
