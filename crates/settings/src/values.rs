//! How single values are written: each type here has the schema of a kind of value, and converts
//! to what the program uses.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

/// `#[serde(with = "As::<Seconds>")]`: the field is written as `Seconds`, and has its schema.
pub(crate) struct As<Written>(PhantomData<Written>);

impl<'de, Written: Deserialize<'de>> As<Written> {
    pub(crate) fn deserialize<D: Deserializer<'de>, T: From<Written>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        Written::deserialize(deserializer).map(T::from)
    }

    /// Used only by schemars, for the default in the schema.
    pub(crate) fn serialize<S: Serializer, T>(_: &T, serializer: S) -> Result<S::Ok, S::Error> {
        ().serialize(serializer)
    }
}

impl<Written: JsonSchema> JsonSchema for As<Written> {
    fn schema_name() -> Cow<'static, str> {
        Written::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}

/// Seconds, at most a year.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("format" = "seconds"))]
pub(crate) struct Seconds(#[schemars(range(min = 0.1, max = 31_536_000.0))] f64);

impl From<Seconds> for Duration {
    fn from(Seconds(seconds): Seconds) -> Self {
        Self::try_from_secs_f64(seconds).unwrap_or(Self::MAX)
    }
}

/// 0 means unlimited.
impl From<Seconds> for Option<Duration> {
    fn from(seconds: Seconds) -> Self {
        Some(seconds.into()).filter(|limit: &Duration| !limit.is_zero())
    }
}

/// An amount of USD.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("format" = "usd"))]
pub(crate) struct Usd(#[schemars(range(min = 0.0, max = 1e9))] f64);

/// 0 means unlimited.
impl From<Usd> for Option<f64> {
    fn from(Usd(usd): Usd) -> Self {
        (usd > 0.0).then_some(usd)
    }
}

/// An `http` or `https` address without credentials.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("format" = "address"))]
pub(crate) struct Address(String);

impl From<Address> for String {
    fn from(Address(url): Address) -> Self {
        url.trim_end_matches('/').to_owned()
    }
}

impl From<Address> for Option<String> {
    fn from(url: Address) -> Self {
        Some(url.into())
    }
}

/// An absolute path, or empty for none.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("format" = "path"))]
pub(crate) struct AbsolutePath(String);

impl From<AbsolutePath> for Option<String> {
    fn from(AbsolutePath(path): AbsolutePath) -> Self {
        Some(path).filter(|path| !path.is_empty())
    }
}

impl From<AbsolutePath> for Option<PathBuf> {
    fn from(path: AbsolutePath) -> Self {
        Option::<String>::from(path).map(PathBuf::from)
    }
}

/// The name of a variable, never its value; empty for none.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("format" = "variable"))]
pub(crate) struct VariableName(String);

impl From<VariableName> for Option<String> {
    fn from(VariableName(name): VariableName) -> Self {
        Some(name).filter(|name| !name.is_empty())
    }
}
