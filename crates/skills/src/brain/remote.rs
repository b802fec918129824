//! Notes in a team's own service instead of the local folder: `POST /query` and `POST /write`.
//! Arguments and results are the same. Unsupported operations are refused, and nothing falls back
//! to local notes.

use serde_json::{Map, Value, json};

use super::{Answer, BrainQueryParams, BrainWriteParams};
use supervisor_engine::result::Status;
use supervisor_models::post_to_service;
use supervisor_text::words;

pub(super) async fn query(base: &str, params: &BrainQueryParams) -> Result<Answer, String> {
    let limit = params.limit()?;
    if params.query.trim().is_empty() {
        return Err(String::from("`query` has no word to look for"));
    }
    let mut body = json!({"query": params.query, "limit": limit});
    if let Some(kind) = params.kind {
        body["kind"] = json!(kind);
    }
    if !params.tags.is_empty() {
        body["tags"] = json!(params.tags);
    }
    let answer = post_to_service(base, "query", &body).await?;
    let found = ["hits", "results"]
        .iter()
        .find_map(|name| answer[*name].as_array())
        .or_else(|| answer.as_array());
    let found =
        found.ok_or("the notes service answered `/query` without a list `hits` or `results`")?;
    let mut hits: Vec<Value> = found.iter().take(limit).map(hit_json).collect();
    params.shorten(&mut hits);
    let message = match hits.len() {
        0 => String::from("no note has these words"),
        n => format!("{} found", words::count(n, "note")),
    };
    Ok((
        Status::Pass,
        message,
        String::new(),
        json!({"hits": hits, "source": "service"}),
    ))
}

pub(super) async fn write(base: &str, params: &BrainWriteParams) -> Result<Answer, String> {
    if params.delete {
        return Err(String::from(
            "the notes service takes no `delete`; remove the note there",
        ));
    }
    if params.content.trim().is_empty() {
        return Err(String::from(
            "content is required: the argument `content` is empty",
        ));
    }
    let mut body = Map::from_iter([
        ("content".to_owned(), json!(params.content)),
        ("kind".to_owned(), json!(params.kind)),
    ]);
    let texts = [
        ("title", &params.title),
        ("filename", &params.filename),
        ("session_id", &params.session_id),
    ];
    for (name, value) in texts {
        if let Some(value) = value
            .as_deref()
            .map(str::trim)
            .filter(|value| !value.is_empty())
        {
            // The service, too, searches only `.md` files.
            let is_bare = name == "filename" && !value.ends_with(".md");
            body.insert(
                name.to_owned(),
                json!(if is_bare {
                    format!("{value}.md")
                } else {
                    value.to_owned()
                }),
            );
        }
    }
    if !params.tags.is_empty() {
        body.insert("tags".to_owned(), json!(params.tags));
    }
    if !params.evidence.is_empty() {
        body.insert("evidence".to_owned(), json!(params.evidence));
    }
    let answer = post_to_service(base, "write", &Value::Object(body)).await?;
    let path = answer["path"]
        .as_str()
        .or_else(|| answer["filename"].as_str())
        .unwrap_or_default();
    let message = match path {
        "" => String::from("the notes service took the note"),
        path => format!(
            "the notes service took the note as `{}`",
            words::plain(path)
        ),
    };
    Ok((
        Status::Pass,
        message,
        String::new(),
        json!({"path": path, "source": "service"}),
    ))
}

/// Converts a hit. Text from the service is untrusted: it is cut and sanitised.
fn hit_json(found: &Value) -> Value {
    let text = |names: &[&str], max: usize| {
        let text = names
            .iter()
            .find_map(|name| found[*name].as_str())
            .unwrap_or_default();
        words::short(text, max)
    };
    let mut shown = json!({
        "path": text(&["path", "filename", "id"], 200),
        "title": text(&["title"], 100),
        "excerpt": text(&["excerpt", "snippet", "content", "text"], 160),
    });
    for name in ["score", "line", "kind", "stale", "unproven"] {
        if !found[name].is_null() {
            shown[name] = found[name].clone();
        }
    }
    shown
}
