//! The reference page: the document for people, as one file without external resources. It has the style of the pages.
//! Its script adds search and copying; the page works without it.

use assay_markup::{STYLE, mark};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::{
    json::{Fields, fields, list, pretty, shortened},
    schemas::{or_null, referenced},
};
const OWN_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The document as a page.
pub fn render(document: &Value) -> String {
    let page = Page(document);
    let info = &document["info"];
    let base = page.base();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (text(info, "title")) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) (PreEscaped(OWN_STYLE)) }
            }
            body.reference {
                (page.contents())
                main {
                    h1 { (text(info, "title")) }
                    p.facts { span { "Base URL " code { (base) } } span { "For programs: " a href="openapi.json" { "openapi.json" } } }
                    div.copied {
                        pre #setup { "export ASSAY_URL=" (base) "\nexport ASSAY_KEY=svc_ro_…   # assay-admin key create" }
                        (copy("setup"))
                    }
                    (page.prose(text(info, "description")))
                    @for (path, item) in page.part("paths") { (page.operation(path, &item["get"])) }
                    section id="errors" {
                        h2 { "Errors of every route" }
                        @for (status, response) in page.common() { (page.response(status, response)) }
                    }
                    section id="headers" {
                        h2 { "Response headers" }
                        dl.panel { @for (name, header) in page.component("headers") {
                            dt { code { (name) } }
                            dd { (page.line(text(header, "description"))) " Example: " code { (text(header, "example")) } }
                        } }
                    }
                    section id="schemas" {
                        h2 { "Schemas" }
                        @for (name, schema) in page.component("schemas") { (page.schema(name, schema)) }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
        + "\n"
}

/// A button that copies the text of an element. The script shows it.
fn copy(id: &str) -> Markup {
    html! { button type="button" data-copy=(id) hidden { "Copy" } }
}

struct Page<'a>(&'a Value);

impl<'a> Page<'a> {
    fn part(&self, name: &str) -> &'a Fields {
        fields(&self.0[name])
    }

    fn component(&self, kind: &str) -> &'a Fields {
        fields(&self.part("components")[kind])
    }

    /// The value, or the target of its reference.
    fn resolve(&self, kind: &str, value: &'a Value) -> &'a Value {
        referenced(fields(value)).map_or(value, |name| &self.component(kind)[name])
    }

    /// The responses that every operation refers to, with their statuses.
    fn common(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let first = self.part("paths").values().next();
        first
            .into_iter()
            .flat_map(|item| fields(&item["get"]["responses"]))
            .filter(|(_, response)| referenced(fields(response)).is_some())
            .map(|(status, response)| (status, self.resolve("responses", response)))
    }

    /// The default address of a server's routes.
    fn base(&self) -> String {
        let server = &self.0["servers"][0];
        let origin = text(&server["variables"]["origin"], "default");
        text(server, "url").replace("{origin}", origin)
    }

    /// The path before that of each route.
    fn prefix(&self) -> &'a str {
        text(&self.0["servers"][0], "url").trim_start_matches("{origin}")
    }

    /// Whether this is the id of an operation.
    fn is_operation(&self, id: &str) -> bool {
        let mut operations = self.part("paths").values();
        operations.any(|item| text(&item["get"], "operationId") == id)
    }

    fn contents(&self) -> Markup {
        html! {
            nav aria-label="Routes" {
                p.brand { (mark()) "Assay" }
                label.search hidden { span.unseen { "Search routes and fields" } input type="search" placeholder="Search" autocomplete="off"; }
                p.sub #found role="status" {}
                @for tag in list(&self.0["tags"]) {
                    h2 title=(text(tag, "description")) { (text(tag, "name")) }
                    ul { @for item in self.part("paths").values() {
                        @let operation = &item["get"];
                        @if operation["tags"][0] == text(tag, "name") {
                            li { a href={ "#" (text(operation, "operationId")) } { (text(operation, "summary")) " " code { (text(operation, "operationId")) } } }
                        }
                    } }
                }
                h2 { "All routes" }
                ul { li { a href="#errors" { "Errors of every route" } } li { a href="#headers" { "Response headers" } } li { a href="#schemas" { "Schemas" } } }
            }
        }
    }

    fn operation(&self, path: &str, operation: &'a Value) -> Markup {
        let parameters: Vec<_> = list(&operation["parameters"])
            .iter()
            .map(|parameter| self.resolve("parameters", parameter))
            .collect();
        let id = text(operation, "operationId");
        let curl = format!("curl-{id}");
        let answer = &operation["responses"]["200"];
        let example = answer
            .get("content")
            .and_then(|content| content["application/json"].get("example"));
        html! {
            section id=(id) {
                h2 { (text(operation, "summary")) " " code.id { (id) } }
                p.route { code { "GET " (self.prefix()) (path) } }
                div.copied { pre id=(curl) { (command(path)) } (copy(&curl)) }
                @if let Some(example) = example { pre.example tabindex="0" { (pretty(&shortened(example))) } }
                (self.prose(text(operation, "description")))
                h3 { "Parameters" }
                div.panel.wide tabindex="0" role="group" aria-label={ "Parameters of " (id) } {
                    table {
                        thead { tr { th scope="col" { "Name" } th scope="col" { "In" } th scope="col" { "Value" } th scope="col" { "Meaning" } } }
                        tbody { @for parameter in parameters { tr {
                            th scope="row" { code { (text(parameter, "name")) } }
                            td { (text(parameter, "in")) }
                            td { (Self::kind(&parameter["schema"])) }
                            td { (self.line(text(parameter, "description"))) }
                        } } }
                    }
                }
                @for (status, response) in fields(&operation["responses"]) {
                    @if referenced(fields(response)).is_none() { (self.response(status, response)) }
                }
                p { "And " a href="#errors" { "the errors of every route" } "." }
            }
        }
    }

    fn response(&self, status: &str, response: &'a Value) -> Markup {
        let body = response
            .get("content")
            .map(|content| &content["application/json"]);
        let codes = response.get("x-codes").map_or(&[][..], list);
        html! {
            h3 { (status) }
            @if codes.is_empty() {
                p {
                    (self.line(text(response, "description")))
                    @if let Some(body) = body { " " (Self::kind(&body["schema"])) }
                }
            } @else {
                div.panel.wide tabindex="0" role="group" aria-label={ "Errors with status " (status) } {
                    table {
                        thead { tr { th scope="col" { "Code" } th scope="col" { "When" } th scope="col" { "What to do" } } }
                        tbody { @for code in codes { tr {
                            th scope="row" { code { (text(code, "code")) } @if body.is_none() { " (no body)" } }
                            td { (self.line(text(code, "when"))) }
                            td { (self.line(text(code, "action"))) }
                        } } }
                    }
                }
            }
        }
    }

    fn schema(&self, name: &str, schema: &'a Value) -> Markup {
        html! {
            div.schema id={ "schema-" (name) } {
                h3 { (name) }
                @if let Some(description) = schema.get("description").and_then(Value::as_str) { (self.prose(description)) }
                @if let Some(properties) = schema.get("properties") {
                    @let required = list(&schema["required"]);
                    div.panel.wide tabindex="0" role="group" aria-label={ "Fields of " (name) } {
                        table {
                            thead { tr { th scope="col" { "Field" } th scope="col" { "Value" } th scope="col" { "Meaning" } } }
                            tbody { @for (field, schema) in fields(properties) { tr {
                                th scope="row" { code { (field) } @if !required.contains(&field.as_str().into()) { " (optional)" } }
                                td { (Self::kind(schema)) }
                                td { (self.line(schema.get("description").and_then(Value::as_str).unwrap_or_default())) }
                            } } }
                        }
                    }
                }
            }
        }
    }

    /// The type of a value in a few words, with its rules.
    fn kind(schema: &Value) -> Markup {
        if let Some(name) = referenced(fields(schema)) {
            return html! { a href={ "#schema-" (name) } { (name) } };
        }
        if let Some(choice) = or_null(fields(schema)) {
            return html! { (Self::kind(choice)) " or null" };
        }
        let types = &schema["type"];
        let names: Vec<_> = types
            .as_str()
            .into_iter()
            .chain(list(types).iter().filter_map(Value::as_str))
            .collect();
        html! {
            @if let Some(items) = schema.get("items") { "array of " (Self::kind(items)) }
            @else if let Some(words) = schema.get("enum") {
                @for (index, word) in list(words).iter().enumerate() { @if index > 0 { ", " } code { (plain(word)) } }
            }
            @else { (names.join(" or ")) }
            @if let Some(format) = schema.get("format").and_then(Value::as_str).filter(|format| format.contains('-') || *format == "uuid") { ", " (format) }
            @if let Some(pattern) = schema.get("pattern") { ", " code { (plain(pattern)) } }
            @for (rule, words) in [("minimum", "at least"), ("maximum", "at most"), ("minLength", "characters: at least"), ("maxLength", "at most"), ("default", "default")] {
                @if let Some(value) = schema.get(rule) { ", " (words) " " (plain(value)) }
            }
        }
    }

    /// Renders paragraphs and lists of the document's descriptions.
    fn prose(&self, description: &str) -> Markup {
        html! {
            @for block in description.split("\n\n") {
                @if block.starts_with("- ") {
                    ul.points { @for item in block.split("\n- ") { li { (self.line(item.trim_start_matches("- "))) } } }
                } @else {
                    p { (self.line(block)) }
                }
            }
        }
    }

    /// A line with marked code. The id of an operation becomes a link to it.
    fn line(&self, text: &str) -> Markup {
        html! {
            @for (index, part) in text.split('`').enumerate() {
                @if index % 2 == 0 { (part) }
                @else if self.is_operation(part) { a href={ "#" (part) } { code { (part) } } }
                @else { code { (part) } }
            }
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// A curl command for a route. Placeholders of its path become shell variables: `$RUN_ID`.
fn command(path: &str) -> String {
    let mut parts = path.split('{');
    let mut command = format!(
        "curl -H \"Authorization: Bearer $ASSAY_KEY\" \"$ASSAY_URL{}",
        parts.next().unwrap_or_default()
    );
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap();
        command.push('$');
        for letter in name.chars() {
            if letter.is_ascii_uppercase() {
                command.push('_');
            }
            command.push(letter.to_ascii_uppercase());
        }
        command.push_str(rest);
    }
    command + "\""
}
