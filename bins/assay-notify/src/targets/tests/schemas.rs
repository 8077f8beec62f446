//! Tests of the bodies against the published descriptions of the services, which are in `testdata/schemas`.

use assay_messages::{Content, Outgoing, Tone};
use jsonschema::Validator;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::targets::{
    Allowed, Secret, Slack, SlackAddress, teams,
    tests::limits::{HOSTILE, content, outgoing},
    within_limit,
};

const CARD: &str = include_str!("../../../../../testdata/schemas/adaptive-card-1.5.json");
const SLACK: &str = include_str!("../../../../../testdata/schemas/slack-message.json");

fn validator(schema: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
}

fn assert_valid(validator: &Validator, value: &Value) {
    let problems: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{problems:?}: {value}");
}

/// Contents of all forms.
fn contents() -> Vec<Content> {
    let mut contents = Vec::new();
    for text in HOSTILE.map(|text| text.repeat(20)) {
        for (groups, tone) in [(0, Tone::Neutral), (1, Tone::Good), (50, Tone::Bad)] {
            let whole = Content {
                tone,
                ..content(&text, groups)
            };
            let mut bare = Content {
                url: None,
                more: 0,
                ..whole.clone()
            };
            for group in &mut bare.groups {
                (group.error, group.tests, group.more) = (None, Vec::new(), 0);
            }
            contents.extend([whole, bare]);
        }
    }
    contents
}

#[test]
fn cards_of_teams_are_valid_by_the_schema_of_adaptive_cards() {
    let validator = validator(CARD);
    for content in contents() {
        let body: Value = serde_json::from_str(&within_limit(&content, teams::body)).unwrap();
        assert_valid(&validator, &body["attachments"][0]["content"]);
    }
    // The schema refuses what is not in it.
    let card = teams::card(&content("a text", 1));
    for (pointer, value) in [
        ("/body/0/inlines/0/color", json!("purple")),
        ("/body/0/type", json!("RichText")),
        ("/body/0/inlines/0/text", json!(7)),
        ("/actions/0/url", json!(null)),
    ] {
        let mut changed = card.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(!validator.is_valid(&changed), "{pointer}");
    }
}

#[test]
fn messages_of_slack_are_valid_by_the_types_of_block_kit() {
    let validator = validator(SLACK);
    let webhook = SlackAddress::Webhook(Secret::new("https://hooks.slack.com/x".to_owned()));
    let channel = SlackAddress::Channel {
        token: Secret::new("xoxb-x".to_owned()),
        channel: "C012".to_owned(),
        api: None,
    };
    for address in [webhook, channel] {
        let slack = Slack::new(address, &Allowed::default()).unwrap();
        for content in contents() {
            let message = Outgoing {
                thread: Some((Uuid::nil(), Some("1503435956.000247".to_owned()))),
                ..outgoing(&content)
            };
            let body = within_limit(&content, |content| slack.body(&message, content));
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_valid(&validator, &body);
        }
        let content = content("a text", 1);
        let body = slack.body(&outgoing(&content), &content);
        for (pointer, value) in [
            ("/blocks/0/type", json!("heading")),
            ("/blocks/0/text/type", json!("mrkdwn")),
            ("/blocks/0/text/text", json!(7)),
            ("/text", json!(null)),
        ] {
            let mut changed: Value = serde_json::from_str(&body).unwrap();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert!(!validator.is_valid(&changed), "{pointer}");
        }
    }
}
