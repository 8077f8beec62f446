use std::fs;

use super::*;

const WHOLE: &str = r#"private_addresses = ["127.0.0.1"]

[[provider]]
name = "Example SSO"
issuer = "https://login.example.org"
client_id = "assay"
scopes = ["openid", "groups"]

[[provider.access]]
claim = "groups"
value = "shop"
organization = "Example Shop"
projects = ["storefront"]

[[provider]]
name = "Second"
issuer = "http://127.0.0.1:9000"
client_id = "other"
access = [{ claim = "hd", value = "example.org", organization = "Example Shop" }]
"#;

fn read_text(text: &str) -> Result<IdentityFile, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.toml");
    fs::write(&path, text).unwrap();
    IdentityFile::read(&path).map_err(|error| error.to_string())
}

#[test]
fn a_file_has_providers_with_what_their_claims_permit() {
    let file = read_text(WHOLE).unwrap();
    let names: Vec<_> = file.providers().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["Example SSO", "Second"]);
    let second = file.providers().nth(1).unwrap();
    assert_eq!(second.scopes, ["openid"]);
    assert_eq!(second.access[0].projects, None);
    assert!(read_text("").unwrap().providers().next().is_none());
}

#[test]
fn what_is_wrong_is_said_with_the_line() {
    for (from, to, line, expected) in [
        (
            "issuer = \"https",
            "issuer = \"http",
            3,
            "must begin with https://",
        ),
        ("127.0.0.1\"]", "10.0.0.1\"]", 15, "must begin with https://"),
        ("name = \"Example SSO\"", "name = \" \"", 3, "1 to 60 characters"),
        (
            "client_id = \"assay\"",
            "client_id = \"\"",
            3,
            "client_id is empty",
        ),
        ("client_id = \"assay\"", "client = \"\"", 6, "unknown field"),
        ("client_id = \"assay\"", "client_id = 7", 6, "invalid type"),
        ("\"openid\", ", "", 3, "and have openid"),
        ("\"groups\"]", "\"a b\"]", 3, "must be words"),
        ("value = \"shop\"", "value = \"\"", 3, "must not be empty"),
        ("[\"storefront\"]", "[]", 3, "projects is empty"),
        ("access = [{", "access = [] # {", 15, "it has no access"),
        ("client_id = \"other\"", "client_id = \"", 18, ""),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let error = read_text(&WHOLE.replacen(from, to, 1)).err().unwrap();
        assert!(
            error.contains(&format!("identity.toml:{line}: ")),
            "{from}: {error}"
        );
        assert!(error.contains(expected), "{from}: {error}");
    }
}
