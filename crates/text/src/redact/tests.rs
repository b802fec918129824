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
fn every_shape_of_key_is_taken_out_and_what_announced_it_stays() {
    let redactor = Redactor::by_shape();
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
fn prose_and_code_without_secrets_stay_as_they_are() {
    let redactor = Redactor::knowing(["not-in-any-of-these"]);
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
    ] {
        assert!(
            matches!(redactor.redact(text), Cow::Borrowed(_)),
            "{text} became {}",
            redactor.redact(text)
        );
    }
}

#[test]
fn a_value_too_short_to_be_one_is_left_alone_and_counted() {
    let redactor = Redactor::knowing(["test", "", "  ", "long-enough\n"]);
    assert_eq!(redactor.left_alone(), 1);
    assert_eq!(redactor.redact("test long-enough"), "test [redacted]");
}

#[test]
fn a_name_that_announces_a_secret_condemns_the_string_beside_it() {
    let mut value = json!({"api_key": "abcdefghij", "X-Api-Key": "abcdefghij", "tokens_in": 7, "api_key_env": "SOME_VARIABLE"});
    Redactor::by_shape().redact_json(&mut value);
    assert_eq!(
        value,
        json!({"api_key": REDACTED, "X-Api-Key": REDACTED, "tokens_in": 7, "api_key_env": "SOME_VARIABLE"})
    );
}

#[test]
fn no_field_is_lost_when_two_names_become_one() {
    let mut value = json!({"k canary-canary": 1, "k canary-canary-": 2, "n": 1234567890});
    Redactor::knowing(["canary-canary", "canary-canary-", "1234567890"]).redact_json(&mut value);
    assert_eq!(
        value,
        json!({"k [redacted]": 1, "k [redacted]'": 2, "n": REDACTED})
    );
}

#[test]
fn its_own_debug_text_tells_nothing() {
    let shown = format!("{:?}", Redactor::knowing([CANARY]));
    assert!(!shown.contains("canary"), "{shown}");
}

/// Any JSON, with `leaf` as its strings and names.
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
    fn a_canary_in_any_position_of_any_json_never_survives(
        mut value in any_json(prop_oneof![with_canary(), "[a-z é\"\\\\]{0,8}".prop_map(String::from)].boxed())
    ) {
        Redactor::knowing([CANARY]).redact_json(&mut value);
        let mut strings = vec![value.to_string()];
        strings_of(&value, &mut strings);
        for text in strings {
            prop_assert!(!text.contains("canary"), "{text}");
            for form in forms(CANARY) {
                // The ends of base64 hold bits of the neighbours; the middle tells everything.
                let middle = &form[2..form.len() - 4];
                prop_assert!(!text.contains(middle), "{middle} in {text}");
            }
        }
    }

    #[test]
    fn any_value_is_found_in_any_text(secret in "[!-~]{8,40}", before in ".{0,30}", after in ".{0,30}") {
        let clean = Redactor::knowing([&secret]).redact(&format!("{before}{secret}{after}")).into_owned();
        prop_assert!(!clean.contains(&secret) || REDACTED.contains(&secret), "{clean}");
    }

    #[test]
    fn text_without_secrets_is_unchanged(text in "[a-z .,(){}\n;é0-9]{0,400}") {
        prop_assert!(matches!(Redactor::knowing([CANARY]).redact(&text), Cow::Borrowed(_)));
    }

    #[test]
    fn announced_keys_do_not_survive_among_their_announcements(
        noise in "(Bearer |API_KEY=|sk-|TOKEN: \"|://u:|@|\"|é| ){0,20}", key in "[a-z]{4}[0-9]{4}[a-z]{12}"
    ) {
        for lead in ["Bearer ", "X_API_KEY=", "sk-", "sk-ant-", "\"api_key\": \""] {
            let clean = Redactor::by_shape().redact(&format!("{noise} {lead}{key} {noise}")).into_owned();
            prop_assert!(!clean.contains(&key), "{clean}");
        }
    }
}

#[test]
fn a_long_text_full_of_beginnings_takes_no_longer_than_its_length() {
    // Quadratic behaviour would take most of a minute here; the limit is a safety net and no stopwatch.
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
        let _ = Redactor::knowing([CANARY]).redact(&text);
    }
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}
