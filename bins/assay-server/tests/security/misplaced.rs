//! Requests with keys in correct and wrong places.

use assay_oracle::hostile::texts;

/// Requests with a key in its place, in other places, and in places that confuse parsers.
pub(crate) fn requests(key: &str, project: &str) -> Vec<String> {
    let mut requests = Vec::new();
    let base = "/api/v1/projects";
    let mut ask = |target: &str, field: &str| {
        requests.push(format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{field}\r\n"
        ));
    };
    for scheme in ["Bearer", "bearer", "Basic", "Token", "Key", "", "Bearer  "] {
        ask(base, &format!("Authorization: {scheme} {key}\r\n"));
    }
    for field in texts("misplacedHeaders") {
        ask(base, &format!("{}\r\n", field.replace("KEY", key)));
    }
    let good = format!("Authorization: Bearer {key}\r\n");
    for query in texts("misplacedQueries") {
        for field in ["", &good] {
            ask(&format!("{base}?{query}={key}"), field);
            ask(&format!("{base}/{project}/runs?{query}={key}"), field);
            ask(
                &format!("{base}/{project}/runs?{query}=Bearer%20{}", escape_all(key)),
                field,
            );
        }
    }
    for field in ["", &good] {
        for path in texts("misplacedPaths") {
            let path = path.replace("PROJECT", project);
            ask(&format!("/api/v1{}", path.replace("KEY", key)), field);
            ask(
                &format!("/api/v1{}", path.replace("KEY", &escape_all(key))),
                field,
            );
        }
        ask(&format!("http://{key}@a/api/v1/projects"), field);
        ask(&format!("/api/v1/projects#{key}"), field);
        ask(key, field);
    }
    requests.push(format!("{key} /api/v1/projects HTTP/1.1\r\nHost: a\r\n\r\n"));
    requests.push(format!("GET /api/v1/projects {key}\r\nHost: a\r\n\r\n"));
    requests.push(format!("{key}\r\n\r\n"));
    requests.push(format!(
        "POST /api/v1/projects HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{key}",
        key.len()
    ));
    requests
}

/// A text with every byte escaped.
pub(crate) fn escape_all(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
