//! Random requests, most of them nearly valid.

use crate::{
    contract::Contract,
    dice::Dice,
    world::{Keys, ProjectResources, World},
};
use assay_oracle::hostile::texts;
use assay_testkit::wire::escape;

/// A request to send.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) method: String,
    pub(crate) target: Vec<u8>,
    head: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Draft {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} ", self.method).into_bytes();
        bytes.extend_from_slice(&self.target);
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        for (name, value) in &self.head {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// Generates requests.
pub(crate) struct Generator<'a> {
    pub(crate) dice: Dice,
    contract: &'a Contract,
    ours: &'a ProjectResources,
    others: [&'a ProjectResources; 2],
    keys: &'a Keys,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(seed: u64, contract: &'a Contract, world: &'a World) -> Self {
        Self {
            dice: Dice::new(seed, "requests"),
            contract,
            ours: &world.ours,
            others: [&world.sibling, &world.theirs],
            keys: &world.keys,
        }
    }

    /// A request that is valid HTTP, with any content.
    pub(crate) fn draft(&mut self) -> Draft {
        let method = if self.dice.percent(85) {
            "GET"
        } else {
            self.word(&texts("methods"))
        };
        let mut target = self.target();
        if self.dice.percent(8) {
            self.mutate(&mut target);
        }
        let mut draft = Draft {
            method: method.to_owned(),
            target,
            head: vec![("Host".to_owned(), b"localhost".to_vec())],
            body: Vec::new(),
        };
        self.authorize(&mut draft);
        self.decorate(&mut draft);
        draft
    }

    fn target(&mut self) -> Vec<u8> {
        if self.dice.percent(8) {
            return self.word(&texts("strayPaths")).as_bytes().to_vec();
        }
        let operation = self.pick(&self.contract.operations);
        let mut target = "/api/v1".to_owned();
        for segment in operation.path.split('/').skip(1) {
            target.push('/');
            target.push_str(&self.segment(segment));
        }
        if self.dice.percent(3) {
            target.push_str(self.word(&["/", "//", "/x", "%2F", ".json", "/..", "/%00", ";v=1"]));
        }
        let mut separator = '?';
        for parameter in &operation.query {
            if !self.dice.percent(35) {
                continue;
            }
            for _ in 0..if self.dice.percent(5) { 2 } else { 1 } {
                target.push(separator);
                separator = '&';
                target.push_str(parameter);
                target.push('=');
                target.push_str(&self.value(parameter));
            }
        }
        if self.dice.percent(15) {
            target.push(separator);
            target.push_str(self.word(&texts("strayQueries")));
        }
        target.into_bytes()
    }

    fn segment(&mut self, name: &str) -> String {
        if !name.starts_with('{') {
            return if self.dice.percent(1) {
                self.word(&texts("segments")).to_owned()
            } else {
                name.to_owned()
            };
        }
        let odds = self.dice.between(0, 99);
        if odds < 8 {
            return self.word(&texts("segments")).to_owned();
        }
        if odds < 12 {
            return escape(&self.text());
        }
        if odds < 15 {
            return self.dice.uuid();
        }
        let resources = if odds < 22 {
            *self.dice.pick(&self.others)
        } else {
            self.ours
        };
        match name {
            "{projectId}" => resources.project.clone(),
            "{runId}" => self.pick(&resources.runs).clone(),
            "{fingerprint}" => self.pick(&resources.fingerprints).clone(),
            "{commitSha}" => self.pick(&resources.commits).clone(),
            _ if self.dice.percent(50) => {
                let everywhere = resources
                    .tests
                    .iter()
                    .filter(|(name, _)| !name.contains("of shard"));
                escape(&self.pick(&everywhere.collect::<Vec<_>>()).0)
            }
            _ => escape(&self.pick(&resources.tests).0),
        }
    }

    fn value(&mut self, name: &str) -> String {
        match self.dice.between(0, 99) {
            0..4 => return self.word(&texts("invalidValues")).to_owned(),
            4..15 => return self.word(&texts("texts")).to_owned(),
            15..20 => return escape(&self.text()),
            20..25 => return "9".repeat(self.dice.between(1, 2_000) as usize),
            _ => {}
        }
        let words: &[&str] = match name {
            "days" => &["7", "30", "90", "8", "07", "30 ", "%37"],
            "branch" => return escape(&self.ours.branch),
            "sha" => &["0000", "0000000", "DEADBEEF", "abc", "xyz1"],
            "status" => &["passed", "failed", "flaky", "broken", "Passed"],
            "perPage" => &["10", "25", "50", "11", "0"],
            "cursor" => {
                let resources = if self.dice.percent(20) {
                    self.others[1]
                } else {
                    self.ours
                };
                return self.pick(&resources.cursors).clone();
            }
            "direction" => &["next", "prev", "up"],
            "category" => &["assertion", "network", "other", "none"],
            "owner" => &["@org/web", "unowned", "%40a"],
            "search" => &["pays", "a", "%25", "_", "%5C", "x%27"],
            "sort" => &[
                "timeLost",
                "rate",
                "impact",
                "occurrences",
                "lastSeen",
                "name",
                "verdict",
            ],
            "page" => &["1", "2", "3", "0", "007", "99999"],
            "explain" => &["true", "false", "1"],
            "filePath" => return escape(&self.pick(&self.ours.tests).1),
            _ => &["1"],
        };
        (*self.pick(words)).to_owned()
    }

    /// A text of any characters.
    fn text(&mut self) -> String {
        (0..self.dice.between(1, 40))
            .filter_map(|_| {
                char::from_u32(self.dice.bits() as u32 % if self.dice.percent(70) { 0x80 } else { 0x11_0000 })
            })
            .collect()
    }

    /// Changes some bytes.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.dice.between(1, 4) {
            let place = self.dice.between(0, bytes.len() as i64 - 1) as usize;
            match self.dice.between(0, 4) {
                0 => bytes[place] = self.dice.bits() as u8,
                1 => bytes.insert(place, *self.pick(b"%/?&=+;. \t\"<>^`{|}#\\\x7f")),
                2 => drop(bytes.remove(place)),
                3 => {
                    let piece = self
                        .word(&["%00", "%2F", "%FF", "%25", "%", "..", "//", "%C3%28"])
                        .as_bytes();
                    drop(bytes.splice(place..place, piece.iter().copied()));
                }
                _ => bytes.swap(place, 0),
            }
            if bytes.is_empty() {
                bytes.push(b'/');
            }
        }
    }

    fn authorize(&mut self, draft: &mut Draft) {
        let keys = self.keys;
        let bearer = |key: &str| format!("Bearer {key}").into_bytes();
        let others = [
            vec![],
            vec![bearer(&keys.ingest)],
            vec![bearer(&keys.unknown)],
            vec![bearer(&keys.revoked)],
            vec![bearer(&keys.expired)],
            vec![bearer(&keys.free)],
            vec![bearer(&keys.good), bearer(&keys.good)],
            vec![b"Bearer".to_vec()],
            vec![b"Basic eDp5".to_vec()],
            vec![keys.good.clone().into_bytes()],
            vec![bearer(&keys.good.to_uppercase())],
            vec![bearer(&keys.good[..44])],
            vec![b"Bearer \xff\xfe\x80".to_vec()],
            vec![b"Bearer svc_x".to_vec()],
            vec![format!("bEARER  {}", keys.good).into_bytes()],
        ];
        let values = match self.dice.percent(85) {
            true => vec![bearer(&keys.good)],
            false => self.pick(&others).clone(),
        };
        for value in values {
            let name = self.word(&["Authorization", "authorization", "AUTHORIZATION"]);
            draft.head.push((name.to_owned(), value));
        }
    }

    fn decorate(&mut self, draft: &mut Draft) {
        for _ in 0..self.dice.between(0, 4) {
            let (name, value) = self.word(&texts("headers")).split_once(": ").unwrap();
            // The HTTP parser decides about a control character in a field.
            if !value.contains('\u{7f}') {
                draft.head.push((name.to_owned(), value.as_bytes().to_vec()));
            }
        }
        if self.dice.percent(10) {
            let known = if self.dice.percent(50) {
                self.word(&texts("versions")).to_owned()
            } else {
                self.pick(&self.ours.tags).clone()
            };
            draft.head.push(("If-None-Match".to_owned(), known.into_bytes()));
        }
        if self.dice.percent(10) {
            let id = self.word(&texts("requestIds"));
            if !id.contains('\u{1}') {
                draft
                    .head
                    .push(("X-Request-Id".to_owned(), id.as_bytes().to_vec()));
            }
        }
        if self.dice.percent(10) {
            let coding = self.word(&["gzip", "br", "zstd", "identity", "deflate", "gzip, br;q=0.5"]);
            draft
                .head
                .push(("Accept-Encoding".to_owned(), coding.as_bytes().to_vec()));
        }
        if self.dice.percent(6) {
            draft.body = (0..self.dice.between(1, 300))
                .map(|_| self.dice.bits() as u8)
                .collect();
            draft.head.push((
                "Content-Length".to_owned(),
                draft.body.len().to_string().into_bytes(),
            ));
        } else if self.dice.percent(3) {
            draft.body = b"3\r\nabc\r\n0\r\n\r\n".to_vec();
            draft
                .head
                .push(("Transfer-Encoding".to_owned(), b"chunked".to_vec()));
        }
    }

    pub(crate) fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.dice.pick::<&'static str>(words)
    }

    pub(crate) fn pick<'b, T>(&mut self, items: &'b [T]) -> &'b T {
        self.dice.pick(items)
    }
}
