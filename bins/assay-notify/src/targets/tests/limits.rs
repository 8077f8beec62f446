//! Tests of the bodies: limits of the services, and texts that must not be interpreted.

use assay_domain::{settings::ChatEvent, timestamp::Timestamp};
use assay_messages::{Content, Group, Outgoing, Tone};
use serde_json::Value;
use uuid::Uuid;

use crate::targets::{Allowed, MOST_BYTES, Secret, Slack, SlackAddress, teams, webhook, within_limit};

/// Names that mean something to a service.
pub(crate) const HOSTILE: [&str; 8] = [
    "<!channel> <@U012> <https://evil.example|Open in Assay>",
    "*bold* _it_ ~no~ `code` ```block``` > quote",
    "[text](https://evil.example) ![image](x) **b** # heading",
    "<at>everyone</at> <script>alert(1)</script> &amp; &lt;",
    "\u{202e}reversed\u{2066} \u{200b}hidden",
    "line\nbreak\r\nSubject: forged\n.\nQUIT",
    "\"quotes\" \\ {{DATE(2026-01-01,SHORT)}}",
    "🧪🧪🧪",
];

pub(crate) fn content(text: &str, groups: usize) -> Content {
    let group = || Group {
        sentence: text.to_owned(),
        error: Some(text.to_owned()),
        tests: vec![text.to_owned(); 3],
        more: 297,
    };
    Content {
        project_id: "019aa3f4-5b1c-7def-8a3b-000000000001".to_owned(),
        project: text.to_owned(),
        organization: text.to_owned(),
        headline: text.to_owned(),
        tone: Tone::Bad,
        events: ChatEvent::ALL.to_vec(),
        groups: (0..groups).map(|_| group()).collect(),
        more: 2,
        url: Some(format!("https://assay.example.org/p/x/commit/{}", "a".repeat(64))),
    }
}

pub(crate) fn outgoing(content: &Content) -> Outgoing<'_> {
    let at = Timestamp::from_unix_ms(1_795_000_000_000);
    Outgoing {
        id: Uuid::nil(),
        at,
        now: at,
        content,
        thread: None,
    }
}

fn slack_body(content: &Content) -> String {
    let address = SlackAddress::Webhook(Secret::new("https://hooks.slack.com/x".to_owned()));
    let slack = Slack::new(address, &Allowed::default()).unwrap();
    within_limit(content, |content| slack.body(&outgoing(content), content))
}

/// The bodies of all services.
fn bodies(content: &Content) -> [String; 3] {
    [
        slack_body(content),
        within_limit(content, teams::body),
        within_limit(content, |content| webhook::body(&outgoing(content), content)),
    ]
}

#[test]
fn bodies_stay_below_their_limit_whatever_the_texts() {
    for text in HOSTILE
        .map(|text| text.repeat(40))
        .iter()
        .chain([&"&<>\"\\".repeat(40), &"é🧪".repeat(100)])
    {
        for groups in [0, 1, 5, 50] {
            for body in bodies(&content(text, groups)) {
                assert!(body.len() < MOST_BYTES, "{} bytes: {text}", body.len());
                let _: Value = serde_json::from_str(&body).unwrap();
            }
        }
    }
}

/// The strings of a value with the names of their fields.
fn strings(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) => found.push((name.clone(), text.to_owned())),
                    None => found.extend(strings(value)),
                }
            }
        }
        Value::Array(values) => found.extend(values.iter().flat_map(strings)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    found
}

#[test]
fn slack_keeps_the_limits_of_block_kit_and_interprets_no_text_of_a_report() {
    for text in HOSTILE {
        let body: Value = serde_json::from_str(&slack_body(&content(&text.repeat(20), 3))).unwrap();
        let blocks = body["blocks"].as_array().unwrap();
        assert!(blocks.len() <= 50);
        // The fallback has none of the characters that begin a mention or a link.
        assert!(!body["text"].as_str().unwrap().contains(['<', '>']));
        for block in blocks {
            let kind = block["type"].as_str().unwrap();
            let texts: Vec<&Value> = match kind {
                "header" | "section" => vec![&block["text"]],
                "context" => block["elements"].as_array().unwrap().iter().collect(),
                other => panic!("{other}"),
            };
            for text in texts {
                let shown = text["text"].as_str().unwrap();
                let most = if kind == "header" { 150 } else { 3_000 };
                assert!((1..=most).contains(&shown.chars().count()), "{kind}: {shown}");
                if text["type"] != "plain_text" {
                    assert!(
                        shown.starts_with("<https://assay.example.org/p/x/commit/")
                            && shown.matches('<').count() == 1,
                        "{shown}"
                    );
                }
            }
        }
    }
}

#[test]
fn teams_gets_a_card_whose_texts_are_plain() {
    for text in HOSTILE {
        let card = teams::card(&content(text, 2));
        assert_eq!(
            (&card["type"], &card["version"]),
            (&"AdaptiveCard".into(), &"1.5".into())
        );
        for block in card["body"].as_array().unwrap() {
            // A text block would interpret Markdown, and dates in double braces.
            assert_eq!(block["type"], "RichTextBlock");
            for run in block["inlines"].as_array().unwrap() {
                assert_eq!(run["type"], "TextRun");
            }
        }
        let texts = strings(&card["body"]);
        assert!(
            texts
                .iter()
                .any(|(name, shown)| name == "text" && shown.contains(text))
        );
        assert_eq!(card["actions"][0]["type"], "Action.OpenUrl");
    }
}

#[test]
fn no_text_of_a_report_becomes_a_header_or_a_command_of_mail() {
    for text in HOSTILE {
        let content = content(text, 2);
        let mail = crate::targets::smtp::tests::mail(&outgoing(&content));
        let (head, _) = mail.split_once("\r\n\r\n").unwrap();
        let names: Vec<&str> = head
            .lines()
            .filter(|line| !line.starts_with(' '))
            .map(|line| line.split(':').next().unwrap())
            .collect();
        assert_eq!(
            names.iter().filter(|name| **name == "Subject").count(),
            1,
            "{head}"
        );
        assert!(
            names
                .iter()
                .all(|name| name.chars().all(|char| char.is_ascii_alphabetic() || char == '-')),
            "{head}"
        );
    }
}
