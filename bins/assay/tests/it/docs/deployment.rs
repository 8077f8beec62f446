//! The servers that the page on deployment starts.

use assay_testkit::{TestDatabase, free_address};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::{blocks, elsewhere, folder, root, run};

/// Script lines after the start of a server in the background: wait until it is ready, then stop it. They use its
/// process id, because a shell forgets a job (`%%`) and its exit status as soon as the job ends.
const ATTENDED: &str = " &
curl -sf --retry 60 --retry-connrefused --retry-delay 1 http://127.0.0.1:9090/readyz
kill $!
wait $!
";

#[test]
fn every_server_of_the_deployment_page_gets_ready() {
    let (folder, database) = (folder(), TestDatabase::unmigrated());
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("fullchain.pem"), cert.pem()).unwrap();
    std::fs::write(file("privkey.pem"), signing_key.serialize_pem()).unwrap();

    let mut servers = 0;
    let mut script = "unset ASSAY_DATABASE_URL\n".to_owned();
    for block in blocks(&root().join("docs/deployment.md")) {
        if block.note != "serves" {
            continue;
        }
        for line in block.text.lines() {
            let is_server = line.starts_with("assay-server");
            servers += usize::from(is_server);
            script += line;
            script += if is_server { ATTENDED } else { "\n" };
        }
    }
    assert!(servers >= 4, "{script}");
    // Names of the reader's own machine.
    let named = format!("'{}'", database.url());
    let script = script
        .replace("/var/lib/assay", &file("data"))
        .replace("postgresql://assay_owner:…@db.internal/assay", &named)
        .replace("postgresql://assay_web:…@db.internal/assay", &named)
        .replace("postgresql://assay_uploads:…@db.internal/assay", &named)
        .replace("127.0.0.1:8081", &free_address())
        .replace("/etc/letsencrypt/live/assay.example.org/", &file(""))
        .replace("0.0.0.0:443", "127.0.0.1:8080")
        .replace("0.0.0.0:8080", "127.0.0.1:8080");
    let output = run(&elsewhere(&script), folder.path(), &database);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.matches("ready\n").count(), servers, "{printed}");
}
