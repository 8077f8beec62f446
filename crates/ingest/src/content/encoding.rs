//! Encodes a recording as bytes for its content hash.
//!
//! A number takes 8 bytes. A text has its length first, a list its number of elements, and an optional value a byte
//! that marks whether it is present. Two different recordings therefore never have the same bytes. A status or another
//! closed value is encoded as the word that the database stores.
//!
//! Every struct is destructured in full, so a new field does not compile until it is encoded here.

use assay_domain::{
    attempt::{Attempt, ErrorDetail, Location},
    recording::{RecordedAttempt, RecordedTest, Recording, RunContext, ShardIndex},
    revision::tested_or_commit,
    signature::ErrorClass,
    test::TestName,
    timestamp::Timestamp,
};

/// Encodes all stored parts of a recording, piece by piece.
///
/// The sender is left out: the store compares it separately. The caller chooses which times to include.
pub(super) fn encode(
    recording: &Recording,
    started_at: Option<Timestamp>,
    duration_ms: Option<i64>,
    sink: &mut dyn FnMut(&[u8]),
) {
    let Recording {
        run_key,
        content: _,
        shard,
        context,
        sender: _,
        replaces: _,
        is_backfilled: _,
        started_at: _,
        finished_at: _,
        state,
        report_errors,
        tests,
        passed_groups: _,
        checkout: _,
    } = recording;
    let mut encoder = Encoder(sink);
    encoder.text(run_key);
    encoder.optional(shard.as_ref(), Encoder::shard);
    encoder.context(context);
    encoder.optional(started_at, Encoder::time);
    encoder.optional(duration_ms, Encoder::signed);
    encoder.text(state.as_str());
    encoder.list(report_errors, Encoder::error);
    encoder.list(tests, Encoder::test);
}

struct Encoder<'a>(&'a mut dyn FnMut(&[u8]));

impl Encoder<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        (self.0)(bytes);
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_be_bytes());
    }

    fn signed(&mut self, number: i64) {
        self.bytes(&number.to_be_bytes());
    }

    fn time(&mut self, time: Timestamp) {
        self.signed(time.unix_ms());
    }

    fn length(&mut self, length: usize) {
        self.number(u64::try_from(length).unwrap_or(u64::MAX));
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes(text.as_bytes());
    }

    fn optional<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Self, T)) {
        self.bytes(&[u8::from(value.is_some())]);
        if let Some(value) = value {
            encode(self, value);
        }
    }

    fn optional_text(&mut self, text: Option<&String>) {
        self.optional(text, |encoder, text| encoder.text(text));
    }

    fn list<T>(&mut self, elements: &[T], mut encode: impl FnMut(&mut Self, &T)) {
        self.length(elements.len());
        for element in elements {
            encode(self, element);
        }
    }

    fn shard(&mut self, shard: &ShardIndex) {
        let ShardIndex { index, total } = shard;
        self.number(u64::from(*index));
        self.optional(total.map(u64::from), Self::number);
    }

    fn context(&mut self, context: &RunContext) {
        let RunContext {
            commit_sha,
            tested_revision,
            suite,
            // What else is known of a run depends on who sends the report: its job, or somebody who asks the code host later.
            branch: _,
            commit_message: _,
            author_name: _,
            pull_request_number: _,
            pull_request_title: _,
            ci_provider: _,
            run_url: _,
            merge_base: _,
            base_branch: _,
        } = context;
        self.optional_text(tested_or_commit(tested_revision.as_ref(), commit_sha.as_ref()));
        self.optional_text(suite.as_ref());
    }

    fn test(&mut self, test: &RecordedTest) {
        let RecordedTest {
            test: TestName { name, file_path },
            // A file that was found in the checkout depends on the checkout, and a written name on the run.
            shown_as: _,
            attempts,
        } = test;
        self.text(name);
        self.optional_text(file_path.as_ref());
        let executions: Vec<_> = attempts.executions().collect();
        self.list(&executions, |encoder, attempts| {
            encoder.list(attempts, Self::attempt);
        });
    }

    fn attempt(&mut self, recorded: &RecordedAttempt) {
        let RecordedAttempt {
            attempt:
                Attempt {
                    status,
                    duration_ms,
                    started_at,
                    browser,
                    errors,
                    skip_reason,
                    // Output and paths of one report differ from run to run. They are no content.
                    output: _,
                },
            class,
        } = recorded;
        self.text(status.as_str());
        self.optional(*duration_ms, Self::number);
        self.optional(*started_at, Self::time);
        self.optional_text(browser.as_ref());
        self.list(errors, Self::error);
        self.optional_text(skip_reason.as_ref());
        self.optional(class.as_ref(), |encoder, class| {
            let ErrorClass {
                fingerprint,
                version,
                title,
                category,
            } = class;
            encoder.text(fingerprint);
            encoder.number(u64::from(*version));
            encoder.text(title);
            encoder.text(category.as_str());
        });
    }

    fn error(&mut self, error: &ErrorDetail) {
        let ErrorDetail {
            message,
            stack,
            snippet,
            location,
        } = error;
        for text in [message, stack, snippet] {
            self.optional_text(text.as_ref());
        }
        self.optional(location.as_ref(), |encoder, location| {
            let Location { file, line, column } = location;
            encoder.text(file);
            for number in [line, column] {
                encoder.optional(number.map(u64::from), Self::number);
            }
        });
    }
}
