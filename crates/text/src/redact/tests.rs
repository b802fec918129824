use proptest::prelude::*;
use serde_json::json;

use super::*;

const CANARY: &str = "canary/7f+3\"k=e y\\9";

fn forms(secret: &str) -> Vec<String> {
    use base64::Engine as _;
    let standard = base64::engine::general_purpose::STANDARD;
    let url_safe = base64::engine::general_purpose::URL_SAFE;
    let form: String = secret
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() {
                (b as char).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect();
    vec![
        secret.to_owned(),
        standard.encode(secret),
        url_safe.encode(secret),
        standard.encode(format!("u:{secret}")),
        standard.encode(format!("user:{secret}\n")),
        form.to_lowercase(),
        form,
    ]
}

#[test]
fn known_key_shapes_are_redacted() {
    let redactor = Redactor::patterns_only();
    for (text, clean) in [
        ("key sk-ant-api03-AbC_dEf-123456 end", "key [redacted] end"),
        ("sk-proj-aB3dE5gH7jK9mN1pQ3", "[redacted]"),
        (
            "clone with ghp_16C7e42F292c6912E7710c838347Ae178B4a!",
            "clone with [redacted]!",
        ),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnop", "[redacted]"),
        ("aws AKIAIOSFODNN7EXAMPLE.", "aws [redacted]."),
        (
            "Authorization: Bearer abc123def456",
            "Authorization: Bearer [redacted]",
        ),
        (
            "authorization: basic dXNlcjpwYXNzd29yZA==",
            "authorization: basic [redacted]",
        ),
        (
            "{\\\"Authorization\\\": \\\"Bearer abcdefghij\\\"}",
            "{\\\"Authorization\\\": \\\"Bearer [redacted]\\\"}",
        ),
        ("-H 'x-api-key: abcdefghij'", "-H 'x-api-key: [redacted]'"),
        (
            "LITELLM_API_KEY=hunter2hunter2 make",
            "LITELLM_API_KEY=[redacted] make",
        ),
        (
            r#"{"OPENAI_API_KEY": "abcdefgh-ijkl"}"#,
            r#"{"OPENAI_API_KEY": "[redacted]"}"#,
        ),
        (
            r#"{\"api_key\":\"abcdefgh-ijkl\"}"#,
            r#"{\"api_key\":\"[redacted]\"}"#,
        ),
        ("NPM_TOKEN=abcdefghij&x=1", "NPM_TOKEN=[redacted]&x=1"),
        (
            "postgres://me:s3cret-pw@db/x",
            "postgres://me:[redacted]@db/x",
        ),
        ("http://me:correcthorse@db", "http://me:[redacted]@db"),
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nxyz=\n-----END RSA PRIVATE KEY-----\nb",
            "a\n[redacted]\nb",
        ),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNza\nAAAA",
            "[redacted]",
        ),
        ("bearer API_KEY=abcdefgh", "bearer API_KEY=[redacted]"),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
            "[redacted]",
        ),
    ] {
        assert_eq!(redactor.redact(text), clean, "{text}");
        assert_eq!(
            redactor.redact(clean),
            clean,
            "a second pass changes nothing"
        );
    }
}

#[test]
fn clean_prose_and_code_are_unchanged() {
    let redactor = Redactor::with_values(["not-in-any-of-these"]);
    for text in [
        "Bearer authentication is described in the task-oriented-documentation-of-the-thing",
        "a basic python3.11 environment, a bearer of news",
        ".sk-fading-circle { color: red }",
        "api_key_env = \"LITELLM_API_KEY\"",
        "export LITELLM_API_KEY=$LITELLM_API_KEY OPENAI_API_KEY=${KEY:-none}",
        "const MAX_TOKEN: usize = 4096; let token = next_token(stream);",
        "http://localhost:4000/v1 and http://[::1]:8080/a@b and ssh://git@example.com:22/x",
        "test result: ok. 12 passed; 0 failed; finished in 0.01s",
        "über naïve — 日本語 🦀 \u{0}",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "tokens_in=123456789 risk-assessment-2024-final-version",
        "http://user:pass@host/ ftp://foo:bar@ftp.server.org/ amqp://guest:guest@localhost:5672",
        "('http://user:p4ss-w0rd@example.org/', True), 'http://u:p4ss-w0rd@shop.example:80'",
        "https://me:12345678@host and ftp://me:xxxx-xxxx-0000@host",
    ] {
        assert!(
            matches!(redactor.redact(text), Cow::Borrowed(_)),
            "{text} became {}",
            redactor.redact(text)
        );
    }
}

#[test]
fn short_values_are_ignored_and_counted() {
    let redactor = Redactor::with_values(["test", "", "  ", "long-enough\n"]);
    assert_eq!(redactor.ignored_values(), 1);
    assert_eq!(redactor.redact("test long-enough"), "test [redacted]");
}

#[test]
fn value_of_secret_name_is_redacted() {
    let mut value = json!({"api_key": "abcdefghij", "X-Api-Key": "abcdefghij", "tokens_in": 7, "api_key_env": "SOME_VARIABLE"});
    Redactor::patterns_only().redact_json(&mut value);
    assert_eq!(
        value,
        json!({"api_key": REDACTED, "X-Api-Key": REDACTED, "tokens_in": 7, "api_key_env": "SOME_VARIABLE"})
    );
}

#[test]
fn equal_redacted_names_lose_no_field() {
    let mut value = json!({"k canary-canary": 1, "k canary-canary-": 2, "n": 1234567890});
    Redactor::with_values(["canary-canary", "canary-canary-", "1234567890"])
        .redact_json(&mut value);
    assert_eq!(
        value,
        json!({"k [redacted]": 1, "k [redacted]'": 2, "n": REDACTED})
    );
}

#[test]
fn debug_output_hides_secrets() {
    let shown = format!("{:?}", Redactor::with_values([CANARY]));
    assert!(!shown.contains("canary"), "{shown}");
}

/// Any JSON with `leaf` as its strings and keys.
fn any_json(leaf: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = Value> {
    let name = leaf.clone();
    let simple = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        leaf.prop_map(Value::from),
    ];
    simple.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn strings_of(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings_of(item, into)),
        Value::Object(fields) => {
            for (name, value) in fields {
                into.push(name.clone());
                strings_of(value, into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn with_canary() -> impl Strategy<Value = String> + Clone {
    (".{0,12}", prop::sample::select(forms(CANARY)), ".{0,12}")
        .prop_map(|(a, form, b)| format!("{a}{form}{b}"))
}

proptest! {
    #[test]
    fn secret_never_survives_in_json(
        mut value in any_json(prop_oneof![with_canary(), "[a-z é\"\\\\]{0,8}".prop_map(String::from)].boxed())
    ) {
        Redactor::with_values([CANARY]).redact_json(&mut value);
        let mut strings = vec![value.to_string()];
        strings_of(&value, &mut strings);
        for text in strings {
            prop_assert!(!text.contains("canary"), "{text}");
            for form in forms(CANARY) {
                // The ends of base64 text also contain bits of the neighbours, so only the middle
                // is compared.
                let middle = &form[2..form.len() - 4];
                prop_assert!(!text.contains(middle), "{middle} in {text}");
            }
        }
    }

    #[test]
    fn known_value_is_found_in_any_text(secret in "[!-~]{8,40}", before in ".{0,30}", after in ".{0,30}") {
        let clean = Redactor::with_values([&secret]).redact(&format!("{before}{secret}{after}")).into_owned();
        prop_assert!(!clean.contains(&secret) || REDACTED.contains(&secret), "{clean}");
    }

    #[test]
    fn text_without_secrets_is_unchanged(text in "[a-z .,(){}\n;é0-9]{0,400}") {
        prop_assert!(matches!(Redactor::with_values([CANARY]).redact(&text), Cow::Borrowed(_)));
    }

    #[test]
    fn keys_after_their_names_are_redacted(
        noise in "(Bearer |API_KEY=|sk-|TOKEN: \"|://u:|@|\"|é| ){0,20}", key in "[a-z]{4}[0-9]{4}[a-z]{12}"
    ) {
        for lead in ["Bearer ", "X_API_KEY=", "sk-", "sk-ant-", "\"api_key\": \""] {
            let clean = Redactor::patterns_only().redact(&format!("{noise} {lead}{key} {noise}")).into_owned();
            prop_assert!(!clean.contains(&key), "{clean}");
        }
    }
}

#[test]
fn redaction_is_linear_in_text_length() {
    // Quadratic behaviour would take most of a minute; the limit is only a safety net.
    let begun = std::time::Instant::now();
    for piece in [
        "-----BEGIN PRIVATE KEY-----",
        "bearer aaaaaaaaaaa ",
        "://a:",
        "API_KEY='",
        "eyJ",
        "sk-",
    ] {
        let text = piece.repeat((1 << 18) / piece.len());
        let _ = Redactor::with_values([CANARY]).redact(&text);
    }
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn only_certain_secrets_are_reported_by_line() {
    let redactor = Redactor::with_values(["known-value-17"]);
    for (line, is_certain) in [
        ("KEY = 'sk-ant-api03-AbC_dEf-123456'", true),
        ("url = 'postgres://me:s3cret-pw@db/x'", true),
        ("PASSWORD = 'x7Kq92mLp0'", true),
        ("x = 'known-value-17'", true),
        ("PASSWORD = 'swordfish'", false),
        ("SECRET_KEY = 'not-a-secret-key'", false),
        ("url = 'http://user:pass@example.org'", false),
        ("url = 'http://user:correcthorse@shop.org'", false),
    ] {
        let found = redactor.redact_lines(line).1;
        assert_eq!(!found.is_empty(), is_certain, "{line}");
    }
}
