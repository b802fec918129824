//! A path as bytes that serialises to readable text: bytes that are not plain text are written as
//! `%xx`.

use std::fmt::Write as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EncodedPath(pub Vec<u8>);

impl Serialize for EncodedPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c == '%' || c.is_control() {
                    escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
                } else {
                    text.push(c);
                }
            }
            escape(chunk.invalid(), &mut text);
        }
        to.serialize_str(&text)
    }
}

fn escape(bytes: &[u8], into: &mut String) {
    for byte in bytes {
        let _ = write!(into, "%{byte:02x}");
    }
}

impl<'de> Deserialize<'de> for EncodedPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
        while let Some((first, tail)) = rest.split_first() {
            rest = tail;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let digits = tail.get(..2).and_then(|d| std::str::from_utf8(d).ok());
            let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
            bytes.push(byte.ok_or_else(|| serde::de::Error::custom("`%` without two digits"))?);
            rest = &tail[2..];
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            &b"a/b"[..],
            b"50%",
            b"\xff\xfe\n\x7f",
            "\u{85}é🦀".as_bytes(),
            b"",
        ] {
            let text = serde_json::to_string(&EncodedPath(name.to_vec())).expect("text");
            assert_eq!(
                serde_json::from_str::<EncodedPath>(&text).expect(&text).0,
                name
            );
        }
    }
}
