//! JSON with comments and trailing commas.

use jsonc_parser::ParseOptions;
use jsonc_parser::errors::ParseError;
use serde::de::DeserializeOwned;

/// Parses `text`. An error names the line.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ParseError> {
    jsonc_parser::parse_to_serde_value(text, &OPTIONS)
}

/// The extensions of JSON that are accepted.
pub(crate) const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;

    #[test]
    fn comments_and_trailing_commas_are_ignored_and_strings_stay() {
        let text = "{ /* one\ntwo */ \"a\": \"// \\\"no\\\" /* comment */ ,]\", // three\n \"b\": [1, 2, /* x */ ], \"c\": {}, }";
        let want = json!({ "a": "// \"no\" /* comment */ ,]", "b": [1, 2], "c": {} });
        assert_eq!(read::<Value>(text).unwrap(), want);
        for broken in ["{\"a", "/* never", "{\"\\", "{a:1}", "[1 2]"] {
            assert!(read::<Value>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn an_error_names_the_line_as_it_was() {
        let error = read::<Value>("{\n/* a\nb */\n// c\n?\n}").unwrap_err();
        assert_eq!(error.line_display(), 5);
    }
}
