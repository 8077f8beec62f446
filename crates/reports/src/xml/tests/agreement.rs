//! Compares our XML reader with a strict library: both find the same nodes in each document that the library accepts.

use proptest::prelude::*;
use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use crate::{
    input::Input,
    xml::{Node, Xml, decode},
};

/// The nodes, with adjacent texts joined.
fn own_nodes(text: &str) -> Result<Vec<String>, String> {
    let input = Input::alone("r.xml", text);
    let mut xml = Xml::new(&input, "XML", crate::limits::DEPTH);
    let mut list = NodeList::default();
    loop {
        match xml.next().map_err(|error| error.to_string())? {
            Node::Open => {
                let tag = xml.tag();
                let attributes = tag.attributes();
                list.open(
                    tag.name,
                    attributes.map(|(key, value)| (key.to_owned(), decode(value).into_owned())),
                );
            }
            Node::Close => list.nodes.push("</>".to_owned()),
            Node::Comment(_) => continue,
            Node::Text(text) => list.text(&text),
            Node::End => return Ok(list.nodes),
            Node::CutOff => return Err("cut off".to_owned()),
        }
    }
}

fn library_nodes(text: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut list = NodeList::default();
    let mut depth = 0usize;
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(tag) => {
                depth += 1;
                list.begin(&tag)?;
            }
            Event::Empty(tag) => {
                list.begin(&tag)?;
                list.nodes.push("</>".to_owned());
            }
            Event::End(_) => {
                depth -= 1;
                list.nodes.push("</>".to_owned());
            }
            Event::Text(text) => list.text(&text.into_inner()),
            Event::CData(text) => list.text(&text.into_inner()),
            Event::GeneralRef(name) => list.text(&decode(&format!("&{};", &*name))),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            Event::Eof if depth > 0 => return Err("cut off".to_owned()),
            Event::Eof => return Ok(list.nodes),
        }
    }
}

#[derive(Default)]
struct NodeList {
    nodes: Vec<String>,
}

impl NodeList {
    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let attributes = tag
            .attributes()
            .map(|attribute| {
                attribute.map(|attribute| (attribute.key.0.to_owned(), decode(&attribute.value).into_owned()))
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let name = tag.local_name().into_inner();
        // The library does not check names.
        if name.contains(['"', '\'']) {
            return Err(format!("{name} is no name"));
        }
        self.open(name, attributes);
        Ok(())
    }

    fn open(&mut self, name: &str, attributes: impl IntoIterator<Item = (String, String)>) {
        let attributes: Vec<_> = attributes.into_iter().collect();
        self.nodes.push(format!("<{name} {attributes:?}>"));
    }

    fn text(&mut self, text: &str) {
        match self.nodes.last_mut().filter(|last| last.starts_with("text ")) {
            Some(last) => last.push_str(text),
            None if text.is_empty() => {}
            None => self.nodes.push(format!("text {text}")),
        }
    }
}

fn assert_agreement(text: &str) {
    if let Ok(library_nodes) = library_nodes(text) {
        assert_eq!(own_nodes(text).as_ref(), Ok(&library_nodes), "{text}");
    }
}

#[test]
fn both_parsers_agree_on_every_real_report() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/reports");
    let mut folders = vec![std::path::PathBuf::from(folder)];
    let mut compared = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_xml = path
                .extension()
                .is_some_and(|suffix| suffix == "xml" || suffix == "trx");
            if path.is_dir() {
                folders.push(path);
            } else if is_xml && let Ok(text) = std::fs::read_to_string(&path) {
                compared += usize::from(library_nodes(&text).is_ok());
                assert_agreement(&text);
            }
        }
    }
    assert!(compared > 50, "{compared}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_parsers_agree_on_generated_documents(document in element()) {
        prop_assert!(library_nodes(&document).is_ok(), "{document}");
        assert_agreement(&document);
    }

    #[test]
    fn both_parsers_agree_on_unusual_markup(pieces in prop::collection::vec(prop::sample::select(MARKUP), 0..12)) {
        assert_agreement(&pieces.concat());
    }
}

/// A well-formed element.
fn element() -> impl Strategy<Value = String> {
    let name = prop::sample::select(&["a", "b:c", "d-e.f", "é"][..]);
    let space = prop::sample::select(&[" ", "\n", "\t\r\n  "][..]);
    let value = prop_oneof![
        "[a-z &&[^&<\"']]{0,40}".prop_map(|text| format!("\"{text}\"")),
        prop::sample::select(&["'1>2'", "\"it's\"", "'&lt;&#65;&x;'", "\"a/b\"", "'é✓'"][..])
            .prop_map(str::to_owned),
    ];
    let equals = prop::sample::select(&["=", " = ", "\n="][..]);
    let attribute = (space, "[a-z:]{1,9}", equals, value)
        .prop_map(|(space, key, equals, value)| format!("{space}{key}{equals}{value}"));
    // Names of attributes must be unique.
    let attributes = prop::collection::vec(attribute, 0..5).prop_map(|all| {
        let mut all = all;
        let key = |text: &String| text.split('=').next().unwrap_or_default().trim().to_owned();
        all.sort_by_key(key);
        all.dedup_by_key(|text| key(text));
        all.concat()
    });
    let leaf = (
        name.clone(),
        attributes.clone(),
        prop::sample::select(&["", " "][..]),
    )
        .prop_map(|(name, attributes, space)| format!("<{name}{attributes}{space}/>"));
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let text = prop::sample::select(SIMPLE_CONTENT).prop_map(str::to_owned);
        let content = prop::collection::vec(prop_oneof![inner, text], 0..5);
        (
            name.clone(),
            attributes.clone(),
            content,
            prop::sample::select(&["", " ", "\n"][..]),
        )
            .prop_map(|(name, attributes, content, space)| {
                format!("<{name}{attributes}{space}>{}</{name}{space}>", content.concat())
            })
    })
}

/// Content that may occur between elements.
const SIMPLE_CONTENT: &[&str] = &[
    "text",
    " ",
    "\n",
    "&lt;",
    "&amp;amp;",
    "&unknown;",
    "&#x41;",
    "<![CDATA[<a>&lt;]]>",
    "<![CDATA[]]>",
    "<!-- <a> -->",
    "<?pi <a> ?>",
    "é✓",
    "a > b",
    "\"'",
];

const MARKUP: &[&str] = &[
    "<a>",
    "</a>",
    "<a",
    "/>",
    ">",
    " b=\"c\"",
    " b='c>'",
    " b = \"c\"",
    "\"",
    "'",
    "text",
    "&lt;",
    "<!DOCTYPE a>",
    "<!DOCTYPE a [<!ENTITY b \"x>y\"> <!-- it's ]> --> <!ELEMENT a (b)>]>",
    "<!-- x -->",
    "<![CDATA[",
    "]]>",
    "<?xml version=\"1.0\"?>",
    "</a >",
    "<",
    "=",
    " ",
    "\u{feff}",
];
