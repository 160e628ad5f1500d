//! Translates errors whose code has another meaning in the era of the caller.

use outlast_engine::{ErrorCode, Outcome};
use outlast_wire::{Raw, codes, object, version};

use super::connection::UpstreamConnection;
use crate::server::ClientHandle;

/// The outcome with an error code of the caller's era.
pub(super) fn translate(
    outcome: Outcome,
    connection: &UpstreamConnection,
    client: &ClientHandle,
) -> Outcome {
    let eras = (
        connection.server().is_modern(),
        client.version() == version::MODERN,
    );
    match outcome {
        Outcome::Error(error, code, message) => {
            let (error, code) = translated(error, code.0, eras);
            Outcome::Error(error, ErrorCode(code), message)
        }
        other => other,
    }
}

/// An error for the caller, and its code. `eras` says whether the server, and whether the client,
/// is modern.
fn translated(error: Raw, code: i64, eras: (bool, bool)) -> (Raw, i64) {
    match eras {
        // A legacy client declares its capabilities for the session, not for a request.
        (true, false) if code == codes::MISSING_CAPABILITY => {
            let plain = codes::INVALID_PARAMS.to_string();
            let plain = Raw::parse(plain).expect("a number is JSON");
            let translation = object::set(error.borrow(), &["code"], plain.borrow());
            (translation.unwrap_or(error), codes::INVALID_PARAMS)
        }
        // These codes are reserved in the modern era. −32042 is translated by url elicitation.
        (false, true)
            if RESERVED_CODES.contains(&code) && code != codes::URL_ELICITATION_REQUIRED =>
        {
            let message = object::find(error.borrow(), &["message"]);
            let message = message.and_then(|message| message.text());
            let message = message.unwrap_or_default().into_owned();
            let translation = codes::internal(message).with_data(error);
            (translation.to_raw(), codes::INTERNAL_ERROR)
        }
        _ => (error, code),
    }
}

/// The codes that the modern era reserves.
const RESERVED_CODES: std::ops::RangeInclusive<i64> = -32099..=-32020;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_with_another_meaning_for_the_caller_is_translated() {
        let error = |code: i64| {
            let text = format!(r#"{{"code":{code},"message":"m","data":{{"k":1}}}}"#);
            (Raw::parse(text).unwrap(), code)
        };
        let translation = |code, eras| {
            let (raw, number) = error(code);
            let (raw, number) = translated(raw, number, eras);
            (raw.as_str().to_owned(), number)
        };
        let same =
            |code, eras| assert_eq!(translation(code, eras), translation(code, (true, true)));
        assert_eq!(
            translation(-32021, (true, false)),
            (
                r#"{"code":-32602,"message":"m","data":{"k":1}}"#.into(),
                -32602
            )
        );
        assert_eq!(
            translation(-32050, (false, true)),
            (
                r#"{"code":-32603,"message":"m","data":{"code":-32050,"message":"m","data":{"k":1}}}"#
                    .into(),
                -32603
            )
        );
        for code in [-32042, -32019, -32000, -31999, -32602] {
            same(code, (false, true));
        }
        for code in [-32021, -32050] {
            same(code, (false, false));
        }
    }
}
