//! A macro that writes the `with_…` methods of option types.

/// Writes a `with_…` method for each option. `set` takes the value, `text` anything that becomes
/// the text, `maybe` a value or an `Option`, and `some` and `some_text` the value inside an
/// `Option`.
#[doc(hidden)]
#[macro_export]
macro_rules! option_setters {
    ($type:ident: $($kind:ident $setter:ident($field:ident: $value:ty);)*) => {
        impl $type {
            $($crate::option_setters!(@$kind $type, $setter, $field, $value);)*
        }
    };
    (@set $type:ident, $setter:ident, $field:ident, $value:ty) => {
        $crate::option_setters!(@method $type, $setter, $field, $value, $field);
    };
    (@text $type:ident, $setter:ident, $field:ident, $value:ty) => {
        $crate::option_setters!(@method $type, $setter, $field, impl Into<$value>, $field.into());
    };
    (@maybe $type:ident, $setter:ident, $field:ident, $value:ty) => {
        $crate::option_setters!(
            @method $type, $setter, $field, impl Into<Option<$value>>, $field.into()
        );
    };
    (@some $type:ident, $setter:ident, $field:ident, $value:ty) => {
        $crate::option_setters!(@method $type, $setter, $field, $value, Some($field));
    };
    (@some_text $type:ident, $setter:ident, $field:ident, $value:ty) => {
        $crate::option_setters!(
            @method $type, $setter, $field, impl Into<$value>, Some($field.into())
        );
    };
    (@method $type:ident, $setter:ident, $field:ident, $value:ty, $stored:expr) => {
        #[doc = concat!("Sets [`", stringify!($type), "::", stringify!($field), "`].")]
        #[must_use]
        pub fn $setter(mut self, $field: $value) -> Self {
            self.$field = $stored;
            self
        }
    };
}
