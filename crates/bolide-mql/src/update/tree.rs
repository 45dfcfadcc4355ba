//! The mutable tree of a document that is being updated.
//!
//! Only the documents and arrays on the way to a change are opened. Everything else stays the bytes that it was, so it is copied
//! unchanged into the result.

use std::borrow::Cow;

use bson::raw::CStr;
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::error::Result;

/// A value in the tree.
pub(super) enum Node<'a> {
    /// A value of the old document that was not opened.
    Raw(RawBsonRef<'a>),
    /// A new value.
    Owned(Box<RawBson>),
    /// An opened document.
    Document(Fields<'a>),
    /// An opened array.
    Array(Vec<Node<'a>>),
}

/// The fields of an opened document, in order.
pub(super) type Fields<'a> = Vec<(Cow<'a, CStr>, Node<'a>)>;

impl<'a> Node<'a> {
    /// Returns a new value.
    pub(super) fn new(value: RawBson) -> Node<'a> {
        Node::Owned(Box::new(value))
    }

    /// Returns the fields if this is a document.
    pub(super) fn open_document(&mut self) -> Result<Option<&mut Fields<'a>>> {
        let opened = match self {
            Node::Raw(RawBsonRef::Document(document)) => Some(fields_of(document)?),
            Node::Owned(value) => match &**value {
                RawBson::Document(document) => Some(owned_fields_of(document)?),
                _ => None,
            },
            _ => None,
        };
        if let Some(fields) = opened {
            *self = Node::Document(fields);
        }
        Ok(match self {
            Node::Document(fields) => Some(fields),
            _ => None,
        })
    }

    /// Returns the elements if this is an array.
    pub(super) fn open_array(&mut self) -> Result<Option<&mut Vec<Node<'a>>>> {
        let opened = match self {
            Node::Raw(RawBsonRef::Array(array)) => {
                let elements = array.into_iter().map(|element| Ok(Node::Raw(element?)));
                Some(elements.collect::<Result<Vec<_>>>()?)
            }
            Node::Owned(value) => match &**value {
                RawBson::Array(array) => {
                    let elements = array.into_iter().map(|element| Ok(Node::new(element?.into())));
                    Some(elements.collect::<Result<Vec<_>>>()?)
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(elements) = opened {
            *self = Node::Array(elements);
        }
        Ok(match self {
            Node::Array(elements) => Some(elements),
            _ => None,
        })
    }

    /// Returns the value, for reading.
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Node::Raw(value) => Value::Borrowed(*value),
            Node::Owned(value) => Value::Borrowed(value.as_raw_bson_ref()),
            Node::Document(fields) => Value::Owned(RawBson::Document(document_of(fields))),
            Node::Array(elements) => Value::Owned(RawBson::Array(array_of(elements))),
        }
    }
}

/// A value for reading: as it is stored, or put together from an opened node.
pub(super) enum Value<'a> {
    /// As it is stored.
    Borrowed(RawBsonRef<'a>),
    /// From an opened node.
    Owned(RawBson),
}

impl Value<'_> {
    /// Returns the value.
    pub(super) fn as_raw(&self) -> RawBsonRef<'_> {
        match self {
            Value::Borrowed(value) => *value,
            Value::Owned(value) => value.as_raw_bson_ref(),
        }
    }
}

/// Opens a document.
pub(super) fn fields_of(document: &RawDocument) -> Result<Fields<'_>> {
    let mut fields = Vec::new();
    for field in document {
        let (name, value) = field?;
        fields.push((Cow::Borrowed(name), Node::Raw(value)));
    }
    Ok(fields)
}

fn owned_fields_of<'a>(document: &RawDocument) -> Result<Fields<'a>> {
    let mut fields = Vec::new();
    for field in document {
        let (name, value) = field?;
        fields.push((Cow::Owned(name.to_owned()), Node::new(value.into())));
    }
    Ok(fields)
}

/// Returns the document of these fields.
pub(super) fn document_of(fields: &Fields<'_>) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    for (name, node) in fields {
        document.append(&**name, node.value().as_raw());
    }
    document
}

fn array_of(elements: &[Node<'_>]) -> RawArrayBuf {
    let mut array = RawArrayBuf::new();
    for node in elements {
        array.push(node.value().as_raw());
    }
    array
}
