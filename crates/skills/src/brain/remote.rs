//! Notes in a team's own service instead of the folder: `POST /query` and `POST /write`. The same arguments and the same
//! answer; what the service cannot do is refused, and nothing ever falls back to local notes in silence.

use serde_json::{Map, Value, json};

use super::{ANSWER, Answer, BrainQueryParams, BrainWriteParams, LIMIT, MOST};
use supervisor_engine::result::Status;
use supervisor_models::post_to_service;
use supervisor_text::words;

pub(super) async fn query(base: &str, asked: &BrainQueryParams) -> Result<Answer, String> {
    let limit = asked.limit.unwrap_or(LIMIT);
    if !(1..=MOST).contains(&limit) {
        return Err(format!("`limit` is {limit}; 1 to {MOST} hits can be shown"));
    }
    if asked.query.trim().is_empty() {
        return Err(String::from("`query` has no word to look for"));
    }
    let mut body = json!({"query": asked.query, "limit": limit});
    if let Some(kind) = asked.kind {
        body["kind"] = json!(kind);
    }
    if !asked.tags.is_empty() {
        body["tags"] = json!(asked.tags);
    }
    let answer = post_to_service(base, "query", &body).await?;
    let found = ["hits", "results"]
        .iter()
        .find_map(|name| answer[*name].as_array())
        .or_else(|| answer.as_array());
    let found =
        found.ok_or("the notes service answered `/query` without a list `hits` or `results`")?;
    let mut hits: Vec<Value> = found.iter().take(limit).map(hit).collect();
    while asked.limit.is_none() && hits.len() > 1 && json!(hits).to_string().len() > ANSWER - 400 {
        hits.pop();
    }
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

pub(super) async fn write(base: &str, asked: &BrainWriteParams) -> Result<Answer, String> {
    if asked.delete {
        return Err(String::from(
            "the notes service takes no `delete`; remove the note there",
        ));
    }
    if asked.content.trim().is_empty() {
        return Err(String::from(
            "content is required: the argument `content` is empty",
        ));
    }
    let mut body = Map::from_iter([
        ("content".to_owned(), json!(asked.content)),
        ("kind".to_owned(), json!(asked.kind)),
    ]);
    let texts = [
        ("title", &asked.title),
        ("filename", &asked.filename),
        ("session_id", &asked.session_id),
    ];
    for (name, value) in texts {
        if let Some(value) = value
            .as_deref()
            .map(str::trim)
            .filter(|value| !value.is_empty())
        {
            // Search reads only `.md`, there as here.
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
    if !asked.tags.is_empty() {
        body.insert("tags".to_owned(), json!(asked.tags));
    }
    if !asked.evidence.is_empty() {
        body.insert("evidence".to_owned(), json!(asked.evidence));
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

/// Text of a service comes from outside: cut, and safe to show.
fn hit(found: &Value) -> Value {
    let text = |names: &[&str], most: usize| {
        let text = names
            .iter()
            .find_map(|name| found[*name].as_str())
            .unwrap_or_default();
        words::cut_end(&words::plain(text), most).into_owned()
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
