//! Full text: the properties with text, their languages, and their indexes.
//!
//! Messages use the service's words, which the Python SDK's tests compare. Source: cosmos-rest §4.2, cosmos-sql §18.9.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::analysis;
use super::input::{Input, invalid};
use crate::error::{Error, Result, excerpt};
use crate::path::PropertyPath;

/// Supported languages.
pub const LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-PT", "pt-BR"];

/// The same languages as numbers of Windows locales, which the service accepts as strings (the JavaScript SDK's tests send `"1033"`).
const LOCALES: [(&str, &str); 8] = [
    ("1033", "en-US"),
    ("1031", "de-DE"),
    ("1034", "es-ES"),
    ("3082", "es-ES"),
    ("1036", "fr-FR"),
    ("1040", "it-IT"),
    ("2070", "pt-PT"),
    ("1046", "pt-BR"),
];

/// The full-text policy of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPolicy {
    /// The language of paths that do not set one.
    pub default_language: Option<String>,
    /// The set of analyzers to choose from: stored as sent.
    pub package: Option<String>,
    /// The analysis of paths that do not set one; its language replaces [`FullTextPolicy::default_language`].
    pub default_spec: Option<Map<String, Value>>,
    /// The paths with text; `None` if the member was not sent.
    pub paths: Option<Vec<FullTextPath>>,
}

/// A property that holds text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullTextPath {
    /// The path of the property.
    pub path: PropertyPath,
    /// Its language, if it is not the default.
    pub language: Option<String>,
    /// Its analysis settings.
    pub analysis: Map<String, Value>,
}

/// An index of the text at one path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FullTextIndex {
    /// The path of the text; it must be in the full-text policy.
    pub path: PropertyPath,
}

impl FullTextPolicy {
    pub(super) fn from_input(input: &Input<'_>) -> Result<FullTextPolicy> {
        let default_language = read_language(input, "defaultLanguage")?;
        let default_spec = input
            .object("defaultSpec")?
            .as_ref()
            .map(read_default_spec)
            .transpose()?;
        let paths = match input.get("fullTextPaths") {
            None => None,
            Some(_) => Some(
                input
                    .objects("fullTextPaths")?
                    .iter()
                    .map(FullTextPath::from_input)
                    .collect::<Result<Vec<_>>>()?,
            ),
        };
        let policy = FullTextPolicy {
            default_language,
            package: analysis::read_package(input)?,
            default_spec,
            paths,
        };
        policy.check_one_language_each(input)?;
        Ok(policy)
    }

    /// EF Core lists a path once for each type of entity that has it. The text at a path must still be in one language.
    fn check_one_language_each(&self, input: &Input<'_>) -> Result<()> {
        let mut languages = HashMap::new();
        for own in self.paths.iter().flatten() {
            let language = self.language_of(own);
            if *languages.entry(&own.path).or_insert(language) != language {
                return Err(invalid(
                    &input.name_of("fullTextPaths"),
                    "a list with one language for each path",
                ));
            }
        }
        Ok(())
    }

    fn language_of(&self, path: &FullTextPath) -> &'static str {
        let given = path.language.as_deref().or(self.language());
        given.and_then(language_named).unwrap_or(LANGUAGES[0])
    }

    pub(super) fn to_json(&self) -> Value {
        let mut members = Map::new();
        if let Some(language) = &self.default_language {
            members.insert("defaultLanguage".into(), language.as_str().into());
        }
        if let Some(package) = &self.package {
            members.insert("package".into(), package.as_str().into());
        }
        if let Some(spec) = &self.default_spec {
            members.insert("defaultSpec".into(), Value::Object(spec.clone()));
        }
        if let Some(paths) = &self.paths {
            members.insert(
                "fullTextPaths".into(),
                paths.iter().map(FullTextPath::to_json).collect(),
            );
        }
        Value::Object(members)
    }

    /// The language of paths that do not set one, if either setting names it.
    pub fn language(&self) -> Option<&str> {
        let of_spec = || self.default_spec.as_ref()?.get("language")?.as_str();
        self.default_language.as_deref().or_else(of_spec)
    }

    /// The language of the text at `path`; `None` if the path has no text.
    pub fn language_at(&self, path: &PropertyPath) -> Option<&str> {
        let found = self.paths.iter().flatten().find(|own| own.path == *path)?;
        Some(self.language_of(found))
    }
}

impl FullTextPath {
    fn from_input(input: &Input<'_>) -> Result<FullTextPath> {
        let text = input.require("path", input.string("path")?)?;
        let path = PropertyPath::parse(text).map_err(|_| {
            Error::bad_request(format!(
                "The Full Text Policy contains an invalid Path: {}.",
                excerpt(text)
            ))
        })?;
        Ok(FullTextPath {
            path,
            language: read_language(input, "language")?,
            analysis: analysis::read(input)?,
        })
    }

    fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("path".into(), self.path.as_str().into());
        if let Some(language) = &self.language {
            members.insert("language".into(), language.as_str().into());
        }
        members.extend(self.analysis.clone());
        Value::Object(members)
    }
}

impl FullTextIndex {
    pub(super) fn list_from_input(input: &Input<'_>) -> Result<Vec<FullTextIndex>> {
        let indexes = input.objects("fullTextIndexes")?;
        let indexes = indexes
            .iter()
            .enumerate()
            .map(FullTextIndex::from_input)
            .collect::<Result<Vec<_>>>()?;
        Ok(indexes)
    }

    fn from_input((n, input): (usize, &Input<'_>)) -> Result<FullTextIndex> {
        let Some(text) = input.string("path")? else {
            return Err(Error::bad_request(format!(
                "Missing path in full-text index specification at index ({n})."
            )));
        };
        let path = PropertyPath::parse(text).map_err(|_| {
            Error::bad_request(format!(
                "Full-text index specification at index ({n}) contains invalid path: {}.",
                excerpt(text)
            ))
        })?;
        Ok(FullTextIndex { path })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"path": self.path.as_str()})
    }
}

/// Checks that every full-text index is on a path of the policy.
pub(super) fn check_indexes(indexes: &[FullTextIndex], policy: Option<&FullTextPolicy>) -> Result<()> {
    let paths = policy.and_then(|policy| policy.paths.as_ref()).into_iter().flatten();
    let paths: HashSet<&PropertyPath> = paths.map(|own| &own.path).collect();
    match indexes.iter().find(|index| !paths.contains(&index.path)) {
        None => Ok(()),
        Some(FullTextIndex { path }) => Err(Error::bad_request(format!(
            "The path of the Full Text Index {path} does not match the path specified in the Full Text Policy."
        ))),
    }
}

/// The language named by its tag or by its number.
pub fn language_named(given: &str) -> Option<&'static str> {
    let by_number = || LOCALES.iter().find(|(number, _)| *number == given);
    let by_tag = LANGUAGES.iter().find(|language| **language == given).copied();
    by_tag.or_else(|| by_number().map(|(_, language)| *language))
}

fn read_default_spec(input: &Input<'_>) -> Result<Map<String, Value>> {
    let mut spec = Map::new();
    if let Some(language) = read_language(input, "language")? {
        spec.insert("language".into(), language.into());
    }
    spec.extend(analysis::read(input)?);
    Ok(spec)
}

fn read_language(input: &Input<'_>, member: &str) -> Result<Option<String>> {
    let Some(given) = input.string(member)? else {
        return Ok(None);
    };
    match language_named(given) {
        Some(_) => Ok(Some(given.to_owned())),
        None => Err(Error::bad_request(format!(
            "The Full Text Policy contains an unsupported language {}. Supported languages are: {}.",
            excerpt(given),
            LANGUAGES.join(", ")
        ))),
    }
}
