//! Rules for the sources: SQL is never built from text, and `unsafe` is forbidden everywhere.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Expr, FnArg, Item, Pat, Token, Type, punctuated::Punctuated, visit::Visit};

/// The only files that may format statements. They insert numbers of the program, an id, and names and definitions that
/// Postgres itself quoted. These statements take no parameters.
const FORMATTED: [(&str, &str); 9] = [
    // One of two names of columns, both literals.
    (
        "crates/repository/src/record/intern.rs",
        "UPDATE test SET {column} = shown.text",
    ),
    // A literal of a macro.
    ("crates/repository/src/admin/tables.rs", "$ condition"),
    (
        "crates/repository/src/admin/diagnosis.rs",
        "SET statement_timeout = {CHECK_TIMEOUT_MS}",
    ),
    (
        "crates/repository/src/admin/distribute.rs",
        "ALTER TABLE {of_table} DROP CONSTRAINT {name}",
    ),
    (
        "crates/repository/src/admin/distribute.rs",
        "ALTER TABLE {of_table} ADD CONSTRAINT {name} {definition}",
    ),
    (
        "crates/repository/src/admin/transfer/copy.rs",
        "SET LOCAL assay.owner = '{owner}'",
    ),
    (
        "crates/repository/src/record/turn.rs",
        "SET LOCAL lock_timeout = {ms}",
    ),
    (
        "crates/repository/src/admin/migrate.rs",
        "pg_advisory_lock({LOCK})",
    ),
    (
        "crates/repository/src/db/session.rs",
        "SET statement_timeout = {ms}",
    ),
];
/// Functions that accept a statement as text.
const SQL_FUNCTIONS: [&str; 4] = ["sql_query", "batch_execute", "sql", "static_sql"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The members' folders.
fn members() -> Vec<PathBuf> {
    let folders = ["crates", "bins", "tools"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let members: Vec<_> = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        // The fuzz targets are a workspace of their own.
        .filter(|path| path.join("Cargo.toml").is_file() && !path.ends_with("tools/fuzz"))
        .collect();
    assert!(members.len() >= 13, "{members:?}");
    members
}

#[test]
fn unsafe_code_is_forbidden_in_every_member() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("[workspace.lints.rust]\nunsafe_code = \"forbid\""));
    for member in members() {
        let manifest = fs::read_to_string(member.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} sets lints of its own",
            member.display()
        );
    }
}

#[test]
fn no_statement_is_built_from_text() {
    let mut looked_at = 0;
    for member in members() {
        // For development only: names of databases, and tests' own statements.
        if ["testkit", "bench"].iter().any(|name| member.ends_with(name)) {
            continue;
        }
        for file in sources(&member.join("src")) {
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            for statement in statements(&fs::read_to_string(&file).unwrap()) {
                looked_at += 1;
                let is_listed = || {
                    FORMATTED
                        .iter()
                        .any(|(of, how)| name == *of && statement.argument.contains(how))
                };
                assert!(statement.is_fixed || is_listed(), "{name}: {statement:?}");
            }
        }
    }
    assert!(looked_at >= 80, "only {looked_at} statements were found");
}

#[test]
fn only_arguments_that_are_literals_in_every_binding_are_fixed() {
    for (source, expected) in [
        (r#"fn f() { sql_query("SELECT 1"); }"#, vec![true]),
        (
            r#"fn f() { c.batch_execute(&format!("SET x = {y}")); }"#,
            vec![false],
        ),
        (
            r#"fn f(q: &'static str) { s.sql(q).sql(" FROM x"); }"#,
            vec![true, true],
        ),
        (r#"fn f(q: &str) { s.sql(q); }"#, vec![false]),
        (
            r#"const Q: &str = "SELECT 1"; fn f() { diesel::sql_query(Q); }"#,
            vec![true],
        ),
        // The name has a literal first, and another text after it.
        (
            r#"fn f() { let q = "a"; let q = format!("{q}b"); sql_query(q); }"#,
            vec![false],
        ),
        // The literal is of another function.
        (
            r#"fn g() { let q = "a"; } fn f(q: String) { sql_query(q); }"#,
            vec![false],
        ),
        (
            r#"fn f() { let q: &'static str = match x { A => "a", B => "b" }; s.sql(q); }"#,
            vec![true],
        ),
        (
            r#"fn f() { sql::<Bool>(input); x.into_sql::<Text>(); }"#,
            vec![false],
        ),
        (
            r#"macro_rules! m { ($c:literal) => { sql::<Bool>($c) } }"#,
            vec![false],
        ),
        (
            r#"fn f() { assert!(c.batch_execute("COMMIT").is_ok()); }"#,
            vec![true],
        ),
        (
            r#"#[cfg(test)] mod tests { fn f(q: &str) { sql_query(q); } } // sql_query(q)"#,
            vec![],
        ),
    ] {
        let found: Vec<bool> = statements(source)
            .iter()
            .map(|statement| statement.is_fixed)
            .collect();
        assert_eq!(found, expected, "{source}");
    }
}

/// A call of a function that accepts a statement as text.
#[derive(Debug)]
struct Statement {
    is_fixed: bool,
    argument: String,
}

/// The calls in a source file, without its tests.
fn statements(source: &str) -> Vec<Statement> {
    let file = syn::parse_file(source).unwrap();
    let mut reader = Reader::default();
    for item in &file.items {
        if let Item::Const(constant) = item
            && is_fixed(&constant.expr, &|_| false)
        {
            reader.constants.insert(constant.ident.to_string());
        }
    }
    reader.visit_file(&file);
    reader.found
}

/// Walks a source file and collects the calls.
#[derive(Default)]
struct Reader {
    constants: HashSet<String>,
    /// The names that each enclosing function binds, and whether all of a name's values are fixed.
    functions: Vec<HashMap<String, bool>>,
    found: Vec<Statement>,
}

impl Reader {
    fn bind(&mut self, pattern: &Pat, is_fixed: bool) {
        let (pattern, is_static) = if let Pat::Type(typed) = pattern {
            (&*typed.pat, is_static(&typed.ty))
        } else {
            (pattern, false)
        };
        let Pat::Ident(name) = pattern else { return };
        let name = name.ident.to_string();
        if let Some(function) = self.functions.last_mut() {
            let known = function.entry(name).or_insert(true);
            *known &= is_fixed || is_static;
        }
    }

    fn function(&mut self, inputs: &Punctuated<FnArg, Token![,]>, visit: impl FnOnce(&mut Self)) {
        self.functions.push(HashMap::new());
        for input in inputs {
            if let FnArg::Typed(input) = input {
                self.bind(&Pat::Type(input.clone()), false);
            }
        }
        visit(self);
        self.functions.pop();
    }

    fn is_known(&self, name: &str) -> bool {
        let bound = self
            .functions
            .iter()
            .rev()
            .find_map(|function| function.get(name));
        bound.copied().unwrap_or_else(|| self.constants.contains(name))
    }

    fn call(&mut self, argument: Option<&Expr>) {
        if let Some(argument) = argument {
            let is_fixed = is_fixed(argument, &|name| self.is_known(name));
            let argument = argument.to_token_stream().to_string();
            self.found.push(Statement { is_fixed, argument });
        }
    }

    /// Calls within a macro, whose tokens are no expressions yet.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (place, token) in tokens.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.tokens(group.stream());
            }
            let TokenTree::Ident(name) = token else { continue };
            if !SQL_FUNCTIONS.iter().any(|function| name == function) {
                continue;
            }
            let Some(parameters) = parameters(&tokens[place + 1..]) else {
                continue;
            };
            let argument = parameters.to_string();
            self.found.push(Statement {
                is_fixed: argument.starts_with(['"', 'r']) || argument.starts_with("concat"),
                argument,
            });
        }
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item(&mut self, item: &'a Item) {
        let is_test = if let Item::Mod(module) = item {
            module
                .attrs
                .iter()
                .any(|attribute| attribute.meta.to_token_stream().to_string() == "cfg (test)")
        } else {
            false
        };
        if !is_test {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.function(&function.sig.inputs, |reader| reader.visit_block(&function.block));
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.function(&function.sig.inputs, |reader| reader.visit_block(&function.block));
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        syn::visit::visit_local(self, local);
        let fixed = local
            .init
            .as_ref()
            .is_some_and(|init| is_fixed(&init.expr, &|name| self.is_known(name)));
        self.bind(&local.pat, fixed);
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        for input in &closure.inputs {
            self.bind(input, false);
        }
        syn::visit::visit_expr_closure(self, closure);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let Expr::Path(function) = &*call.func {
            let path: Vec<String> = function
                .path
                .segments
                .iter()
                .map(|of| of.ident.to_string())
                .collect();
            let is_of_sql = match &*path {
                [.., of, last] if last == "new" => of == "SqlStatement",
                [.., last] => SQL_FUNCTIONS.contains(&&**last),
                [] => false,
            };
            if is_of_sql {
                self.call(call.args.first());
            }
        }
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if SQL_FUNCTIONS.iter().any(|name| call.method == name) {
            self.call(call.args.first());
        }
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, tokens: &'a syn::Macro) {
        self.tokens(tokens.tokens.clone());
    }
}

/// Whether an expression is made of literals, and of names that are.
fn is_fixed(argument: &Expr, is_known: &dyn Fn(&str) -> bool) -> bool {
    if let Expr::Reference(of) = argument {
        is_fixed(&of.expr, is_known)
    } else if let Expr::Paren(of) = argument {
        is_fixed(&of.expr, is_known)
    } else if let Expr::Macro(of) = argument {
        // The last one takes a literal, and expands to `concat!`.
        ["concat", "include_str", "result_of"]
            .iter()
            .any(|name| of.mac.path.is_ident(name))
    } else if let Expr::Match(of) = argument {
        of.arms.iter().all(|arm| is_fixed(&arm.body, is_known))
    } else if let Expr::Path(of) = argument {
        of.path
            .get_ident()
            .is_some_and(|name| is_known(&name.to_string()))
    } else {
        matches!(argument, Expr::Lit(_))
    }
}

/// The parameters of a call, from the tokens after its name: at once, or after type arguments.
fn parameters(after: &[TokenTree]) -> Option<TokenStream> {
    let is_path = matches!(after.first(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    let end_of_types = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '>');
    let start = if is_path {
        after.iter().position(end_of_types)? + 1
    } else {
        0
    };
    let TokenTree::Group(group) = after.get(start)? else {
        return None;
    };
    (group.delimiter() == Delimiter::Parenthesis).then(|| group.stream())
}

/// Whether a type is `&'static str`. Text of a request is never static.
fn is_static(of: &Type) -> bool {
    matches!(of, Type::Reference(of)
        if of.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                sources(&path)
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                vec![path]
            } else {
                Vec::new()
            }
        })
        .collect()
}
