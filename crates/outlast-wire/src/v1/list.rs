//! Pages of `tasks/list`.

use crate::json::write::ObjectWriter;
use crate::neutral::TaskView;
use crate::object::{self, pick};
use crate::peer::{NotATask, PeerTask};
use crate::raw::{Raw, RawRef};
use crate::v1::task::{read_task, write_task};

/// A page: tasks, and the cursor of the next page if there is one (V1-LIST-2).
pub fn list_result<'a>(
    tasks: impl IntoIterator<Item = TaskView<'a>>,
    next_cursor: Option<&str>,
) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.nested("tasks", |out| {
            out.push('[');
            for (at, view) in tasks.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_task(out, &view);
            }
            out.push(']');
        });
        if let Some(cursor) = next_cursor {
            fields.text("nextCursor", cursor);
        }
        fields.end();
    })
}

/// A page as a peer sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPage {
    /// Its tasks.
    pub tasks: Vec<PeerTask>,
    /// The cursor of the next page. Only its absence ends the list.
    pub next_cursor: Option<String>,
}

/// Reads a page. An invalid task makes the page invalid.
pub fn read_list(result: RawRef<'_>) -> Result<TaskPage, NotATask> {
    let [tasks, next] = pick(result, ["tasks", "nextCursor"]).map_err(|_| NotATask::Shape)?;
    let tasks = tasks.and_then(object::elements).ok_or(NotATask::Shape)?;
    Ok(TaskPage {
        tasks: tasks.into_iter().map(read_task).collect::<Result<_, _>>()?,
        next_cursor: next.and_then(RawRef::text).map(Into::into),
    })
}
