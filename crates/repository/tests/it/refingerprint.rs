//! Grouping stored errors again.

use assay_domain::{
    attempt::ErrorDetail,
    id::ProjectId,
    period::Days,
    signature::{Category, Classifier, ErrorClass, SignatureDetail},
    store::{Administration, RefingerprintCounts, Store},
};

use crate::{
    fixture::*,
    signatures::{query, with_failing_test},
};

/// Groups by the first word, where the fixture's recordings group by the whole text.
pub(crate) struct FirstWord;

impl Classifier for FirstWord {
    fn classify(&self, errors: &[ErrorDetail]) -> Option<ErrorClass> {
        let word = errors
            .iter()
            .find_map(|error| error.message.as_deref())?
            .split(' ')
            .next()?;
        Some(ErrorClass {
            fingerprint: format!("word-{word}"),
            version: 2,
            title: format!("The word {word}"),
            category: Category::Network,
        })
    }
}

/// Groups by the last word.
struct LastWord;

impl Classifier for LastWord {
    fn classify(&self, errors: &[ErrorDetail]) -> Option<ErrorClass> {
        let word = errors
            .iter()
            .find_map(|error| error.message.as_deref())?
            .split(' ')
            .next_back()?;
        Some(ErrorClass {
            fingerprint: format!("last-{word}"),
            version: 3,
            title: format!("The last word {word}"),
            category: Category::Crash,
        })
    }
}

fn world() -> World {
    let world = World::new();
    let one = with_failing_test(report("one"), "a", Some("a.ts"), &["boom early", "boom late", ""]);
    let one = with_failing_test(one, "b", Some("b.ts"), &["bang early"]);
    world.import(&one);
    world.import(&with_failing_test(
        report("two").at(2 * DAY),
        "a",
        Some("a.ts"),
        &["boom early"],
    ));
    world
}

fn detail(world: &World, fingerprint: &str) -> Option<SignatureDetail> {
    world
        .store
        .signature(&world.project, fingerprint, &period(Days::Thirty))
        .unwrap()
}

fn listed_signatures(world: &World) -> Vec<(String, u64)> {
    let page = world.store.signatures(&world.project, &query()).unwrap();
    page.signatures
        .into_iter()
        .map(|signature| (signature.fingerprint, signature.occurrence_count))
        .collect()
}

#[test]
fn stored_errors_are_regrouped_and_former_fingerprints_still_find_them() {
    let world = world();
    let page = world.store.signatures(&world.project, &query()).unwrap();
    let before: Vec<(String, String)> = page
        .signatures
        .into_iter()
        .map(|signature| (signature.fingerprint, signature.message.unwrap()))
        .collect();
    assert_eq!(before.len(), 3);

    let counts = world
        .store
        .refingerprint(world.project.id, &FirstWord)
        .unwrap()
        .unwrap();
    let expected = RefingerprintCounts {
        attempts: 4,
        changed: 4,
        signatures_before: 3,
        signatures_after: 2,
        renamed: 3,
    };
    assert_eq!(counts, expected);
    assert_eq!(
        listed_signatures(&world),
        [("word-boom".to_owned(), 3), ("word-bang".to_owned(), 1)]
    );
    let boom = detail(&world, "word-boom").unwrap();
    assert_eq!(boom.signature.title, "The word boom");
    assert_eq!(boom.signature.category, Category::Network);
    for (former, message) in before {
        let now = if message == "bang early" {
            "word-bang"
        } else {
            "word-boom"
        };
        assert_eq!(detail(&world, &former), detail(&world, now), "{message}");
    }
}

#[test]
fn after_several_regroupings_a_former_fingerprint_finds_the_signature_of_most_occurrences() {
    let world = world();
    let original = listed_signatures(&world);
    world.store.refingerprint(world.project.id, &FirstWord).unwrap();
    world.store.refingerprint(world.project.id, &LastWord).unwrap();
    // Two of the three occurrences of boom were early.
    assert_eq!(
        detail(&world, "word-boom").unwrap().signature.fingerprint,
        "last-early"
    );
    for (former, _) in original {
        assert!(detail(&world, &former).is_some(), "{former}");
    }
}

#[test]
fn grouping_in_the_same_way_changes_nothing() {
    let world = world();
    world.store.refingerprint(world.project.id, &FirstWord).unwrap();
    let (before, details) = (listed_signatures(&world), detail(&world, "word-boom"));
    let again = world
        .store
        .refingerprint(world.project.id, &FirstWord)
        .unwrap()
        .unwrap();
    assert_eq!((again.changed, again.renamed), (0, 0));
    assert_eq!(
        (listed_signatures(&world), detail(&world, "word-boom")),
        (before, details)
    );
}

#[test]
fn an_import_after_it_joins_the_new_signatures() {
    let world = world();
    let errors = vec![ErrorDetail {
        message: Some("boom again".to_owned()),
        ..ErrorDetail::default()
    }];
    world.store.refingerprint(world.project.id, &FirstWord).unwrap();
    let mut recording = with_failing_test(report("three"), "c", None, &["boom again"]);
    recording.tests[0].attempts[0].class = FirstWord.classify(&errors);
    world.import(&recording);
    assert_eq!(detail(&world, "word-boom").unwrap().signature.occurrence_count, 4);
}

#[test]
fn regrouping_an_absent_project_returns_none() {
    let world = World::new();
    let absent = ProjectId("019aa3f4-5b1c-7def-8a3b-0123456789ab".parse().unwrap());
    assert_eq!(world.store.refingerprint(absent, &FirstWord).unwrap(), None);
}
