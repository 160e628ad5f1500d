//! Limits the depth and the number of fields of a form, because its schema comes from a stranger.

/// What may still be read.
pub(super) struct Budget {
    depth: usize,
    fields: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            depth: MAX_DEPTH,
            fields: MAX_FIELDS,
        }
    }
}

impl Budget {
    /// Takes one field. `Some` says why there may be no more.
    pub(super) fn take(&mut self) -> Option<&'static str> {
        match self.fields.checked_sub(1) {
            Some(fields) => {
                self.fields = fields;
                None
            }
            None => Some("the form has too many fields"),
        }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.fields == 0
    }

    /// Reads what is one level deeper.
    pub(super) fn inside<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, &'static str>,
    ) -> Result<T, &'static str> {
        if self.depth == 0 {
            return Err("it is nested too deeply");
        }
        self.depth -= 1;
        let read = read(self);
        self.depth += 1;
        read
    }
}

/// How deep fields may be nested.
const MAX_DEPTH: usize = 6;

/// How many fields a form may have.
const MAX_FIELDS: usize = 300;
