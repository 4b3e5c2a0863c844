//! Rust files as syntax trees.

use std::{fs, path::Path};

use quote::ToTokens;
use syn::{
    Attribute, Block, Expr, ImplItemFn, Item, ItemFn, ItemMod, Stmt, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

/// One parsed file.
pub(crate) struct SourceFile {
    path: String,
    tree: syn::File,
}

/// A function and how long it is.
#[derive(Debug)]
pub(crate) struct Function {
    /// Lines from its name to its closing brace.
    pub(crate) lines: usize,
    #[expect(dead_code, reason = "shown in the message of a failed test")]
    place: String,
}

impl SourceFile {
    /// Whether a whole file is test code, by its name; see [`SourceFile::test_modules`] for those that have another.
    pub(crate) fn is_test_path(path: &str) -> bool {
        path.starts_with("tests/") || path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
    }

    /// Beginnings of the paths of modules that this file declares for tests only.
    pub(crate) fn test_modules(&self) -> Vec<String> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let folder = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        let modules = self.tree.items.iter().filter_map(|item| match item {
            Item::Mod(module) if module.content.is_none() && is_test(&module.attrs) => Some(module.ident.to_string()),
            _ => None,
        });
        modules.flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")]).collect()
    }

    pub(crate) fn read(root: &Path, path: &str) -> Self {
        let text = fs::read_to_string(root.join(path)).unwrap();
        let tree = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), tree }
    }

    /// Every function, in modules, impls, traits and other functions; one that is nothing but a table is no function.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut finder = Functions { path: &self.path, found: Vec::new() };
        finder.visit_file(&self.tree);
        finder.found
    }

    /// Lines outside of test code that call `unwrap`.
    pub(crate) fn unwraps(&self) -> Vec<usize> {
        let mut finder = Unwraps::default();
        finder.visit_file(&self.tree);
        finder.lines
    }

    /// The code without comments, strings' meaning aside, and without test modules; tokens are separated by blanks.
    pub(crate) fn code_outside_tests(&self) -> String {
        let items = self.tree.items.iter().filter(|item| !is_test_item(item));
        items.map(|item| item.to_token_stream().to_string()).collect()
    }
}

struct Functions<'a> {
    path: &'a str,
    found: Vec<Function>,
}

impl Functions<'_> {
    fn add(&mut self, signature: &syn::Signature, block: &Block) {
        if is_table(block) {
            return;
        }
        let (first, last) = (signature.span().start().line, block.span().end().line);
        self.found.push(Function { lines: last - first + 1, place: format!("{}:{first} {}", self.path, signature.ident) });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, node: &'ast ItemFn) {
        self.add(&node.sig, &node.block);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast ImplItemFn) {
        self.add(&node.sig, &node.block);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast TraitItemFn) {
        if let Some(block) = &node.default {
            self.add(&node.sig, block);
        }
        visit::visit_trait_item_fn(self, node);
    }
}

#[derive(Default)]
struct Unwraps {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Unwraps {
    fn visit_item_mod(&mut self, node: &'ast ItemMod) {
        if !is_test(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_fn(&mut self, node: &'ast ItemFn) {
        if !is_test(&node.attrs) {
            visit::visit_item_fn(self, node);
        }
    }

    fn visit_expr_method_call(&mut self, node: &'ast syn::ExprMethodCall) {
        if node.method == "unwrap" {
            self.lines.push(node.method.span().start().line);
        }
        visit::visit_expr_method_call(self, node);
    }
}

/// One array or `vec!`, nothing before or after it.
fn is_table(block: &Block) -> bool {
    match &block.stmts[..] {
        [Stmt::Expr(Expr::Array(_), None)] => true,
        [Stmt::Expr(Expr::Macro(call), None)] => call.mac.path.is_ident("vec"),
        [Stmt::Macro(call)] => call.mac.path.is_ident("vec"),
        _ => false,
    }
}

fn is_test_item(item: &Item) -> bool {
    match item {
        Item::Mod(module) => is_test(&module.attrs),
        Item::Fn(function) => is_test(&function.attrs),
        _ => false,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        text == "test" || text.ends_with(":: test") || text.starts_with("cfg (test") || text.starts_with("cfg (all (test")
    })
}
