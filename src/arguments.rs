//! The declaration of a tool's arguments: one table yields the JSON Schema, the validation and the
//! struct that the tool reads. It never converts between types: a string is no integer.

use serde::de::DeserializeOwned;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Number, Value, json};

use crate::error::{Code, Result, ToolError, quoted};

/// What an argument may be, and its default if it is optional.
pub(crate) enum Shape {
    /// Text; where it is optional and has no default, `""` is the same as absent.
    Text(Option<&'static str>),
    /// True or false, false by default.
    Flag,
    /// An integer from `min` to `max`, without an upper bound where that is `u64::MAX`.
    Integer { min: u64, max: u64, default: Option<u64> },
    /// One of a few words, the first by default.
    Word(&'static [&'static str]),
    /// One to `max` texts.
    Texts { max: usize },
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
        let (kind, _, members) = self.shape.told();
        let first = [("type", kind.into()), ("description", self.description.into())];
        let members = first.into_iter().chain(members);
        serializer.collect_map(members.filter(|(_, value): &(_, Value)| !value.is_null()))
    }
}

impl Shape {
    /// The JSON type, what is allowed in words, and the other members of its schema in order.
    fn told(&self) -> (&'static str, String, Vec<(&'static str, Value)>) {
        match *self {
            Self::Text(default) => ("string", "a string".into(), vec![("default", default.into())]),
            Self::Flag => ("boolean", "true or false".into(), vec![("default", false.into())]),
            Self::Integer { min, max, default } => {
                let (max, allowed) = match max {
                    u64::MAX => (None, format!("an integer of at least {min}")),
                    max => (Some(max), format!("an integer from {min} to {max}")),
                };
                let bounds = vec![("minimum", min.into()), ("maximum", max.into())];
                let default = [("default", default.into())];
                ("integer", allowed, bounds.into_iter().chain(default).collect())
            }
            Self::Word(words) => {
                let members = vec![("enum", words.into()), ("default", words[0].into())];
                ("string", format!("one of {}", words.join(", ")), members)
            }
            Self::Texts { max } => {
                let items = ("items", json!({"type": "string"}));
                ("array", format!("an array of 1 to {max} strings"), vec![items])
            }
        }
    }
}

impl Parameter {
    /// The value after the check; where it is absent its default, or null.
    fn check(&self, given: Option<&Value>) -> Result<Value> {
        let (_, allowed, members) = self.shape.told();
        let refusal = |what: String| {
            ToolError::invalid(format!("{} is {what}; it must be {allowed}", self.name))
        };
        let empty_is_absent = !self.required && matches!(self.shape, Shape::Text(None));
        let given = given.filter(|value| !(value.is_null() || empty_is_absent && **value == ""));
        let Some(value) = given else {
            let default = members.into_iter().find(|(key, _)| *key == "default");
            return match self.required {
                true => Err(refusal("missing".into())),
                false => Ok(default.unwrap_or_default().1),
            };
        };
        let fits = match (&self.shape, value) {
            (Shape::Text(_), Value::String(_)) | (Shape::Flag, Value::Bool(_)) => true,
            (Shape::Integer { min, max, .. }, Value::Number(number)) => {
                let number = integer(number).filter(|n| (min..=max).contains(&n));
                return number.map(Value::from).ok_or_else(|| refusal(described(value)));
            }
            (Shape::Word(words), Value::String(text)) => words.contains(&text.as_str()),
            (Shape::Texts { max }, Value::Array(list)) => {
                (1..=*max).contains(&list.len()) && list.iter().all(Value::is_string)
            }
            _ => false,
        };
        if fits { Ok(value.clone()) } else { Err(refusal(described(value))) }
    }
}

/// JSON Schema's integer admits `10.0`; one beyond 64 bits counts as the largest there is.
fn integer(number: &Number) -> Option<u64> {
    let float = || number.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0);
    number.as_u64().or_else(|| float().map(|float| float as u64))
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

/// Checks one call's arguments against a table, in its order; names that it does not hold are
/// refused, and the valid ones listed.
pub(crate) fn check(table: &[Parameter], given: &Map<String, Value>) -> Result<Vec<Value>> {
    if let Some(name) = given.keys().find(|name| table.iter().all(|known| known.name != **name)) {
        let names: Vec<_> = table.iter().map(|known| known.name).collect();
        let valid = if names.is_empty() { "none".into() } else { names.join(", ") };
        let sentence = format!("{} is no argument of this tool; valid are: {valid}", quoted(name));
        return Err(ToolError::invalid(sentence));
    }
    table.iter().map(|parameter| parameter.check(given.get(parameter.name))).collect()
}

/// A checked value as its field's type. A shape that does not fit its field is a mistake of ours
/// that every call would meet.
pub(crate) fn field<T: DeserializeOwned>(checked: Option<Value>) -> Result<T> {
    let value = serde_json::from_value(checked.unwrap_or_default());
    value.map_err(|why| ToolError::new(Code::InternalError, why.to_string()))
}

/// Declares a tool: what clients are told of it, its arguments as a struct to read them from, and
/// `TOOL`, which publishes and checks them before `run` gets that struct. An argument that is
/// published and never read does not compile without a warning. One whose name is a keyword has
/// another in the struct.
macro_rules! tool {
    (
        name: $tool:literal, title: $title:literal, description: $text:literal,
        $($name:ident$( as $published:literal)?: $type:ty = $presence:ident $shape:expr, $description:expr;)*
    ) => {
        struct Arguments { $($name: $type),* }

        pub(crate) const TOOL: $crate::tool::Tool = $crate::tool::Tool {
            name: $tool,
            title: $title,
            description: $text,
            parameters: &[$($crate::arguments::Parameter {
                name: [$($published,)? stringify!($name)][0],
                description: $description,
                required: matches!(stringify!($presence).as_bytes(), b"required"),
                shape: $shape,
            }),*],
            run: |call, given| {
                let mut _checked = $crate::arguments::check(TOOL.parameters, given)?.into_iter();
                run(call, Arguments { $($name: $crate::arguments::field(_checked.next())?),* })
            },
        };
    };
}
pub(crate) use tool;

/// The shapes and words that several tools share, so that they are told alike.
pub(crate) const TEXT: Shape = Shape::Text(None);
pub(crate) const PATH_OR_TOP: Shape = Shape::Text(Some("."));
pub(crate) const COUNT: Shape = Shape::Integer { min: 1, max: u64::MAX, default: None };
pub(crate) const CURSOR_DESCRIPTION: &str = "from the page before";
pub(crate) const LOSSY_DESCRIPTION: &str = "show bad bytes as U+FFFD";
