//! The reference page: the document for people, in one file without scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    json::{Fields, Json},
    schemas::{or_null, referred},
};
use crate::routes::BASE;

const STYLE: &str = include_str!("page.css");

/// The document as a page.
pub(super) fn render(document: &Json) -> String {
    let page = Page(document);
    let info = &document.fields()["info"];
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (text(info, "title")) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (page.contents())
                main {
                    h1 { (text(info, "title")) }
                    (prose(text(info, "description")))
                    p { "For programs: " a href="openapi.json" { "openapi.json" } "." }
                    @for (path, item) in page.part("paths") { (page.operation(path, &item.fields()["get"])) }
                    section id="errors" {
                        h2 { "Errors of every route" }
                        @for (status, response) in page.common() { (Page::response(status, response)) }
                    }
                    h2 id="headers" { "Response headers" }
                    dl { @for (name, header) in page.component("headers") {
                        dt { code { (name) } }
                        dd { (line(text(header, "description"))) " Example: " code { (text(header, "example")) } }
                    } }
                    h2 id="schemas" { "Schemas" }
                    @for (name, schema) in page.component("schemas") { (page.schema(name, schema)) }
                }
            }
        }
    }
    .into_string()
        + "\n"
}

struct Page<'a>(&'a Json);

impl<'a> Page<'a> {
    fn part(&self, name: &str) -> &'a Fields {
        self.0.fields()[name].fields()
    }

    fn component(&self, kind: &str) -> &'a Fields {
        self.part("components")[kind].fields()
    }

    /// The value, or the target of its reference.
    fn resolve(&self, kind: &str, value: &'a Json) -> &'a Json {
        referred(value.fields()).map_or(value, |name| &self.component(kind)[name])
    }

    /// The responses that every operation refers to, with their statuses.
    fn common(&self) -> impl Iterator<Item = (&'a String, &'a Json)> {
        let first = self.part("paths").values().next();
        first
            .into_iter()
            .flat_map(|item| item.fields()["get"].fields()["responses"].fields())
            .filter(|(_, response)| referred(response.fields()).is_some())
            .map(|(status, response)| (status, self.resolve("responses", response)))
    }

    fn contents(&self) -> Markup {
        html! {
            nav {
                @for tag in self.0.fields()["tags"].list() {
                    h2 title=(text(tag, "description")) { (text(tag, "name")) }
                    ul { @for item in self.part("paths").values() {
                        @let operation = &item.fields()["get"];
                        @if operation.fields()["tags"].list() == [text(tag, "name").into()] {
                            li { a href={ "#" (text(operation, "operationId")) } { (text(operation, "summary")) } }
                        }
                    } }
                }
                h2 { "All routes" }
                ul { li { a href="#errors" { "Errors of every route" } } li { a href="#headers" { "Response headers" } } li { a href="#schemas" { "Schemas" } } }
            }
        }
    }

    fn operation(&self, path: &str, operation: &'a Json) -> Markup {
        let parameters: Vec<_> = operation.fields()["parameters"]
            .list()
            .iter()
            .map(|parameter| self.resolve("parameters", parameter))
            .collect();
        html! {
            section id=(text(operation, "operationId")) {
                h2 { (text(operation, "summary")) }
                p.route { code { "GET " (BASE) (path) } }
                (prose(text(operation, "description")))
                h3 { "Parameters" }
                table {
                    tr { th { "Name" } th { "In" } th { "Value" } th { "Meaning" } }
                    @for parameter in parameters { tr {
                        td { code { (text(parameter, "name")) } }
                        td { (text(parameter, "in")) }
                        td { (Self::kind(&parameter.fields()["schema"])) }
                        td { (line(text(parameter, "description"))) }
                    } }
                }
                @for (status, response) in operation.fields()["responses"].fields() {
                    @if referred(response.fields()).is_none() { (Self::response(status, response)) }
                }
                p { "And " a href="#errors" { "the errors of every route" } "." }
            }
        }
    }

    fn response(status: &str, response: &'a Json) -> Markup {
        let body = response
            .get("content")
            .map(|content| &content.fields()["application/json"]);
        let codes = response.get("x-codes").map_or(&[][..], Json::list);
        html! {
            @if codes.is_empty() {
                h3 { (status) }
                p {
                    (line(text(response, "description")))
                    @if let Some(body) = body { " " (Self::kind(&body.fields()["schema"])) }
                }
            } @else {
                h3 { (status) }
                table {
                    tr { th { "Code" } th { "When" } th { "What to do" } }
                    @for code in codes { tr {
                        td { code { (text(code, "code")) } @if body.is_none() { " (no body)" } }
                        td { (line(text(code, "when"))) }
                        td { (line(text(code, "action"))) }
                    } }
                }
            }
            @if let Some(example) = body.and_then(|body| body.get("example")) {
                details { summary { "Example" } pre { (example.pretty()) } }
            }
        }
    }

    fn schema(&self, name: &str, schema: &'a Json) -> Markup {
        html! {
            section id={ "schema-" (name) } {
                h3 { (name) }
                @if let Some(description) = schema.get("description").and_then(Json::text) { (prose(description)) }
                @if let Some(properties) = schema.get("properties") {
                    @let required = schema.fields()["required"].list();
                    table {
                        tr { th { "Field" } th { "Value" } th { "Meaning" } }
                        @for (field, schema) in properties.fields() { tr {
                            td { code { (field) } @if !required.contains(&field.as_str().into()) { " (optional)" } }
                            td { (Self::kind(schema)) }
                            td { (line(schema.get("description").and_then(Json::text).unwrap_or_default())) }
                        } }
                    }
                }
            }
        }
    }

    /// The type of a value in a few words, with its rules.
    fn kind(schema: &Json) -> Markup {
        if let Some(name) = referred(schema.fields()) {
            return html! { a href={ "#schema-" (name) } { (name) } };
        }
        if let Some(choice) = or_null(schema.fields()) {
            return html! { (Self::kind(choice)) " or null" };
        }
        let types = &schema.fields()["type"];
        let names: Vec<_> = types
            .text()
            .into_iter()
            .chain(types.list().iter().filter_map(Json::text))
            .collect();
        html! {
            @if let Some(items) = schema.get("items") { "array of " (Self::kind(items)) }
            @else if let Some(words) = schema.get("enum") {
                @for (index, word) in words.list().iter().enumerate() { @if index > 0 { ", " } code { (plain(word)) } }
            }
            @else { (names.join(" or ")) }
            @if let Some(format) = schema.get("format").and_then(Json::text).filter(|format| format.contains('-') || *format == "uuid") { ", " (format) }
            @if let Some(pattern) = schema.get("pattern") { ", " code { (plain(pattern)) } }
            @for (rule, words) in [("minimum", "at least"), ("maximum", "at most"), ("minLength", "characters: at least"), ("maxLength", "at most"), ("default", "default")] {
                @if let Some(value) = schema.get(rule) { ", " (words) " " (plain(value)) }
            }
        }
    }
}

fn text<'a>(value: &'a Json, field: &str) -> &'a str {
    value.get(field).and_then(Json::text).unwrap_or_default()
}

fn plain(value: &Json) -> String {
    match value {
        Json::Text(text) => text.clone(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::List(_) | Json::Object(_) => {
            value.pretty().trim().to_owned()
        }
    }
}

/// Paragraphs and lists, as the document's descriptions have them.
fn prose(description: &str) -> Markup {
    html! {
        @for block in description.split("\n\n") {
            @if block.starts_with("- ") {
                ul { @for item in block.split("\n- ") { li { (line(item.trim_start_matches("- "))) } } }
            } @else {
                p { (line(block)) }
            }
        }
    }
}

/// A line with its code marked.
fn line(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
