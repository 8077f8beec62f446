//! Types of fields that any JSON value can be read as, because tools disagree about types.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use assay_domain::timestamp::Timestamp;

use crate::{memory, time};

/// A text, also from a number or a truth value.
pub(crate) type Text = Lenient<Option<String>>;
/// A finite number, also from text.
pub(crate) type Number = Lenient<Option<f64>>;
/// A truth value, also from text.
pub(crate) type Flag = Lenient<Option<bool>>;
/// A whole number from 1, such as a line, column or index.
pub(crate) type Positive = Lenient<Option<u32>>;
/// A list without its nulls.
pub(crate) type List<T> = Lenient<Vec<T>>;

/// A field of any JSON type. A value that does not fit is read as the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lenient<T>(pub(crate) T);

impl Text {
    /// The text; empty without one.
    pub(crate) fn or_empty(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The text unless it is blank.
    pub(crate) fn not_blank(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.trim().is_empty())
    }
}

impl Number {
    /// Whole milliseconds of a duration in milliseconds.
    pub(crate) fn ms(&self) -> Option<u64> {
        self.0.and_then(time::duration_ms)
    }

    /// Whole milliseconds of a duration in seconds.
    pub(crate) fn seconds_ms(&self) -> Option<u64> {
        self.0.and_then(|seconds| time::duration_ms(seconds * 1000.0))
    }

    /// The point in time of seconds or milliseconds since 1970.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        self.0.and_then(time::from_epoch)
    }
}

impl<T> Deref for Lenient<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Lenient<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: PartialEq> PartialEq<T> for Lenient<T> {
    fn eq(&self, other: &T) -> bool {
        self.0 == *other
    }
}

impl<'a, T> IntoIterator for &'a Lenient<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de, T: OfAnyJson<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson(PhantomData)).map(Self)
    }
}

/// What each kind of JSON value is read as; by default as if it were absent.
pub(crate) trait OfAnyJson<'de>: Default {
    fn of_text(_text: &str) -> Self {
        Self::default()
    }

    fn of_number(_number: f64) -> Self {
        Self::default()
    }

    fn of_flag(_flag: bool) -> Self {
        Self::default()
    }

    fn of_list<A: SeqAccess<'de>>(mut elements: A) -> Result<Self, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_object<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

struct AnyJson<T>(PhantomData<T>);

impl<'de, T: OfAnyJson<'de>> Visitor<'de> for AnyJson<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::of_text(text))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::of_flag(flag))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(T::of_number(number))
    }

    #[expect(
        clippy::as_conversions,
        reason = "a float is near enough to any count, time or duration"
    )]
    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::of_number(number as f64))
    }

    #[expect(
        clippy::as_conversions,
        reason = "a float is near enough to any count, time or duration"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<T, A::Error> {
        T::of_list(elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T, A::Error> {
        T::of_object(entries)
    }
}

/// What the smallest text takes beside its place in an object.
const SMALLEST_TEXT: usize = 24;

impl OfAnyJson<'_> for Option<String> {
    fn of_text(text: &str) -> Self {
        // The elements of lists check whether the memory sufficed.
        memory::hold(SMALLEST_TEXT + text.len());
        Some(text.to_owned())
    }

    fn of_number(number: f64) -> Self {
        Some(number.to_string())
    }

    fn of_flag(flag: bool) -> Self {
        Some(flag.to_string())
    }
}

impl OfAnyJson<'_> for Option<f64> {
    fn of_text(text: &str) -> Self {
        text.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn of_number(number: f64) -> Self {
        Some(number)
    }
}

impl OfAnyJson<'_> for Option<bool> {
    fn of_text(text: &str) -> Self {
        text.parse().ok()
    }

    fn of_flag(flag: bool) -> Self {
        Some(flag)
    }
}

impl OfAnyJson<'_> for Option<u32> {
    fn of_text(text: &str) -> Self {
        Option::<f64>::of_text(text).and_then(Self::of_number)
    }

    fn of_number(number: f64) -> Self {
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        let whole = number as u32;
        (whole >= 1).then_some(whole)
    }
}

impl<'de, T: Deserialize<'de>> OfAnyJson<'de> for Vec<T> {
    fn of_list<A: SeqAccess<'de>>(mut elements: A) -> Result<Self, A::Error> {
        let mut list = Self::new();
        while let Some(element) = elements.next_element::<Option<T>>()? {
            memory::reserve::<T, A::Error>()?;
            list.extend(element);
        }
        Ok(list)
    }
}

/// A list of texts. An element that is not a text becomes an empty one, so that the others keep their index.
pub(crate) type Texts = Lenient<TextList>;

#[derive(Debug, Default)]
pub(crate) struct TextList(Vec<String>);

impl Deref for TextList {
    type Target = Vec<String>;

    fn deref(&self) -> &Vec<String> {
        &self.0
    }
}

impl<'de> OfAnyJson<'de> for TextList {
    fn of_list<A: SeqAccess<'de>>(mut elements: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while let Some(Lenient(text)) = elements.next_element::<Text>()? {
            memory::reserve::<String, A::Error>()?;
            list.push(text.unwrap_or_default());
        }
        Ok(Self(list))
    }
}

/// A text, also from a list of lines; none for anything else.
pub(crate) type TextOrLines = Lenient<JoinedLines>;

#[derive(Debug, Default)]
pub(crate) struct JoinedLines(pub(crate) Option<String>);

impl<'de> OfAnyJson<'de> for JoinedLines {
    fn of_text(text: &str) -> Self {
        Self(Option::of_text(text))
    }

    fn of_list<A: SeqAccess<'de>>(elements: A) -> Result<Self, A::Error> {
        let lines = TextList::of_list(elements)?;
        Ok(Self((!lines.is_empty()).then(|| lines.join("\n"))))
    }
}

/// A list that most elements lack: it takes one word while it is empty.
pub(crate) type RareList<T> = Lenient<BoxedList<T>>;

#[derive(Debug)]
#[expect(clippy::box_collection, reason = "a list takes three words")]
pub(crate) struct BoxedList<T>(Option<Box<Vec<T>>>);

impl<T> BoxedList<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|elements| elements.iter())
    }
}

impl<T> Default for BoxedList<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> OfAnyJson<'de> for BoxedList<T> {
    fn of_list<A: SeqAccess<'de>>(elements: A) -> Result<Self, A::Error> {
        let elements = Vec::of_list(elements)?;
        Ok(Self((!elements.is_empty()).then(|| Box::new(elements))))
    }
}

/// An object.
pub(crate) type Object<T> = Lenient<OnlyObject<T>>;

#[derive(Debug, Default)]
pub(crate) struct OnlyObject<T>(T);

impl<T> Deref for OnlyObject<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de> + Default> OfAnyJson<'de> for OnlyObject<T> {
    fn of_object<A: MapAccess<'de>>(entries: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries)).map(Self)
    }
}

/// A list, or one element instead of a list.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> OfAnyJson<'de> for OneOrMany<T> {
    fn of_list<A: SeqAccess<'de>>(elements: A) -> Result<Self, A::Error> {
        Vec::of_list(elements).map(Self)
    }

    fn of_object<A: MapAccess<'de>>(entries: A) -> Result<Self, A::Error> {
        let only = T::deserialize(MapAccessDeserializer::new(entries))?;
        Ok(Self(vec![only]))
    }
}
