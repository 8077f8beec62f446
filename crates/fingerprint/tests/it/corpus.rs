//! `testdata/fingerprints/corpus.json`: errors as tools wrote them. Errors of one entry are one signature with the
//! stated title and category. Errors of two entries are always different signatures.

use std::collections::HashMap;

use assay_domain::{attempt::ErrorDetail, signature::Category};
use assay_fingerprint::classify;
use serde::Deserialize;

#[derive(Deserialize)]
struct Entry {
    title: String,
    category: Category,
    errors: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    /// The report of the error, or the tool whose format it imitates.
    from: String,
    message: Option<String>,
    stack: Option<String>,
    /// Set if the report flattened the message's lines, so that the first line differs.
    title: Option<String>,
}

#[test]
fn errors_group_as_the_corpus_states() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/fingerprints/corpus.json"
    );
    let entries: Vec<Entry> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut owners: HashMap<String, usize> = HashMap::new();
    let mut faults = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let mut first: Option<String> = None;
        for sample in &entry.errors {
            let class = classify(&ErrorDetail {
                message: sample.message.clone(),
                stack: sample.stack.clone(),
                ..ErrorDetail::default()
            })
            .unwrap();
            let title = sample.title.as_ref().unwrap_or(&entry.title);
            if class.title != *title {
                faults.push(format!("{}: title {:?}, not {title:?}", sample.from, class.title));
            }
            if class.category != entry.category {
                faults.push(format!(
                    "{}: {:?} is {}, not {}",
                    sample.from, class.title, class.category, entry.category
                ));
            }
            match &first {
                Some(fingerprint) if *fingerprint != class.fingerprint => {
                    faults.push(format!(
                        "{}: {title:?} does not share its entry's fingerprint",
                        sample.from
                    ));
                }
                Some(_) => {}
                None => first = Some(class.fingerprint),
            }
        }
        if let Some(other) = first.and_then(|fingerprint| owners.insert(fingerprint, index)) {
            faults.push(format!(
                "{:?} and {:?} share a fingerprint",
                entries[other].title, entry.title
            ));
        }
    }
    assert!(entries.len() > 100, "the corpus has more than 100 entries");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
