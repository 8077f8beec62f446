//! What a demonstration says once it is loaded.

use std::net::SocketAddr;

use assay_domain::project::ProjectEntry;

use super::Demo;

/// The read key, and three requests that can be pasted into a shell as they are.
pub(crate) fn greeting(demo: &Demo, scheme: &str, listening: SocketAddr) -> String {
    let base = format!("{scheme}://{}/api/v1", reachable(listening));
    let key = &demo.key;
    let kept = if demo.again {
        "The sample data of an earlier start were kept. Keys are shown once, so this start made a new one."
    } else {
        "The sample data are dated into the last fourteen days. Keys are shown once; another start makes another."
    };
    let mut text = format!(
        "\nAssay serves sample data at {base}\n{kept}\n\nRead key (until {}):\n  {key}\n\nTry:\n",
        demo.key_expires_at
    );
    for path in paths(&demo.projects) {
        text.push_str(&format!(
            "  curl -s -H 'Authorization: Bearer {key}' '{base}{path}'\n"
        ));
    }
    text.push_str("\nStop with Ctrl-C.\n");
    text
}

/// The project list, the newest runs and the flaky tests of the first project.
fn paths(projects: &[ProjectEntry]) -> Vec<String> {
    let mut paths = vec!["/projects".to_owned()];
    if let Some(first) = projects.first() {
        paths.push(format!("/projects/{}/runs", first.id));
        paths.push(format!("/projects/{}/flaky", first.id));
    }
    paths
}

/// An address that a request from this machine reaches: a server that listens everywhere listens here too.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let mut address = listening;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_reached_here() {
        assert_eq!(
            reachable("0.0.0.0:80".parse().unwrap()).to_string(),
            "127.0.0.1:80"
        );
        assert_eq!(reachable("[::]:80".parse().unwrap()).to_string(), "[::1]:80");
        assert_eq!(
            reachable("192.0.2.7:80".parse().unwrap()).to_string(),
            "192.0.2.7:80"
        );
    }
}
