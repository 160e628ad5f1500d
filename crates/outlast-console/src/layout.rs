//! The frame around each page: title, navigation, viewer.

use askama::Template;
use axum::response::Html as HtmlResponse;
use outlast::server::Scopes;

use crate::access::Viewer;
use crate::assets;
use crate::console::App;
use crate::error::ConsoleError;

/// A rendered page.
pub(crate) type Html = HtmlResponse<String>;

/// What the template `layout.html` needs.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The path under which the console is mounted, without a slash at its end.
    pub(crate) base: String,
    /// The name of the program that serves the console.
    pub(crate) product: String,
    /// Tells two consoles on one host apart.
    pub(crate) instance: String,
    /// The title of the page.
    pub(crate) title: String,
    /// Its place in the navigation, if it has one.
    pub(crate) section: Option<Section>,
    /// Who sees it; `None` before the sign-in.
    pub(crate) viewer: Option<LayoutViewer>,
    /// The CSRF token for changes.
    pub(crate) csrf: String,
}

/// Who sees a page.
#[derive(Clone, Debug)]
pub(crate) struct LayoutViewer {
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
}

/// The pages of the navigation, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Tasks,
    Requests,
    Tools,
    Connections,
    Traffic,
}

impl Section {
    /// The pages that exist.
    pub(crate) const ALL: [Self; 6] = [
        Self::Overview,
        Self::Tasks,
        Self::Requests,
        Self::Tools,
        Self::Connections,
        Self::Traffic,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Tasks => "Tasks",
            Self::Requests => "Requests",
            Self::Tools => "Tools",
            Self::Connections => "Connections",
            Self::Traffic => "Traffic",
        }
    }

    /// Its path below the base.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Tasks => "/tasks",
            Self::Requests => "/requests",
            Self::Tools => "/tools",
            Self::Connections => "/connections",
            Self::Traffic => "/traffic",
        }
    }

    /// Its symbol in `templates/icons.html`.
    pub(crate) fn icon(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Tasks => "tasks",
            Self::Requests => "requests",
            Self::Tools => "tools",
            Self::Connections => "connections",
            Self::Traffic => "traffic",
        }
    }

    /// The key that opens it after `g`.
    pub(crate) fn key(self) -> char {
        match self {
            Self::Overview => 'o',
            Self::Tasks => 't',
            Self::Requests => 'r',
            Self::Tools => 'l',
            Self::Connections => 'c',
            Self::Traffic => 'f',
        }
    }
}

impl Layout {
    /// The frame of a page for `viewer`.
    pub(crate) fn new(app: &App, viewer: &Viewer, section: Section) -> Self {
        let mut layout = Self::bare(app, section.label());
        layout.section = Some(section);
        layout.csrf = viewer.csrf().to_owned();
        layout.viewer = Some(LayoutViewer {
            name: viewer.name(),
            scopes: viewer.scopes(),
        });
        layout
    }

    /// The frame of a page without a viewer.
    pub(crate) fn bare(app: &App, title: &str) -> Self {
        Self {
            base: app.base().to_owned(),
            product: app.title().to_owned(),
            instance: app.access().instance().to_owned(),
            title: title.to_owned(),
            section: None,
            viewer: None,
            csrf: String::new(),
        }
    }

    /// The frame of an error page.
    pub(crate) fn of_error(app: &App, viewer: &Viewer) -> Self {
        let mut layout = Self::new(app, viewer, Section::Overview).titled("Error");
        layout.section = None;
        layout
    }

    /// Replaces the title, for a page below one of the navigation.
    pub(crate) fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The URL of an embedded file.
    pub(crate) fn asset(&self, name: &str) -> String {
        format!("{}/assets/{}/{name}", self.base, *assets::VERSION)
    }

    /// The pages of the navigation.
    pub(crate) fn sections(&self) -> &'static [Section] {
        &Section::ALL
    }

    /// Whether the page belongs to `section`.
    pub(crate) fn is_in(&self, section: &Section) -> bool {
        self.section == Some(*section)
    }
}

/// Renders a page.
pub(crate) fn render(page: &impl Template) -> Result<Html, ConsoleError> {
    page.render().map(HtmlResponse).map_err(|error| {
        ConsoleError::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            format!("cannot render the page: {error}"),
        )
    })
}
