//! Elements that are read with their contents.

use std::borrow::Cow;

use super::Tag;
use crate::limits;

/// An element with its attributes, the elements in it that its reader names, and its text.
#[derive(Debug, Default)]
pub(crate) struct Element<'a> {
    /// Its name without a namespace's prefix.
    pub(crate) name: &'a str,
    /// The text directly inside it.
    pub(crate) text: Cow<'a, str>,
    /// The elements directly inside it.
    pub(crate) elements: Vec<Self>,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Element<'a> {
    pub(super) fn of(tag: Tag<'a, '_>) -> Self {
        Self {
            name: tag.name,
            attributes: tag.attributes().collect(),
            ..Self::default()
        }
    }

    /// The bytes that it takes without its contents.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.attributes.as_slice())
    }

    /// Whether another element of a name is kept in it. Beyond a bound that no tool reaches, only the first of each name is.
    pub(super) fn has_room_for(&self, name: &str) -> bool {
        self.elements.len() < 2 * limits::ATTEMPTS || self.element(name).is_none()
    }

    /// Its beginning.
    pub(crate) fn tag(&self) -> Tag<'a, '_> {
        Tag {
            name: self.name,
            attributes: &self.attributes,
        }
    }

    /// The decoded value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        self.tag().attribute(name)
    }

    /// The same; empty without the attribute.
    pub(crate) fn value(&self, name: &str) -> Cow<'a, str> {
        self.attribute(name).unwrap_or_default()
    }

    /// The first element of a name directly inside it.
    pub(crate) fn element(&self, name: &str) -> Option<&Self> {
        self.elements.iter().find(|element| element.name == name)
    }

    /// All elements inside it, at any depth, in the order of the document.
    pub(crate) fn descendants(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        let elements = self.elements.iter();
        Box::new(elements.flat_map(|element| std::iter::once(element).chain(element.descendants())))
    }

    /// The text of the first element of a name directly inside it; empty without one.
    pub(crate) fn text_of(&self, name: &str) -> &str {
        self.element(name).map_or("", |element| &element.text)
    }
}
