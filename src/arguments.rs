//! The declaration of a tool's arguments: one table yields the JSON Schema, the validation and the
//! struct that the tool reads. It never converts between types: a string is no integer.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::error::{Result, ToolError, quoted};

/// What an argument may be.
pub(crate) enum Shape {
    /// Text; the strings are the default (if optional), and whether `""` is the same as absent.
    Text { default: Option<&'static str>, empty_is_absent: bool },
    /// True or false, false by default.
    Flag,
    /// An integer from `min` to `max`, without an upper bound where that is `u64::MAX`.
    Integer { min: u64, max: u64, default: Option<u64> },
    /// One of a few words, the first by default.
    Word(&'static [&'static str]),
    /// One to `max` texts.
    Texts { max: u64 },
}

/// One argument as declared.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) required: bool,
    pub(crate) shape: Shape,
}

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> core::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind().0)?;
        map.serialize_entry("description", self.description)?;
        match self.shape {
            Shape::Integer { min, max, .. } => {
                map.serialize_entry("minimum", &min)?;
                if max < u64::MAX {
                    map.serialize_entry("maximum", &max)?;
                }
            }
            Shape::Word(words) => map.serialize_entry("enum", words)?,
            Shape::Texts { .. } => map.serialize_entry("items", &json!({"type": "string"}))?,
            Shape::Text { .. } | Shape::Flag => (),
        }
        if let Some(default) = self.default() {
            map.serialize_entry("default", &default)?;
        }
        map.end()
    }
}

impl Parameter {
    /// The JSON type, and what is allowed in words.
    fn kind(&self) -> (&'static str, String) {
        match self.shape {
            Shape::Text { .. } => ("string", "a string".into()),
            Shape::Flag => ("boolean", "true or false".into()),
            Shape::Integer { min, max: u64::MAX, .. } => {
                ("integer", format!("an integer of at least {min}"))
            }
            Shape::Integer { min, max, .. } => {
                ("integer", format!("an integer from {min} to {max}"))
            }
            Shape::Word(words) => ("string", format!("one of {}", words.join(", "))),
            Shape::Texts { max } => ("array", format!("an array of 1 to {max} strings")),
        }
    }

    fn default(&self) -> Option<Value> {
        match self.shape {
            Shape::Text { default, .. } => default.map(Value::from),
            Shape::Flag => Some(false.into()),
            Shape::Integer { default, .. } => default.map(Value::from),
            Shape::Word(words) => words.first().map(|word| Value::from(*word)),
            Shape::Texts { .. } => None,
        }
    }

    /// The value after the check, with the default filled in where there is one.
    fn check(&self, given: Option<&Value>) -> Result<Checked> {
        let refusal = |what: String| {
            ToolError::invalid(format!("{} is {what}; it must be {}", self.name, self.kind().1))
        };
        let empty_is_absent = matches!(self.shape, Shape::Text { empty_is_absent: true, .. });
        let given = given.filter(|value| !(value.is_null() || empty_is_absent && *value == ""));
        let Some(value) = given.cloned().or_else(|| self.default()) else {
            return if self.required {
                Err(refusal("missing".into()))
            } else {
                Ok(Checked::Absent)
            };
        };
        let checked = match (&self.shape, &value) {
            (Shape::Text { .. }, Value::String(text)) => Some(Checked::Text(text.clone())),
            (Shape::Flag, Value::Bool(flag)) => Some(Checked::Flag(*flag)),
            (Shape::Integer { min, max, .. }, Value::Number(number)) => {
                integer(number).filter(|n| min <= n && n <= max).map(Checked::Integer)
            }
            (Shape::Word(words), Value::String(text)) => {
                words.iter().find(|word| *word == text).map(|word| Checked::Word(word))
            }
            (Shape::Texts { max }, Value::Array(list)) => texts(list, *max).map(Checked::Texts),
            _ => None,
        };
        checked.ok_or_else(|| refusal(described(&value)))
    }
}

/// JSON Schema's integer admits `10.0`; one beyond 64 bits counts as the largest there is.
fn integer(number: &serde_json::Number) -> Option<u64> {
    let float = || number.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0);
    number.as_u64().or_else(|| float().map(|float| float as u64))
}

fn texts(list: &[Value], max: u64) -> Option<Vec<String>> {
    let fits = !list.is_empty() && list.len() as u64 <= max;
    fits.then(|| list.iter().map(|item| item.as_str().map(str::to_owned)).collect()).flatten()
}

/// What came, in a few words.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Array(list) => match list.iter().find(|item| !item.is_string()) {
            Some(Value::Array(_) | Value::Object(_)) => "an array of other things".into(),
            Some(item) => format!("an array that holds {}", described(item)),
            None => format!("an array of {} strings", list.len()),
        },
        Value::Object(_) => "an object".into(),
    }
}

/// Types that a field of an arguments struct may have. The shape beside the field decides which
/// value arrives; a shape that does not fit its field is a mistake that every call would meet.
pub(crate) trait Field: Sized {
    fn from(value: Checked) -> Option<Self>;
}

macro_rules! fields {
    ($($variant:ident($type:ty)),*) => {
        /// A value that has passed its check.
        pub(crate) enum Checked {
            Absent,
            $($variant($type)),*
        }

        $(impl Field for $type {
            fn from(value: Checked) -> Option<Self> {
                if let Checked::$variant(value) = value { Some(value) } else { None }
            }
        })*
    };
}
fields!(Text(String), Flag(bool), Integer(u64), Word(&'static str), Texts(Vec<String>));

impl<T: Field> Field for Option<T> {
    fn from(value: Checked) -> Option<Self> {
        if let Checked::Absent = value { Some(None) } else { T::from(value).map(Some) }
    }
}

/// The value of the next field.
pub(crate) fn take<T: Field>(checked: &mut impl Iterator<Item = Checked>) -> T {
    let value = checked.next().and_then(T::from);
    value.unwrap_or_else(|| unreachable!("an argument's shape does not fit its field"))
}

/// Checks one call's arguments against a table, in its order; names that it does not hold are
/// refused, and the valid ones listed.
pub(crate) fn check(table: &[Parameter], given: &Map<String, Value>) -> Result<Vec<Checked>> {
    if let Some(name) = given.keys().find(|name| table.iter().all(|known| known.name != **name)) {
        let names: Vec<_> = table.iter().map(|known| known.name).collect();
        let valid = if names.is_empty() { "none".into() } else { names.join(", ") };
        let sentence = format!("{} is no argument of this tool; valid are: {valid}", quoted(name));
        return Err(ToolError::invalid(sentence));
    }
    table.iter().map(|parameter| parameter.check(given.get(parameter.name))).collect()
}

/// A field's name without the mark that lets a keyword be one.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares the arguments of a tool: a struct to read them from, `TABLE` to publish and check them,
/// and `parse`. A field that is published and never read does not compile without a warning.
macro_rules! arguments {
    ($($name:ident: $type:ty = $presence:ident $shape:expr, $description:expr;)*) => {
        struct Arguments { $($name: $type),* }

        impl Arguments {
            const TABLE: &'static [$crate::arguments::Parameter] = &[$($crate::arguments::Parameter {
                name: $crate::arguments::plain(stringify!($name)),
                description: $description,
                required: matches!(stringify!($presence).as_bytes(), b"required"),
                shape: $shape,
            }),*];

            fn parse(
                given: &serde_json::Map<String, serde_json::Value>,
            ) -> $crate::error::Result<Self> {
                let mut _checked = $crate::arguments::check(Self::TABLE, given)?.into_iter();
                Ok(Self { $($name: $crate::arguments::take(&mut _checked)),* })
            }
        }
    };
}
pub(crate) use arguments;

/// The shapes and words that several tools share, so that they are told alike.
pub(crate) const PATH: Shape = Shape::Text { default: None, empty_is_absent: false };
pub(crate) const PATH_OR_TOP: Shape = Shape::Text { default: Some("."), empty_is_absent: false };
pub(crate) const OPTIONAL_TEXT: Shape = Shape::Text { default: None, empty_is_absent: true };
pub(crate) const COUNT: Shape = Shape::Integer { min: 1, max: u64::MAX, default: None };
pub(crate) const CURSOR_DESCRIPTION: &str = "from the page before";
pub(crate) const LOSSY_DESCRIPTION: &str = "show bad bytes as U+FFFD";
