//! How text that is almost XML is read.

mod agreement;

use super::*;

fn nodes(text: &str) -> Result<Vec<String>, ReadError> {
    let input = Input::alone("r.xml", text);
    let mut xml = Xml::new(&input, "XML", crate::limits::DEPTH);
    let mut descriptions = Vec::new();
    loop {
        descriptions.push(match xml.next()? {
            Node::Open => {
                let tag = xml.tag();
                let attributes: String = tag
                    .attributes()
                    .map(|(key, value)| format!(" {key}={}", decode(value)))
                    .collect();
                format!("<{}{attributes}>", tag.name)
            }
            Node::Close => "</>".into(),
            Node::Comment(_) => continue,
            Node::Text(text) => text.into_owned(),
            Node::End => return Ok(descriptions),
            Node::CutOff => {
                descriptions.push("cut".into());
                return Ok(descriptions);
            }
        });
    }
}

#[test]
fn elements_without_content_close_too() {
    assert_eq!(
        nodes("\u{feff}<?xml version='1.0'?><j:a x=\"1>2\" y='&lt;'>t&amp;<b/><![CDATA[<c>]]></j:a>")
            .unwrap(),
        ["<a x=1>2 y=<>", "t&", "<b>", "</>", "<c>", "</>"]
    );
}

#[test]
fn malformed_attributes_are_left_out() {
    assert_eq!(
        nodes("<a x=1 =\"2\" y=\"3\" z/>").unwrap().first().unwrap(),
        "<a y=3>"
    );
}

#[test]
fn a_cut_is_distinguished_from_a_break() {
    for cut in [
        "<a><b",
        "<a><![CDATA[x",
        "<a x='1",
        "<a><!-- x",
        "<a>x",
        "<!DOCTYPE a [<!ENTITY",
    ] {
        assert_eq!(nodes(cut).unwrap().last().unwrap(), "cut", "{cut}");
    }
    let error = nodes("<a>\n<b>\n</c></a>").unwrap_err().to_string();
    assert_eq!(
        error,
        "r.xml:3: not a readable XML report: expected </b>, found </c>"
    );
    assert!(nodes("<a/></a>").is_err());
}

#[test]
fn nesting_is_bounded() {
    let deep = "<a>".repeat(200_000);
    assert!(matches!(nodes(&deep), Err(ReadError::TooLarge { .. })));
}
