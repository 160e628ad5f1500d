//! A form elicitation on the terminal. The user fills in its fields line by line.

use indexmap::IndexMap;
use outlast::wire::{Raw, RawRef};

use super::UserReply;
use super::lines::Lines;
use crate::terminal::say;
use outlast_console::form::{Field, Form, Kind};

/// Lets the user fill in the form. A form with a single boolean field needs one key.
pub(super) async fn fill_in(schema: RawRef<'_>, lines: &Lines) -> UserReply {
    let form = Form::of_schema(schema);
    match &form.fields[..] {
        [] => match lines
            .choose("[y]es, [d]ecline, [c]ancel", &["y", "d", "c"])
            .await
        {
            Some("y") => accept(IndexMap::new()),
            Some("d") => UserReply::Decline,
            _ => UserReply::Cancel,
        },
        [field] if matches!(field.kind, Kind::Boolean) => yes_or_no(field, lines).await,
        fields => {
            let question = "[f]ill in the form, [d]ecline, [c]ancel";
            match lines.choose(question, &["f", "y", "d", "c"]).await {
                Some("f" | "y") => fill_fields(fields, lines).await,
                Some("d") => UserReply::Decline,
                _ => UserReply::Cancel,
            }
        }
    }
}

fn accept(content: IndexMap<String, Raw>) -> UserReply {
    let content = Raw::encode(&content).expect("values by their names are JSON");
    let text = format!(r#"{{"action":"accept","content":{}}}"#, content.as_str());
    UserReply::Respond(Raw::parse(text).expect("an object of JSON values is JSON"))
}

async fn yes_or_no(field: &Field, lines: &Lines) -> UserReply {
    let question = format!("  {}: [y]es, [n]o, [d]ecline, [c]ancel", field.title);
    let value = match lines.choose(&question, &["y", "n", "d", "c"]).await {
        Some("y") => true,
        Some("n") => false,
        Some("d") => return UserReply::Decline,
        _ => return UserReply::Cancel,
    };
    let value = Raw::encode(&value).expect("a boolean is JSON");
    accept(IndexMap::from_iter([(field.name.clone(), value)]))
}

async fn fill_fields(fields: &[Field], lines: &Lines) -> UserReply {
    let mut content = IndexMap::new();
    for field in fields {
        match fill_field(field, lines).await {
            Some(Some(value)) => {
                content.insert(field.name.clone(), value);
            }
            Some(None) => {}
            None => return UserReply::Cancel,
        }
    }
    accept(content)
}

/// Asks for one field until the text is valid. `Some(None)` leaves the field out; `None` means the
/// end of the input.
async fn fill_field(field: &Field, lines: &Lines) -> Option<Option<Raw>> {
    say!("  {}", field.describe());
    for (at, choice) in field.kind.choices().iter().enumerate() {
        let number = at + 1;
        let value = choice.text();
        if choice.title == value {
            say!("    {number}  {value}");
        } else {
            say!("    {number}  {} ({value})", choice.title);
        }
    }
    loop {
        match field.value(&lines.next().await?) {
            Ok(value) => return Some(value),
            Err(reason) => say!("  {reason}"),
        }
    }
}
