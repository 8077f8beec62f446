use serde_json::{Value, json};

use super::*;

#[test]
fn the_jobs_of_five_services_are_read_from_their_documented_claims() {
    let rows = include_str!("../../../../../testdata/identity/ci-jobs.json");
    let rows: Vec<Value> = serde_json::from_str(rows).unwrap();
    for row in rows {
        let claims: Claims = serde_json::from_value(row["claims"].clone()).unwrap();
        let job = CiJob::of(&claims).map(|job| {
            json!({ "repository": job.repository, "ref": job.reference, "environment": job.environment,
                "fork": job.may_be_of_fork, "sender": job.sender })
        });
        assert_eq!(job.unwrap_or_default(), row["job"], "{}", row["name"]);
    }
}

#[test]
fn trusts_overlap_if_a_job_may_be_of_both() {
    let trust = |reference: &str, environment: &str, audience: &str| {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Trust {
            issuer: "https://gitlab.com".to_owned(),
            repository: "74".to_owned(),
            reference: value(reference),
            environment: value(environment),
            audience: value(audience),
        }
    };
    for (a, b, overlap) in [
        (trust("", "", ""), trust("refs/heads/main", "prod", ""), true),
        (
            trust("refs/heads/*", "", ""),
            trust("refs/heads/main", "", ""),
            true,
        ),
        (trust("refs/*", "", ""), trust("refs/heads/*", "", ""), true),
        (trust("refs/tags/*", "", ""), trust("refs/heads/*", "", ""), false),
        (
            trust("refs/heads/main", "", ""),
            trust("refs/heads/main2", "", ""),
            false,
        ),
        (trust("", "prod", ""), trust("", "staging", ""), false),
        (trust("", "", "of-shop"), trust("", "", ""), false),
    ] {
        assert_eq!([a.overlaps(&b), b.overlaps(&a)], [overlap; 2], "{a:?} {b:?}");
    }
    let other = Trust {
        repository: "75".to_owned(),
        ..trust("", "", "")
    };
    assert!(!other.overlaps(&trust("", "", "")));
}

#[test]
fn a_trust_covers_its_repository_ref_and_environment_alone() {
    let job = CiJob {
        repository: "74".to_owned(),
        reference: Some("refs/tags/v1".to_owned()),
        environment: Some("prod".to_owned()),
        may_be_of_fork: false,
        sender: String::new(),
    };
    let covers = |repository: &str, reference: Option<&str>, environment: Option<&str>| {
        let trust = Trust {
            issuer: String::new(),
            repository: repository.to_owned(),
            reference: reference.map(str::to_owned),
            environment: environment.map(str::to_owned),
            audience: None,
        };
        trust.covers(&job)
    };
    assert!(covers("74", None, None));
    assert!(covers("74", Some("refs/tags/v1"), Some("prod")));
    assert!(covers("74", Some("refs/tags/*"), None));
    assert!(!covers("740", None, None));
    assert!(!covers("7", None, None));
    assert!(!covers("74", Some("refs/tags/v"), None));
    assert!(!covers("74", Some("refs/heads/*"), None));
    assert!(!covers("74", None, Some("staging")));
}
