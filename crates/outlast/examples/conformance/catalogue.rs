//! Prompts and resources.

use outlast::content;
use outlast::prompts::{Prompt, Prompts, Requirement, user};
use outlast::resources::{Contents, Resource, Resources, Template};
use serde_json::json;

use crate::PIXEL;

pub(crate) fn prompts() -> Prompts {
    Prompts::new()
        .with(Prompt::new(
            "test_simple_prompt",
            "A prompt without arguments",
            |_| async {
                Ok(vec![user(content::text_block(
                    "This is a simple prompt for testing.",
                ))])
            },
        ))
        .with(
            Prompt::new(
                "test_prompt_with_arguments",
                "A prompt with arguments",
                |args| async move {
                    let (one, two) = (args.text("arg1")?, args.text("arg2")?);
                    let text = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
                    Ok(vec![user(content::text_block(text))])
                },
            )
            .argument("arg1", "First test argument", Requirement::Required)
            .argument("arg2", "Second test argument", Requirement::Required)
            .complete("arg1", |input| async move {
                let words = ["paris", "park", "party"].into_iter();
                words
                    .filter(|word| word.starts_with(&input.text))
                    .map(Into::into)
                    .collect()
            }),
        )
        .with(
            Prompt::new(
                "test_prompt_with_embedded_resource",
                "A prompt with a resource in it",
                |args| async move {
                    let contents = Contents::text("Embedded resource content for testing.");
                    let contents = contents.mime("text/plain");
                    Ok(vec![
                        user(content::resource_block(
                            args.text("resourceUri")?,
                            &contents,
                        )),
                        user(content::text_block(
                            "Please process the embedded resource above.",
                        )),
                    ])
                },
            )
            .argument(
                "resourceUri",
                "URI of the resource to embed",
                Requirement::Required,
            ),
        )
        .with(Prompt::new(
            "test_prompt_with_image",
            "A prompt with a picture in it",
            |_| async {
                Ok(vec![
                    user(content::image_block("image/png", PIXEL)),
                    user(content::text_block("Please analyze the image above.")),
                ])
            },
        ))
}

pub(crate) fn resources() -> Resources {
    let text = Resource::new("test://static-text", "Static text", || async {
        Ok(Contents::text(
            "This is the content of the static text resource.",
        ))
    });
    let binary = Resource::new("test://static-binary", "Static binary", || async {
        Ok(Contents::bytes(PIXEL))
    });
    let watched = Resource::new("test://watched-resource", "Watched resource", || async {
        Ok(Contents::text("Nothing has changed yet."))
    });
    let data = Template::new(
        "test://template/{id}/data",
        "Data by id",
        |mut found| async move {
            let id = found.remove("id").unwrap_or_default();
            let data = format!("Data for ID: {id}");
            let data = json!({ "id": id, "templateTest": true, "data": data });
            Ok(Contents::text(data.to_string()))
        },
    );
    Resources::new()
        .with(text.description("A text that stays").mime("text/plain"))
        .with(binary.description("A picture that stays").mime("image/png"))
        .with(
            watched
                .description("A text to subscribe to")
                .mime("text/plain"),
        )
        .with_template(
            data.description("What an id stands for")
                .mime("application/json"),
        )
}
