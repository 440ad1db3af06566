//! The source files of one crate as the compiler sees them without tests: modules, the items they define and the paths they use.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// A module path below the crate root, such as `["session", "host"]`. The root itself is empty.
pub(crate) type ModulePath = Vec<String>;

/// One source file.
pub(crate) struct Module {
    /// The file below `src`.
    pub(crate) file: PathBuf,
    /// The code without comments, strings and test-only items, as tokens.
    pub(crate) tokens: Vec<String>,
    pub(crate) imports: Vec<Import>,
    defined: BTreeSet<String>,
    children: BTreeSet<String>,
}

/// One name that a `use` declaration brings into scope.
#[derive(Clone)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// The name in scope; `*` for a glob.
    pub(crate) name: String,
    /// Whether the declaration passes the name on, as `pub use` does.
    pub(crate) is_reexport: bool,
}

/// All modules of a crate that are built without `cfg(test)`.
pub(crate) struct Crate(BTreeMap<ModulePath, Module>);

impl Crate {
    /// Reads the modules that `lib.rs` (or `main.rs`, if there is no library) in the folder `root` declares, and theirs.
    pub(crate) fn read(root: &Path) -> Self {
        let first = ["lib.rs", "main.rs"].into_iter().find(|file| root.join(file).exists());
        let first = first.unwrap_or_else(|| panic!("{} has no crate", root.display()));
        let mut modules = BTreeMap::new();
        let mut unread = vec![(ModulePath::new(), PathBuf::from(first))];
        while let Some((path, file)) = unread.pop() {
            let text =
                std::fs::read_to_string(root.join(&file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let module = Module::parse(file, &text);
            for child in &module.children {
                let path: ModulePath = path.iter().chain([child]).cloned().collect();
                let file = PathBuf::from(path.join("/")).with_extension("rs");
                unread.push((path, file));
            }
            modules.insert(path, module);
        }
        Self(modules)
    }

    pub(crate) fn modules(&self) -> impl Iterator<Item = (&ModulePath, &Module)> {
        self.0.iter()
    }

    /// The modules whose items the module at `path` uses, itself excluded.
    pub(crate) fn used_by(&self, path: &ModulePath) -> BTreeSet<ModulePath> {
        let module = &self.0[path];
        let mut used: BTreeSet<_> = module.paths().filter_map(|used| self.resolve(path, &used, 0)).collect();
        used.remove(path);
        used
    }

    /// The module that defines what `used` names when written in the module `at`. `None` for other crates and preludes.
    fn resolve(&self, at: &ModulePath, used: &[String], depth: usize) -> Option<ModulePath> {
        let mut module = at.clone();
        let mut rest = used;
        match used.first()?.as_str() {
            "crate" => (module, rest) = (ModulePath::new(), &used[1..]),
            "self" => rest = &used[1..],
            "super" => {
                while let Some((first, others)) = rest.split_first()
                    && first == "super"
                {
                    module.pop()?;
                    rest = others;
                }
            }
            first if self.0[at].children.contains(first) => {}
            _ => return None,
        }
        while let Some((first, others)) = rest.split_first() {
            if self.0[&module].children.contains(first) {
                module.push(first.clone());
                rest = others;
                continue;
            }
            return Some(self.definition(module, first, depth));
        }
        Some(module)
    }

    /// The module that defines the item `name` of `module`, found through its imports.
    fn definition(&self, module: ModulePath, name: &str, depth: usize) -> ModulePath {
        let found = &self.0[&module];
        if found.defined.contains(name) || depth > 8 {
            return module;
        }
        let import = found.imports.iter().find(|import| import.name == name);
        import
            .and_then(|import| self.resolve(&module, &import.path, depth + 1))
            .unwrap_or(module)
    }
}

impl Module {
    fn parse(file: PathBuf, text: &str) -> Self {
        let tokens = without_tests(&tokens(text));
        let imports = imports(&tokens);
        let after = |words: &[&str]| -> BTreeSet<String> {
            let pairs = tokens.windows(2);
            let named = pairs.filter(|pair| words.contains(&pair[0].as_str()) && is_identifier(&pair[1]));
            named.map(|pair| pair[1].clone()).collect()
        };
        let declared = tokens.windows(3).filter(|three| three[0] == "mod" && three[2] == ";");
        Self {
            file,
            children: declared.map(|three| three[1].clone()).collect(),
            defined: after(&[
                "struct",
                "enum",
                "trait",
                "fn",
                "const",
                "static",
                "type",
                "macro_rules",
            ]),
            imports,
            tokens,
        }
    }

    /// The paths that the code uses. A re-export counts only if the file itself uses its name.
    fn paths(&self) -> impl Iterator<Item = Vec<String>> {
        let imported = self
            .imports
            .iter()
            .filter(|import| !import.is_reexport || self.mentions(&import.name));
        imported
            .map(|import| import.path.clone())
            .chain(qualified(&self.tokens))
    }

    fn mentions(&self, name: &str) -> bool {
        let outside = outside_of_imports(&self.tokens);
        outside.contains(&name)
    }
}

/// The names that the `use` declarations among the tokens bring into scope.
fn imports(tokens: &[String]) -> Vec<Import> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] != "use" {
            at += 1;
            continue;
        }
        let is_reexport = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
        let end = at
            + tokens[at..]
                .iter()
                .position(|token| token == ";")
                .expect("a `use` ends");
        use_tree(&tokens[at + 1..end], &[], &mut |path, name| {
            found.push(Import {
                path,
                name,
                is_reexport,
            });
        });
        at = end;
    }
    found
}

/// Walks one tree of a `use` declaration.
fn use_tree(tokens: &[String], prefix: &[String], found: &mut impl FnMut(Vec<String>, String)) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "::" => {}
            "{" => {
                for branch in branches(&tokens[at + 1..tokens.len() - 1]) {
                    use_tree(branch, &path, found);
                }
                return;
            }
            "as" => {
                found(path, tokens[at + 1].clone());
                return;
            }
            "*" => {
                found(path, "*".to_owned());
                return;
            }
            "self" if at == tokens.len() - 1 && !path.is_empty() => {}
            name => path.push(name.to_owned()),
        }
        at += 1;
    }
    if let Some(name) = path.last().cloned() {
        found(path, name);
    }
}

/// The comma-separated branches of a `use` tree's braces.
fn branches(tokens: &[String]) -> Vec<&[String]> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                found.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&tokens[start..]);
    found.retain(|branch| !branch.is_empty());
    found
}

/// Paths of two or more segments outside of `use` declarations.
fn qualified(tokens: &[String]) -> Vec<Vec<String>> {
    let tokens = outside_of_imports(tokens);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut path = Vec::new();
        while at + 1 < tokens.len() && is_identifier(tokens[at]) && tokens[at + 1] == "::" {
            path.push(tokens[at].to_owned());
            at += 2;
        }
        if !path.is_empty() {
            if is_identifier(tokens[at]) {
                path.push(tokens[at].to_owned());
            }
            found.push(path);
        }
        at += 1;
    }
    found
}

/// The tokens that belong to no `use` and no `mod x;` declaration, and no visibility.
fn outside_of_imports(tokens: &[String]) -> Vec<&str> {
    let mut outside = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_visibility = tokens[at] == "pub" && tokens.get(at + 1).is_some_and(|next| next == "(");
        let end = match tokens[at].as_str() {
            "use" => ";",
            _ if is_visibility => ")",
            _ => {
                outside.push(tokens[at].as_str());
                at += 1;
                continue;
            }
        };
        at += 1 + tokens[at..]
            .iter()
            .position(|token| token == end)
            .expect("the declaration ends");
    }
    outside
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The tokens without items under `#[cfg(test)]` and the like.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "#" && tokens.get(at + 1).is_some_and(|next| next == "[") {
            let end = matching(tokens, at + 1);
            let attribute = &tokens[at..=end];
            let is_cfg = attribute.get(2).is_some_and(|word| word == "cfg");
            if is_cfg && attribute.iter().any(|word| word == "test") && !attribute.iter().any(|word| word == "not") {
                at = end_of_item(tokens, end + 1);
                continue;
            }
        }
        kept.push(tokens[at].clone());
        at += 1;
    }
    kept
}

/// The position after the item that begins at `at`: after its `;`, or its braces.
fn end_of_item(tokens: &[String], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].as_str() {
            ";" => return at + 1,
            "{" => {
                let end = matching(tokens, at);
                let continues = tokens.get(end + 1).is_some_and(|next| next == ";");
                return end + 1 + usize::from(continues);
            }
            "[" | "(" => at = matching(tokens, at) + 1,
            _ => at += 1,
        }
    }
    at
}

/// The position of the bracket that closes the one at `open`.
fn matching(tokens: &[String], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len() - 1
}

/// Splits Rust source into identifiers, `::` and single characters, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            rest.len() - rest.trim_start().len()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest) {
            length
        } else if first.is_alphabetic() || first == '_' {
            let length = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            found.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            found.push("::".to_owned());
            2
        } else {
            found.push(first.to_string());
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// The length of the string or character literal at the start of the text.
fn literal(text: &str) -> Option<usize> {
    if !text.starts_with(['"', '\'', 'b', 'c', 'r']) {
        return None;
    }
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let after = text.strip_prefix(*prefix).unwrap_or_default();
        let after = if prefix.ends_with('r') {
            after.trim_start_matches('#')
        } else {
            after
        };
        after.starts_with('"')
    });
    if let Some(prefix) = prefix {
        let hashes = text[prefix.len()..].chars().take_while(|c| *c == '#').count();
        let start = prefix.len() + hashes + 1;
        let end = if prefix.ends_with('r') {
            let closing = format!("\"{}", "#".repeat(hashes));
            text[start..].find(&closing)? + closing.len()
        } else {
            closing_quote(&text[start..], '"')?
        };
        return Some(start + end);
    }
    // A lifetime has no closing quote two characters on.
    let quoted = text.strip_prefix('\'')?;
    let second = quoted.chars().nth(1);
    (quoted.starts_with('\\') || second == Some('\'')).then(|| closing_quote(quoted, '\'').map(|end| end + 1))?
}

/// The length of the text up to and with its closing quote.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}
