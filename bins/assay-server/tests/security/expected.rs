//! The expected answer to a request, computed from the contract and the stored data without the server.

use crate::{
    contract::{Contract, Operation},
    generator::Draft,
    world::{ProjectResources, World},
};

/// The expected answer.
#[derive(Debug)]
pub(crate) enum Expected<'a> {
    /// This status, with one of these codes.
    Refusal(u16, Vec<&'static str>),
    /// 200, or 304 if the client sent a version.
    Success(&'a Operation, Versions),
    /// Any answer within the contract: the request is too irregular for a prediction.
    Sound,
}

/// The client's versions of the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Versions {
    None,
    Some,
    Any,
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path)
    }
}

/// The expected answer to this request. The order of the checks is that of the contract's first section.
pub(crate) fn expected<'a>(contract: &'a Contract, world: &World, draft: &Draft) -> Expected<'a> {
    let Some((path, query)) = plain(&draft.target) else {
        return Expected::Sound;
    };
    if let Some((status, code)) = draft.refusal {
        return Expected::Refusal(status, vec![code]);
    }
    let (operation, segments) = match route(contract, &path) {
        RouteMatch::To(operation, segments) => (operation, segments),
        RouteMatch::Nowhere => return Expected::Refusal(404, vec!["invalid_parameter"]),
        RouteMatch::Unclear => return Expected::Sound,
    };
    if draft.method != "GET" && draft.method != "HEAD" {
        return Expected::Refusal(405, vec!["invalid_parameter"]);
    }
    let pairs = pairs(&query);
    let bad = bad_parameters(operation, &pairs, world);
    if !bad.is_empty() {
        return Expected::Refusal(400, bad);
    }
    match resource(operation, &segments, &pairs, world) {
        Resource::Found => Expected::Success(operation, draft.versions(operation.tagged)),
        Resource::Missing(code) => Expected::Refusal(404, vec![code]),
        Resource::Ambiguous => Expected::Refusal(400, vec!["ambiguous_test"]),
        Resource::Unclear => Expected::Sound,
    }
}

/// Path and query of a target without ambiguous bytes.
fn plain(target: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(target).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~%/?&=+!$'()*,;:@".contains(&byte);
    if !text.starts_with('/') || text.starts_with("//") || !text.bytes().all(is_plain) {
        return None;
    }
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    Some((path.to_owned(), query.to_owned()))
}

enum RouteMatch<'a> {
    To(&'a Operation, Vec<(String, String)>),
    Nowhere,
    Unclear,
}

/// The operation of a path, with its parameters in their sent form.
fn route<'a>(contract: &'a Contract, path: &str) -> RouteMatch<'a> {
    let segments: Vec<_> = path.split('/').collect();
    let mut unclear = false;
    for operation in &contract.operations {
        let template = format!("/api/v1{}", operation.path);
        let pattern: Vec<_> = template.split('/').collect();
        if pattern.len() != segments.len() {
            continue;
        }
        let both = || pattern.iter().zip(&segments);
        let fits = both().all(|(pattern, segment)| {
            if pattern.starts_with('{') {
                !segment.is_empty()
            } else {
                pattern == segment
            }
        });
        if fits {
            let parameters = both().filter(|(pattern, _)| pattern.starts_with('{'));
            let named = parameters.map(|(name, segment)| ((*name).to_owned(), (*segment).to_owned()));
            return RouteMatch::To(operation, named.collect());
        }
        // The router decides whether an escaped letter equals the letter.
        unclear |= both().any(|(pattern, segment)| !pattern.starts_with('{') && segment.contains('%'));
    }
    if unclear {
        RouteMatch::Unclear
    } else {
        RouteMatch::Nowhere
    }
}

/// The pairs of a query. A value that cannot be decoded is none.
fn pairs(query: &str) -> Vec<(String, Option<String>)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let form = |text: &str| decode(&text.replace('+', " "));
            Some((form(name)?, form(value)))
        })
        .collect()
}

/// Decodes percent escapes; none if one is malformed, or the bytes cannot be stored as text.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The possible codes for invalid parameters; none if all are valid.
fn bad_parameters(
    operation: &Operation,
    pairs: &[(String, Option<String>)],
    world: &World,
) -> Vec<&'static str> {
    let values = |name: &str| -> Vec<Option<String>> {
        let named = pairs.iter().filter(|(other, _)| other == name);
        named.map(|(_, value)| value.clone()).collect()
    };
    let mut codes = Vec::new();
    for parameter in &operation.query {
        let good = match values(&parameter.name).as_slice() {
            [] => parameter.name != "cursor" || values("direction") != [Some("prev".to_owned())],
            [Some(value)] => match parameter.name.as_str() {
                // The retention of the caller's plan is sixty days.
                "days" => value == "7" || value == "30",
                // Any position is valid, even one of another project.
                "cursor" => world.all_resources().iter().any(|of| of.cursors.contains(value)),
                _ => parameter.allows(value),
            },
            _ => false,
        };
        if !good {
            codes.push(if parameter.name == "days" {
                "invalid_period"
            } else {
                "invalid_parameter"
            });
        }
    }
    codes
}

enum Resource {
    Found,
    Missing(&'static str),
    Ambiguous,
    Unclear,
}

fn resource(
    operation: &Operation,
    segments: &[(String, String)],
    pairs: &[(String, Option<String>)],
    world: &World,
) -> Resource {
    let named = |name: &str| {
        segments
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, raw)| decode(raw))
    };
    let Some(id) = named("{projectId}") else {
        return Resource::Found;
    };
    let visible: [&ProjectResources; 2] = [&world.ours, &world.sibling];
    let Some(resources) = visible
        .into_iter()
        .find(|resources| Some(&resources.project) == id.as_ref())
    else {
        return Resource::Missing("project_not_found");
    };
    let run = named("{runId}");
    if run
        .as_ref()
        .is_some_and(|id| !id.as_ref().is_some_and(|id| resources.runs.contains(id)))
    {
        return Resource::Missing("run_not_found");
    }
    if let Some(fingerprint) = named("{fingerprint}")
        && !fingerprint.is_some_and(|text| resources.fingerprints.contains(&text))
    {
        return Resource::Missing("error_not_found");
    }
    if let Some(commit) = named("{commitSha}") {
        let commit = commit.unwrap_or_default().to_ascii_lowercase();
        let is_found = resources.commits.contains(&commit);
        // The beginning of a commit selects it.
        let is_beginning =
            commit.len() >= 4 && resources.commits.iter().any(|whole| whole.starts_with(&commit));
        return match (is_found, is_beginning) {
            (true, _) => Resource::Found,
            (false, true) => Resource::Unclear,
            (false, false) => Resource::Missing("commit_not_found"),
        };
    }
    let Some(name) = named("{testName}") else {
        return Resource::Found;
    };
    let file = operation
        .query
        .iter()
        .any(|parameter| parameter.name == "filePath")
        .then(|| pairs.iter().find(|(name, _)| name == "filePath"))
        .flatten()
        .and_then(|(_, value)| value.clone());
    let found: Vec<_> = resources
        .tests
        .iter()
        .filter(|(test, _)| Some(test) == name.as_ref())
        .filter(|(_, of)| file.as_ref().is_none_or(|file| file == of))
        .collect();
    // Some runs lack some tests.
    let everywhere = |name: &str| !name.contains("of shard");
    match found.as_slice() {
        [] => Resource::Missing("test_not_found"),
        [(name, _)] if run.is_none() || everywhere(name) => Resource::Found,
        [_] => Resource::Unclear,
        _ => Resource::Ambiguous,
    }
}
