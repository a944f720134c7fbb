//! The declaration of a tool's arguments: one table yields the JSON Schema, the validation and the
//! struct that the tool reads. It never converts between types: a string is no integer.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};

use crate::error::{Code, Result, ToolError, quoted};
use crate::escape::{object, to_json};

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

impl Shape {
    /// The JSON type, what is allowed in words, the default, and the rest of the schema in order.
    fn told(&self) -> (&'static str, String, Value, Vec<(&'static str, Value)>) {
        match *self {
            Self::Text(default) => ("string", "a string".into(), default.into(), Vec::new()),
            Self::Flag => ("boolean", "true or false".into(), false.into(), Vec::new()),
            Self::Integer { min, max, default } => {
                let (max, allowed) = match max {
                    u64::MAX => (None, format!("an integer of at least {min}")),
                    max => (Some(max), format!("an integer from {min} to {max}")),
                };
                let bounds = vec![("minimum", min.into()), ("maximum", max.into())];
                ("integer", allowed, default.into(), bounds)
            }
            Self::Word(words) => {
                let allowed = format!("one of {}", words.join(", "));
                ("string", allowed, words[0].into(), vec![("enum", words.into())])
            }
            Self::Texts { max } => {
                let items = vec![("items", json!({"type": "string"}))];
                ("array", format!("an array of 1 to {max} strings"), Value::Null, items)
            }
        }
    }
}

impl Parameter {
    pub(crate) fn schema(&self) -> Vec<u8> {
        let (kind, _, default, mut members) = self.shape.told();
        members.splice(..0, [("type", kind.into()), ("description", self.description.into())]);
        members.push(("default", default));
        object(members.into_iter().map(|(name, value)| (name, to_json(&value))))
    }

    /// The value after the check; where it is absent its default, or null.
    fn check(&self, given: Option<&Value>) -> Result<Value> {
        let refusal = |what: String| {
            let (_, allowed, ..) = self.shape.told();
            Err(ToolError::invalid(format!("{} is {what}; it must be {allowed}", self.name)))
        };
        let empty_is_absent = !self.required && matches!(self.shape, Shape::Text(None));
        let given = given.filter(|value| !(value.is_null() || empty_is_absent && **value == ""));
        let Some(value) = given else {
            return if self.required { refusal("missing".into()) } else { Ok(self.shape.told().2) };
        };
        let whole = value.as_number().and_then(integer);
        let fits = match self.shape {
            Shape::Text(_) => value.is_string(),
            Shape::Flag => value.is_boolean(),
            Shape::Integer { min, max, .. } => whole.is_some_and(|n| (min..=max).contains(&n)),
            Shape::Word(words) => words.iter().any(|word| value == word),
            Shape::Texts { max } => value.as_array().is_some_and(|list| {
                (1..=max).contains(&list.len()) && list.iter().all(Value::is_string)
            }),
        };
        match value {
            _ if fits => Ok(whole.map_or_else(|| value.clone(), Value::from)),
            Value::String(text) => refusal(format!("the string {}", quoted(text))),
            Value::Array(list) => refusal(format!("an array of {} values", list.len())),
            Value::Object(_) => refusal("an object".into()),
            other => refusal(other.to_string()),
        }
    }
}

/// JSON Schema's integer admits `10.0`; one beyond 64 bits counts as the largest there is.
fn integer(number: &Number) -> Option<u64> {
    let float = || number.as_f64().filter(|f| f.fract() == 0.0 && *f >= 0.0);
    number.as_u64().or_else(|| float().map(|float| float as u64))
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
