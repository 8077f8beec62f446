//! The operator's file: targets with their secrets.

mod entry;

use std::{collections::HashSet, path::Path};

use assay_messages::Target;
use assay_outbound::{FileError, read_secret_file};
use validator::Validate as _;

use self::entry::NotifyFile;
use crate::targets::Allowed;

/// Reads and checks the file.
///
/// # Errors
/// If others can read the file, or a value of it is invalid.
pub(crate) fn read(path: &Path) -> Result<Vec<Target>, FileError> {
    targets(&read_secret_file(path)?)
        .map_err(|problem| FileError::Invalid(format!("{}: {problem}", path.display())))
}

/// The targets of the file's text.
fn targets(text: &str) -> Result<Vec<Target>, String> {
    // The whole text of an error has the line of the file, which may be a secret.
    let file: NotifyFile = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
        format!("{}{}", line.unwrap_or_default(), without_value(error.message()))
    })?;
    file.validate().map_err(|errors| described(&errors))?;
    let allowed = Allowed::new(file.private_addresses);
    let mut names = HashSet::new();
    let mut targets = Vec::new();
    for entry in file.target {
        let name = entry.name.clone();
        if !names.insert(name.clone()) {
            return Err(format!("two targets have the name {name:?}; give each its own"));
        }
        targets.push(
            entry
                .target(&allowed)
                .map_err(|problem| format!("target {name:?}: {problem}"))?,
        );
    }
    Ok(targets)
}

/// The message of an error without the value that it names, which may be a secret.
fn without_value(message: &str) -> String {
    for kind in ["invalid type", "invalid value", "invalid length"] {
        if message.starts_with(kind) {
            let expected = message.rsplit_once(", expected ");
            return expected.map_or_else(
                || kind.to_owned(),
                |(_, expected)| format!("{kind}, expected {expected}"),
            );
        }
    }
    message.to_owned()
}

/// The first problem with the place of its value.
fn described(errors: &validator::ValidationErrors) -> String {
    use validator::ValidationErrorsKind::{Field, List, Struct};
    let Some((field, kind)) = errors.errors().iter().min_by_key(|(field, _)| field.to_string()) else {
        return "it is invalid".to_owned();
    };
    match kind {
        Struct(inner) => format!("{field}: {}", described(inner)),
        List(inner) => inner.iter().next().map_or_else(String::new, |(place, inner)| {
            format!("{field} {}: {}", place + 1, described(inner))
        }),
        Field(problems) => {
            let message = problems.first().and_then(|problem| problem.message.as_deref());
            let message = message.unwrap_or("is invalid");
            match &**field {
                "__all__" => message.to_owned(),
                field => format!("{field} {message}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use assay_domain::settings::ChatEvent;
    use assay_messages::Scope;

    use super::*;

    const WHOLE: &str = r#"
private_addresses = ["127.0.0.1"]

[[target]]
name = "team"
projects = ["Shop/web"]
events = ["run_failed", "run_recovered"]
quiet = { from = "20:00", to = "07:00", zone = "Europe/Berlin" }
digest = { every = "week", at = "09:00" }
slack = { url = "https://hooks.slack.com/services/T0/B0/hidden" }

[[target]]
name = "thread"
slack = { token = "xoxb-hidden", channel = "C012" }

[[target]]
name = "office"
teams = { url = "https://example.webhook.office.com/hidden" }

[[target]]
name = "hook"
webhook = { url = "http://127.0.0.1:9000/", keys = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] }

[[target]]
name = "tickets"
[target.request]
url = "https://example.atlassian.net/rest/api/3/issue"
headers = { Authorization = "Basic hidden" }
body = '''{"fields": {"summary": "{subject}"}}'''

[[target]]
name = "mail"
smtp = { host = "mail.example.org", user = "assay", password = "hidden", from = "Assay <assay@example.org>", to = ["team@example.org"] }

[[target]]
name = "log"
file = { path = "/tmp/messages.txt", format = "json" }
"#;

    #[test]
    fn a_file_with_every_kind_is_read_and_shows_no_secret() {
        let targets = targets(WHOLE).unwrap();
        let kinds: Vec<&str> = targets.iter().map(|target| target.channel.kind()).collect();
        assert_eq!(
            kinds,
            ["slack", "slack", "teams", "webhook", "request", "smtp", "file"]
        );
        let first = &targets[0];
        assert_eq!(first.scope, Scope::Named(vec!["Shop/web".to_owned()]));
        assert_eq!(first.events, [ChatEvent::RunFailed, ChatEvent::RunRecovered]);
        assert!(first.quiet.is_some() && first.digest.is_some());
        assert_eq!(targets[1].events, ChatEvent::ALL);
        let shown = format!("{targets:?}");
        assert!(!shown.contains("hidden") && !shown.contains("whsec"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_without_secrets() {
        for (change, expected) in [
            (
                ("name = \"team\"", "name = \"the team\""),
                "name must have 1 to 60 letters",
            ),
            (
                ("name = \"thread\"", "name = \"team\""),
                "two targets have the name \"team\"",
            ),
            (("20:00", "24:00"), "target 1: quiet: from is not a time"),
            (
                ("20:00", "07:00"),
                "target 1: quiet: from and to are the same time",
            ),
            (
                ("[\"127.0.0.1\"]", "[\"10.0.0.0/8\"]"),
                "private_addresses must have only names",
            ),
            (
                (
                    "keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]",
                    "keys = \"whsec_hidden\"",
                ),
                "invalid type, expected a sequence",
            ),
            (
                (
                    "slack = { url = \"https://hooks.slack.com/services/T0/B0/hidden\" }",
                    "slack = \"https://hooks.slack.com/services/T0/B0/hidden, expected hidden\"",
                ),
                "line 10: invalid type, expected a table such as { url = … }",
            ),
            (("quiet =", "quite ="), "line 8: unknown field `quite`"),
            (("Europe/Berlin", "Mars/Olympus"), "zone is not a time zone"),
            (("\"week\"", "\"month\""), "unknown variant `month`"),
            (("\"run_failed\"", "\"run_faild\""), "line 7: "),
            (
                (
                    "slack = { url = \"https://hooks.slack.com/services/T0/B0/hidden\" }",
                    "",
                ),
                "exactly one of",
            ),
            (
                ("https://hooks.slack.com", "http://hooks.slack.com"),
                "must begin with https://",
            ),
            (
                ("http://127.0.0.1:9000/", "http://127.0.0.2:9000/"),
                "must begin with https://",
            ),
            (("{\"fields\"", "{fields"), "target \"tickets\": body is not JSON"),
            (("Basic hidden", "hidden\\n"), "a value that no header may have"),
            ((", channel = \"C012\"", ""), "either url, or token and channel"),
            (
                ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_hidden"),
                "a key must be whsec_",
            ),
            (
                ("keys = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]", "keys = []"),
                "must have one key",
            ),
            (("user = \"assay\", ", ""), "user and password need each other"),
            (
                (
                    "host = \"mail.example.org\"",
                    "tls = \"off\", host = \"mail.example.org\"",
                ),
                "tls may be off only",
            ),
            (("team@example.org", "team"), "\"team\" is not an address"),
            (
                ("private_addresses", "private_adresses"),
                "unknown field `private_adresses`",
            ),
        ] {
            let changed = WHOLE.replace(change.0, change.1);
            assert_ne!(changed, WHOLE, "{change:?}");
            let problem = targets(&changed).unwrap_err();
            assert!(problem.contains(expected), "{expected}: {problem}");
            assert!(!problem.contains("hidden"), "{problem}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.toml");
        fs::write(&path, WHOLE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = read(&path).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path).unwrap().len(), 7);
        assert!(
            read(&folder.path().join("none"))
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }
}
