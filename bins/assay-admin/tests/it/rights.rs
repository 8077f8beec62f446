//! `assay-admin doctor` under each login of the deployment, with rights revoked in turn.

use std::fs;

use assay_testkit::{Cli, Logins, TestDatabase, assert_contains};
use serde_json::Value;

/// Every seventh right is revoked, because one statement compares all of them.
const EVERY: usize = 7;

/// Every right of a group in the catalogs, as the statement that grants it, in the form of `GRANT`.
const RIGHTS: &str = "
    SELECT format('%s ON %s', privilege_type, oid::regclass) FROM pg_class, aclexplode(relacl)
    WHERE grantee = 'GROUP'::regrole AND relnamespace = 'public'::regnamespace
    UNION ALL SELECT format('%s (%s) ON %s', privilege_type, attname, attrelid::regclass)
    FROM pg_attribute, aclexplode(attacl) WHERE grantee = 'GROUP'::regrole
    UNION ALL SELECT format('EXECUTE ON FUNCTION %s', proname) FROM pg_proc, aclexplode(proacl)
    WHERE grantee = 'GROUP'::regrole AND pronamespace = 'public'::regnamespace";

/// The check of rights, under the login of this connection string, as JSON.
fn rights(url: &str) -> String {
    let output = Cli::new(url).run(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks
        .find(|check| check["check"] == "rights")
        .unwrap()
        .to_string()
}

/// A count of every row of the database.
fn rows(database: &TestDatabase) -> Option<String> {
    database.text(
        "SELECT string_agg(format('%s %s', relname,
             query_to_xml(format('SELECT count(*), sum(hashtext(t::text)) FROM %I AS t', relname), true, true, '')), E'\\n' ORDER BY relname)
         FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
    )
}

#[test]
fn each_right_that_a_login_lacks_is_named_with_its_grant() {
    let database = TestDatabase::unmigrated();
    let name = database.text("SELECT 'rights_' || current_database()").unwrap();
    let logins = Logins::new(database.url(), &name);
    let [owner, web, ci, uploads, notify, backup, _] = logins.urls();
    let administration = Cli::new(&owner);
    for command in [
        &["migrate"][..],
        &["org", "create", "Shop"],
        &["project", "create", "--org", "Shop", "web"],
    ] {
        administration.json(command);
    }
    let report = tempfile::NamedTempFile::with_suffix(".xml").unwrap();
    fs::write(
        report.path(),
        "<testsuite><testcase name=\"a\"><failure>no</failure></testcase></testsuite>",
    )
    .unwrap();
    let path = report.path().display().to_string();
    Cli::new(&ci).json(&["import", "--project", "web", "--no-ci", &path]);
    let before = rows(&database);
    for url in [&owner, &web, &ci, &uploads, &notify, &backup] {
        let lines = rights(url);
        assert!(lines.contains(r#""status":"ok""#), "{url}: {lines}");
    }
    assert_eq!(rows(&database), before, "what was tried left rows");

    let mut tried = 0;
    for (group, url) in [
        ("assay_server", &web),
        ("assay_importer", &ci),
        ("assay_ingester", &uploads),
        ("assay_notifier", &notify),
    ] {
        for right in database
            .texts(&RIGHTS.replace("GROUP", group))
            .into_iter()
            .flatten()
            .step_by(EVERY)
        {
            database.execute(&format!("REVOKE {right} FROM {group}"));
            let lines = rights(url);
            let grant = format!("as the owner of the tables: GRANT {right} TO {group};");
            assert!(lines.contains(&grant), "{grant}\n{lines}");
            database.execute(&format!("GRANT {right} TO {group}"));
            tried += 1;
        }
    }
    assert!(tried > 200 / EVERY, "{tried}");
    let login = &logins.names[5];
    database.execute(&format!("REVOKE SELECT ON message FROM {login}"));
    let lines = rights(&backup);
    assert_contains(&lines, &format!("GRANT SELECT ON message TO {login};"));

    // A right that the migrations forgot is found by doing the work.
    database.execute(
        "DO $$ BEGIN EXECUTE replace(pg_get_functiondef('assay_grant_roles'::regproc), 'renames_text, ', ''); END $$;
         REVOKE UPDATE (renames_text) ON project FROM assay_ingester",
    );
    let lines = rights(&uploads);
    assert_contains(&lines, "it may not import a report: ");
    assert_contains(&lines, "permission denied for table project");
    assert_eq!(rows(&database), before);
    logins.drop_in(&database);
}
