//! Compares the layers of modules inside a crate, as listed in `ARCHITECTURE.md`, with the code.
//!
//! A crate with a subsection under "## Layers" has a table there with its top-level modules, lowest first. A module uses only modules that are above
//! it in the table, so there are no cycles. A crate without a subsection is not checked.

use super::TextFile;
use super::source::{self, Token};

/// The heading of the table.
const TABLE: &str = "| module |";

/// Compares the tables with the modules and with the names that their code uses.
pub fn check(architecture: &str, files: &[TextFile]) -> Vec<String> {
    let sections = sections_in(architecture);
    sections
        .iter()
        .flat_map(|(name, layers)| problems_of(name, layers, files))
        .collect()
}

fn problems_of(name: &str, layers: &[String], files: &[TextFile]) -> Vec<String> {
    let folder = ["crates/", ""].map(|parent| format!("{parent}{name}/src/"));
    let root = |folder: &String| files.iter().find(|file| file.path == format!("{folder}lib.rs"));
    let Some((folder, root)) = folder.iter().find_map(|folder| Some((folder, root(folder)?))) else {
        return vec![format!(
            "ARCHITECTURE.md: the layers of {name}, which is no crate with a lib.rs"
        )];
    };
    let modules = modules_of(&root.text);
    let mut problems = differences(name, layers, &modules);
    let sources: Vec<&TextFile> = files
        .iter()
        .filter(|file| file.path.starts_with(folder) && file.path.ends_with(".rs") && file.path != root.path)
        .collect();
    let tests: Vec<String> = sources
        .iter()
        .chain([&root])
        .flat_map(|file| test_files(file))
        .collect();
    for file in sources {
        let path = &file.path;
        let is_test = path.ends_with("/tests.rs") || tests.iter().any(|test| path.starts_with(test));
        if !is_test {
            problems.extend(upward_uses(file, &path[folder.len()..], layers, &modules));
        }
    }
    problems
}

/// Modules without a row, and rows without a module.
fn differences(name: &str, layers: &[String], modules: &[String]) -> Vec<String> {
    let missing = modules.iter().filter(|module| !layers.contains(module));
    let missing = missing.map(|module| format!("ARCHITECTURE.md: the layers of {name} have no row for {module}"));
    let stale = layers.iter().filter(|layer| !modules.contains(layer));
    let stale =
        stale.map(|layer| format!("ARCHITECTURE.md: the layers of {name} have {layer}, which is no module of it"));
    missing.chain(stale).collect()
}

/// Names in a file that are not above its module. `path` is relative to `src/`.
fn upward_uses(file: &TextFile, path: &str, layers: &[String], modules: &[String]) -> Vec<String> {
    let module = path.strip_suffix("/mod.rs").unwrap_or(path.trim_end_matches(".rs"));
    let segments: Vec<&str> = module.split('/').collect();
    let own = segments[0];
    let place = |name: &str| layers.iter().position(|layer| layer == name);
    let code = source::code_of(&file.text);
    let tokens = source::without_tests(&source::tokens(&code));
    let mentions = names_from_root(&tokens, segments.len());
    let problem = |token: &Token<'_>| {
        let (name, line) = (token.text, token.line);
        let what = match (place(name), place(own)) {
            _ if name == own => return None,
            // A module without a row is reported only once.
            (None, _) if modules.iter().any(|module| module == name) => return None,
            (None, _) => format!("`crate::{name}` hides which module it is from"),
            (Some(used), Some(user)) if used >= user => format!("{own} uses {name}, which is not below it"),
            _ => return None,
        };
        Some(format!("{}:{line}: {what}", file.path))
    };
    mentions.iter().filter_map(problem).collect()
}

/// The first names of all paths from the crate's root, in a module `depth` levels below it.
fn names_from_root<'c>(tokens: &[Token<'c>], depth: usize) -> Vec<Token<'c>> {
    let mut names = Vec::new();
    // The brace depths at which inline modules began.
    let (mut braces, mut inline) = (0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => {
                if at >= 2 && tokens[at - 2].text == "mod" {
                    inline.push(braces);
                }
                braces += 1;
            }
            "}" => {
                braces -= 1;
                inline.pop_if(|begun| *begun == braces);
            }
            _ => {
                let behind = behind_root(tokens, at, depth + inline.len());
                names.extend(behind.into_iter().flat_map(|start| first_names(&tokens[start..])));
            }
        }
    }
    names
}

/// The index after `crate::`, or after as many `super::` as lead to the root, if this is at `at`.
fn behind_root(tokens: &[Token<'_>], at: usize, depth: usize) -> Option<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let pair = |at: usize, word: &str| text(at) == word && text(at + 1) == "::";
    if pair(at, "crate") {
        return Some(at + 2);
    }
    let follows_super = at >= 2 && pair(at - 2, "super");
    let supers = (0..).take_while(|nth| pair(at + 2 * nth, "super")).count();
    (supers == depth && !follows_super).then_some(at + 2 * supers)
}

/// The name at the beginning, or the first names of a use tree in braces.
fn first_names<'c>(tokens: &[Token<'c>]) -> Vec<Token<'c>> {
    let mut names = Vec::new();
    if tokens.first().is_none_or(|token| token.text != "{") {
        return tokens.first().cloned().into_iter().collect();
    }
    let (mut depth, mut is_first) = (0_usize, false);
    for token in tokens {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if is_first && !["}", "self"].contains(&token.text) {
            names.push(token.clone());
        }
        is_first = depth == 1 && ["{", ","].contains(&token.text);
    }
    names
}

/// The modules that `lib.rs` declares, except tests.
fn modules_of(root: &str) -> Vec<String> {
    let code = source::code_of(root);
    let tokens = source::without_tests(&source::tokens(&code));
    let mut names = Vec::new();
    let mut braces = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => braces += 1,
            "}" => braces = braces.saturating_sub(1),
            "mod" if braces == 0 => names.extend(tokens.get(at + 1).map(|name| name.text.to_owned())),
            _ => {}
        }
    }
    names.retain(|name| name != "tests");
    names
}

/// Path prefixes of modules that a file declares under `#[cfg(test)]`.
fn test_files(file: &TextFile) -> Vec<String> {
    let folder = match file.path.rsplit_once('/') {
        Some((folder, "lib.rs" | "mod.rs")) => folder,
        _ => file.path.trim_end_matches(".rs"),
    };
    let code = source::code_of(&file.text);
    let names = source::test_modules(&source::tokens(&code));
    let files = names
        .iter()
        .flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")]);
    files.collect()
}

/// The crates under "## Layers", each with the names in its table.
fn sections_in(architecture: &str) -> Vec<(String, Vec<String>)> {
    let lines = architecture
        .lines()
        .skip_while(|line| line.trim_end() != "## Layers")
        .skip(1);
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines.take_while(|line| !line.starts_with("## ")) {
        if let Some(heading) = line.strip_prefix("### ") {
            sections.push((heading.trim().trim_matches('`').to_owned(), Vec::new()));
        } else if let Some((_, rows)) = sections.last_mut()
            && line.starts_with('|')
            && !line.starts_with(TABLE)
        {
            rows.extend(line.split('`').nth(1).map(str::to_owned));
        }
    }
    sections
}

#[cfg(test)]
mod tests;
