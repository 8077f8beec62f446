//! The text that a demonstration prints after loading.

use std::path::Path;

use assay_domain::shell;

use crate::demo::{Demo, Rerun};

/// Sample requests to the first project: each question with its path.
const QUESTIONS: [(&str, &str); 4] = [
    ("Which tests are flaky or broken?", "projects/$PROJECT/flaky"),
    ("How did the last runs end?", "projects/$PROJECT/runs"),
    ("Which errors come back?", "projects/$PROJECT/errors"),
    ("Which projects are there?", "projects"),
];

/// Where the parts of the server are reached from this machine, such as `http://127.0.0.1:8080`. None if a part is off.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseUrls {
    /// The read API.
    pub(crate) api: Option<String>,
    /// The pages and agents' tools.
    pub(crate) front: Option<String>,
    /// Reports.
    pub(crate) ingest: Option<String>,
    /// Health, metrics and the reference.
    pub(crate) operators: Option<String>,
}

/// Links to the pages and the reference, and shell commands with the addresses, the keys and the first project. The
/// commands contain no `#` and no `?`, which zsh interprets differently from other shells.
pub(crate) fn greeting(demo: &Demo, urls: &BaseUrls) -> String {
    let BaseUrls {
        api,
        front,
        ingest,
        operators,
    } = urls;
    let mut text = format!(
        "\nAssay serves sample data: {} projects over the last 14 days.\n",
        demo.projects.len()
    );
    if let Some(front) = front {
        text += &format!("\nOpen this in a browser:\n\n  {front}/login#{}\n", demo.key);
        text += &format!(
            "\nAdd its tools to a coding agent:\n\n  claude mcp add --transport http assay {front}/mcp --header \"Authorization: Bearer {}\"\n",
            demo.key
        );
    }
    if let Some(api) = api {
        text += &questions(demo, api);
    }
    if let (Some(ingest), Some(key)) = (ingest, &demo.ingest_key) {
        text += &format!(
            "\nReports are taken on {ingest}.\nSend one, which changes the first answer:\n\n  \
             curl -H 'Authorization: Bearer {key}' \\\n    \
             -F branch=main -F commit=abc1234 \\\n    \
             -F {} \\\n    \
             {ingest}/ingest/v1/reports\n",
            form_file("report", &demo.report)
        );
        if let Some(rerun) = &demo.rerun {
            text += &rerun_command(rerun, key, ingest);
        }
    }
    text += &format!(
        "\nMessages about what changes, as a chat would get them:\n\n  tail -f {}\n",
        shell::quoted(&demo.messages.display().to_string())
    );
    if let Some(operators) = operators {
        text += &format!("\nReference: {operators}/docs\n");
    }
    text += &format!(
        "The key works until {}; the next start prints it again.\nStop with Ctrl-C.\n",
        demo.key_expires_at
    );
    text
}

/// The command that sends the report of a shard that ran again.
fn rerun_command(rerun: &Rerun, key: &str, address: &str) -> String {
    let mut text = format!(
        "\nTests failed in the newest build of three shards. Send the report of one shard\n\
         that ran again: its tests pass on retry, and other shards keep their results:\n\n  \
         curl -H 'Authorization: Bearer {key}' \\\n"
    );
    for (name, value) in &rerun.fields {
        text += &format!("    -F '{name}={value}' \\\n");
    }
    text += &format!(
        "    -F {} \\\n    {address}/ingest/v1/reports\n",
        form_file("report", &rerun.report)
    );
    text
}

/// The argument of `curl -F` that sends a file, quoted for curl and for a shell.
fn form_file(field: &str, path: &Path) -> String {
    let path = path.display().to_string();
    let for_curl = path.replace('\\', "\\\\").replace('"', "\\\"");
    shell::quoted(&format!("{field}=@\"{for_curl}\""))
}

/// Sample requests to the read API.
fn questions(demo: &Demo, api: &str) -> String {
    let mut text = format!(
        "\nPaste this into another terminal:\n\n  export API={api}/api/v1\n  export KEY={}\n",
        demo.key
    );
    if let Some(first) = demo.projects.first() {
        text += &format!("  export PROJECT={}\n", first.id);
    }
    text += "  ask() { curl -s -H \"Authorization: Bearer $KEY\" \"$API/$1\"; echo; }\n\nThen ask:\n\n";
    for (question, path) in QUESTIONS {
        text += &format!("  {question:<34} ask {path}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_quoted_for_curl_and_the_shell() {
        for (path, quoted) in [
            ("/a/report.xml", r#"'report=@"/a/report.xml"'"#),
            ("/a b;c/it's", r#"'report=@"/a b;c/it'\''s"'"#),
        ] {
            assert_eq!(form_file("report", Path::new(path)), quoted);
        }
    }
}
