//! Notifications of a handler. Progress and log messages belong to calls, the rest to the session.

use ::rmcp::model::{NumberOrString, ServerNotification};
use outlast_engine::engine::Progress;
use outlast_wire::Raw;
use outlast_wire::envelope::Id;
use outlast_wire::log::Log;

use super::messages;
use super::running_handler::Shared;
use crate::server::RequestParts;

impl Shared {
    pub(super) fn handle_notification(&self, notification: ServerNotification) {
        match &notification {
            ServerNotification::ProgressNotification(progress) => {
                let progress = &progress.params;
                let call =
                    token(&progress.progress_token.0).and_then(|token| self.call_with(&token));
                if let Some(call) = call {
                    let progress = Progress {
                        done: progress.progress,
                        total: progress.total,
                        message: progress.message.as_deref().map(Into::into),
                    };
                    if RequestParts::progress_is_status(&call, true) {
                        call.progress_as_status(&progress);
                    }
                    call.progress(progress);
                }
            }
            ServerNotification::CancelledNotification(cancelled) => {
                let input_request = cancelled.params.request_id.as_ref();
                if let Some(input_request) =
                    input_request.and_then(|input_request| self.take_input_request(input_request))
                {
                    // The handler withdraws its input request.
                    input_request.abort();
                }
            }
            // The handler is a legacy server without tasks.
            ServerNotification::TaskStatusNotification(_)
            | ServerNotification::SubscriptionsAcknowledgedNotification(_) => {}
            ServerNotification::LoggingMessageNotification(_) => {
                let Some((method, params)) = messages::method_and_params(&notification) else {
                    return;
                };
                let log = params
                    .as_ref()
                    .and_then(|params| Log::read(params.borrow()));
                // The message does not name its call.
                match (log, self.call(None)) {
                    (Some(log), Ok(call)) => call.log(log),
                    _ => self.notify_client(&method, params.as_ref()),
                }
            }
            ServerNotification::ToolListChangedNotification(_) => {
                self.catalogue.expire();
                self.forward(&notification);
            }
            _ => self.forward(&notification),
        }
    }

    fn forward(&self, notification: &ServerNotification) {
        if let Some((method, params)) = messages::method_and_params(notification) {
            self.notify_client(&method, params.as_ref());
        }
    }

    fn notify_client(&self, method: &str, params: Option<&Raw>) {
        if let Some(client) = self.client.upgrade() {
            client.notify(method, params);
        }
    }
}

fn token(token: &NumberOrString) -> Option<Id> {
    let raw = match token {
        NumberOrString::Number(number) => Raw::encode(number),
        NumberOrString::String(text) => Raw::encode(&**text),
    };
    Id::read(raw.ok()?.borrow()).ok()
}
