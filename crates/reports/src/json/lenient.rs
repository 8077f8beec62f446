//! Deserializers that accept a field of any JSON type, because tools disagree about types.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use crate::memory;

/// What the smallest text takes beside its place in an object.
const SMALLEST_TEXT: usize = 24;

/// Text, also from a number or a truth value; none for anything else.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(Lenient::<String>::new())
}

/// Text, also from a list of lines; none for anything else.
pub(crate) fn text_or_lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct Lines;

    impl<'de> Visitor<'de> for Lines {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a list of lines")
        }

        fn visit_str<E>(self, text: &str) -> Result<Option<String>, E> {
            Ok(String::of_text(text))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Option<String>, A::Error> {
            let lines = List::<TextOrNone, String>(PhantomData).visit_seq(elements)?;
            Ok((!lines.is_empty()).then(|| lines.join("\n")))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<String>, A::Error> {
            Lenient::<String>::new().visit_map(map)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Option<String>, E> {
            Ok(None)
        }
    }

    deserializer.deserialize_any(Lines)
}

/// A number, also from text; none for anything else.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    deserializer.deserialize_any(Lenient::<f64>::new())
}

/// A truth value, also from text; none for anything else.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(text(deserializer)?.and_then(|text| text.parse().ok()))
}

/// A whole number from 1, such as a line, column or index; none for anything else.
pub(crate) fn positive_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Ok(number(deserializer)?.and_then(|number| {
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        let whole = number as u32;
        (whole >= 1).then_some(whole)
    }))
}

/// A list without its nulls; empty for null or anything else.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(List::<Option<T>, T>(PhantomData))
}

/// A list that most elements lack: it takes one word while it is empty.
#[derive(Debug)]
pub(crate) struct RareList<T>(Option<Box<Elements<T>>>);

#[derive(Debug)]
struct Elements<T>(Vec<T>);

impl<T> RareList<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|elements| &elements.0)
    }

    fn of(elements: Vec<T>) -> Self {
        Self((!elements.is_empty()).then(|| Box::new(Elements(elements))))
    }
}

impl<T> Default for RareList<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// A list without its nulls, as [`list`] reads it.
pub(crate) fn rare_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<RareList<T>, D::Error> {
    list(deserializer).map(RareList::of)
}

/// A list of texts, as [`texts`] reads it.
pub(crate) fn rare_texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RareList<String>, D::Error> {
    texts(deserializer).map(RareList::of)
}

/// An object; an empty one for anything else.
pub(crate) fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Object::<T>(PhantomData))
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Object<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<T, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }
}

/// A list, or one element instead of a list.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor(PhantomData))
    }
}

struct OneOrManyVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<OneOrMany<T>, A::Error> {
        List::<Option<T>, T>(PhantomData)
            .visit_seq(elements)
            .map(OneOrMany)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OneOrMany<T>, A::Error> {
        let only = T::deserialize(MapAccessDeserializer::new(map))?;
        Ok(OneOrMany(vec![only]))
    }
}

/// A list of texts. An element that is not a text becomes an empty one, so that the others keep their index.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(List::<TextOrNone, String>(PhantomData))
}

/// An element of a list of texts.
struct TextOrNone(Option<String>);

impl<'de> Deserialize<'de> for TextOrNone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer).map(Self)
    }
}

impl From<TextOrNone> for Option<String> {
    fn from(TextOrNone(text): TextOrNone) -> Self {
        Some(text.unwrap_or_default())
    }
}

/// Reads a list of `T`. Anything else than a list becomes an empty one.
struct List<E, T>(PhantomData<(E, T)>);

impl<'de, E: Deserialize<'de> + Into<Option<T>>, T> Visitor<'de> for List<E, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element::<E>()? {
            memory::reserve::<T, A::Error>()?;
            list.extend(element.into());
        }
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Vec::new())
    }

    fn visit_str<X>(self, _: &str) -> Result<Vec<T>, X> {
        Ok(Vec::new())
    }

    fn visit_bool<X>(self, _: bool) -> Result<Vec<T>, X> {
        Ok(Vec::new())
    }

    fn visit_f64<X>(self, _: f64) -> Result<Vec<T>, X> {
        Ok(Vec::new())
    }

    fn visit_i64<X>(self, _: i64) -> Result<Vec<T>, X> {
        Ok(Vec::new())
    }

    fn visit_u64<X>(self, _: u64) -> Result<Vec<T>, X> {
        Ok(Vec::new())
    }

    fn visit_unit<X>(self) -> Result<Vec<T>, X> {
        Ok(Vec::new())
    }
}

/// The types that a scalar can be converted to.
trait Scalar: Sized {
    fn of_text(text: &str) -> Option<Self>;
    fn of_number(number: f64) -> Option<Self>;
    fn of_bool(value: bool) -> Option<Self>;
}

impl Scalar for String {
    fn of_text(text: &str) -> Option<Self> {
        // The elements of lists check whether the memory sufficed.
        memory::hold(SMALLEST_TEXT + text.len());
        Some(text.to_owned())
    }

    fn of_number(number: f64) -> Option<Self> {
        Some(number.to_string())
    }

    fn of_bool(value: bool) -> Option<Self> {
        Some(value.to_string())
    }
}

impl Scalar for f64 {
    fn of_text(text: &str) -> Option<Self> {
        text.trim()
            .parse()
            .ok()
            .filter(|number: &Self| number.is_finite())
    }

    fn of_number(number: f64) -> Option<Self> {
        Some(number)
    }

    fn of_bool(_: bool) -> Option<Self> {
        None
    }
}

struct Lenient<T>(PhantomData<T>);

impl<T> Lenient<T> {
    const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Scalar> Visitor<'de> for Lenient<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<T>, E> {
        Ok(T::of_text(text))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Option<T>, E> {
        Ok(T::of_bool(value))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Option<T>, E> {
        Ok(T::of_number(number))
    }

    #[expect(
        clippy::as_conversions,
        reason = "a float is near enough to any count, time or duration"
    )]
    fn visit_i64<E>(self, number: i64) -> Result<Option<T>, E> {
        Ok(T::of_number(number as f64))
    }

    #[expect(
        clippy::as_conversions,
        reason = "a float is near enough to any count, time or duration"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<Option<T>, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Option<T>, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}
