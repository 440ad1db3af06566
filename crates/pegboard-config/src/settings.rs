//! [`settings!`] declares settings: each one's key, type, default and description, once.
//!
//! A section is a table in a config file. It has a module with one typed key per setting. Where its settings resolve to a struct, the struct, its
//! `Default` and the function that reads a table into it come from the same declaration.

/// Declares the settings of a section, or of a part of one.
///
/// ```text
/// settings! {
///     /// When a circuit breaker opens and closes.            the struct that the settings resolve to
///     #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
///     #[serde(default)]
///     pub struct BreakerRule in breaker = "breaker" {           the module of its keys, and the name of the section
///         /// How long the breaker stays open.                  the description: of the Rust field, the schema, the reference, `explain`
///         open: Duration as "duration_text" = limit(30).aka(&["open_time"]);
///         /// Which tools it is for.                             a table, and the type of the field that `resolve` makes of it
///         tools: Nested<tool::In> => Tools = nested(Kind::Table(&tool::SECTION));
///     }
///     keys {                                                    settings that are no field of the struct
///         /// Whether the circuit breaker is used.
///         enabled: bool = flag(true);
///     }
///     fields {                                                  fields of the struct that are no settings, with their defaults
///         /// When it was last open.
///         last: Option<Instant> = None, from enabled;           a field that is resolved from the setting `enabled`
///     }
/// }
/// ```
///
/// `needs { file: PathBuf; }` before `fields` declares fields without a default; the struct then has `with(file)` instead of `Default`, and
/// `[default = "path"]` after a type names serde's default where it is not that of the type.
///
/// `in limits of server` declares a part of the section `server` instead. Without a struct, `breaker = "breaker" { … }` declares keys only;
/// `short_for oauth { issuer … }` after them adds settings that are short for those of the section `oauth`.
macro_rules! settings {
    // A struct, and a section of its own.
    (
        $(#[$meta:meta])*
        $vis:vis struct $type:ident in $module:ident = $name:literal { $($fields:tt)* }
        $( keys { $($keys:tt)* } )?
        $( needs { $($needs:tt)* } )?
        $( fields { $($others:tt)* } )?
    ) => {
        $crate::settings::settings! { $module = $name { $($fields)* $( $($keys)* )? } }
        $crate::settings::settings! { @struct [$(#[$meta])* $vis struct $type] $module { $($fields)* } $({ $($needs)* })? { $( $($others)* )? } }
    };
    // A struct, and a part of the section `$section`.
    (
        $(#[$meta:meta])*
        $vis:vis struct $type:ident in $module:ident of $section:ident { $($fields:tt)* }
        $( keys { $($keys:tt)* } )?
        $( needs { $($needs:tt)* } )?
        $( fields { $($others:tt)* } )?
    ) => {
        $crate::settings::settings! { $module of $section { $($fields)* $( $($keys)* )? } }
        $crate::settings::settings! { @tune $section $type $module { $($fields)* } { $( $($others)* )? } }
        $crate::settings::settings! { @struct [$(#[$meta])* $vis struct $type] $module { $($fields)* } $({ $($needs)* })? { $( $($others)* )? } }
    };
    // A section.
    ( $module:ident = $name:literal { $($keys:tt)* } $( short_for $long:ident { $($short:ident)* } )? ) => {
        pub(crate) mod $module {
            use super::*;

            /// Marks keys and values of this section.
            #[derive(Debug, Clone, Copy)]
            pub(crate) enum In {}

            $crate::settings::settings! { @keys $($keys)* }

            pub(crate) static SECTION: $crate::field::Section = $crate::field::Section {
                name: $name,
                parts: &[FIELDS $( , &[ $( &$long::$short.field.short_for(concat!("Short for `", stringify!($long), ".", stringify!($short), "`.")), )* ] )?],
            };
        }
    };
    // A part of a section.
    ( $module:ident of $section:ident { $($keys:tt)* } ) => {
        pub(crate) mod $module {
            use super::*;
            pub(crate) use $crate::fields::$section::In;

            $crate::settings::settings! { @keys $($keys)* }
        }
    };
    // A setting with `=>` is a field of another type, which `resolve` sets.
    ( @type $of:ty ) => { $of };
    ( @type $of:ty => $to:ty ) => { $to };
    ( @default $key:expr ) => { $key.default() };
    ( @default $key:expr => $to:ty ) => { <$to>::default() };
    ( @overlay $table:ident, $key:expr, $before:expr ) => { $table.set(&$key).unwrap_or($before) };
    ( @overlay $table:ident, $key:expr, $before:expr => $to:ty ) => { $before };
    // The program compares the settings of a board.
    ( @tune top $($rest:tt)* ) => {};
    (
        @tune server $type:ident $module:ident
        { $( $(#[doc = $doc:literal])+ $field:ident: $of:ty $(=> $to:ty)? $(as $with:literal)? $([$($attribute:tt)+])? = $value:expr; )* }
        { $( $(#[doc = $other_doc:literal])+ $other:ident: $other_of:ty $([$($other_attribute:tt)+])? = $other_value:expr $(, from $key:ident)?; )* }
    ) => {
        impl $type {
            /// Takes the settings of `new` that apply to a running server at once.
            pub(crate) fn tune(&mut self, new: &Self) {
                $( if $module::$field.live { self.$field.clone_from(&new.$field); } )*
                $( $( if $module::$key.live { self.$other.clone_from(&new.$other); } )? )*
            }
        }
    };
    ( @keys $( $(#[doc = $doc:literal])+ $key:ident: $type:ty $(=> $to:ty)? $(as $with:literal)? $([$($attribute:tt)+])? = $value:expr; )* ) => {
        $(
            #[expect(non_upper_case_globals, reason = "a key has the name of its setting")]
            pub(crate) static $key: $crate::key::Key<In, $type> = $value.describe(stringify!($key), concat!($($doc),+));
        )*

        /// The fields of these keys.
        pub(crate) static FIELDS: &[&$crate::field::Field] = &[ $( &$key.field, )* ];
    };
    (
        @struct [$(#[$meta:meta])* $vis:vis struct $type:ident] $module:ident
        { $( $(#[doc = $doc:literal])+ $field:ident: $of:ty $(=> $to:ty)? $(as $with:literal)? = $value:expr; )* }
        { $( $(#[doc = $other_doc:literal])+ $other:ident: $other_of:ty $(as $other_with:literal)? = $other_value:expr $(, from $key:ident)?; )* }
    ) => {
        $(#[$meta])*
        $vis struct $type {
            $(
                $(#[doc = $doc])+
                $(#[serde(with = $with)])?
                pub $field: $crate::settings::settings!(@type $of $(=> $to)?),
            )*
            $(
                $(#[doc = $other_doc])+
                $(#[serde(with = $other_with)])?
                pub $other: $other_of,
            )*
        }

        impl Default for $type {
            fn default() -> Self {
                Self {
                    $( $field: $crate::settings::settings!(@default $module::$field $(=> $to)?), )*
                    $( $other: $other_value, )*
                }
            }
        }

        impl $type {
            /// Overrides these settings by those that a table sets.
            pub(crate) fn overlay(self, table: $crate::key::Table<'_, $module::In>) -> Self {
                Self {
                    $( $field: $crate::settings::settings!(@overlay table, $module::$field, self.$field $(=> $to)?), )*
                    $( $other: self.$other, )*
                }
            }
        }
    };
    (
        @struct [$(#[$meta:meta])* $vis:vis struct $type:ident] $module:ident
        { $( $(#[doc = $doc:literal])+ $field:ident: $of:ty $([default = $default:literal])? = $value:expr; )* }
        { $( $(#[doc = $need_doc:literal])+ $need:ident: $need_of:ty; )+ }
        { $( $(#[doc = $other_doc:literal])+ $other:ident: $other_of:ty $([$($attribute:tt)+])? = $other_value:expr; )* }
    ) => {
        $(#[$meta])*
        $vis struct $type {
            $(
                $(#[doc = $need_doc])+
                pub $need: $need_of,
            )+
            $(
                $(#[doc = $doc])+
                #[serde(default $( = $default )?)]
                pub $field: $of,
            )*
            $(
                $(#[doc = $other_doc])+
                #[serde(default $( , $($attribute)+ )?)]
                pub $other: $other_of,
            )*
        }

        impl $type {
            /// Default settings besides these values.
            pub(crate) fn with($( $need: $need_of ),+) -> Self {
                Self {
                    $( $need, )+
                    $( $field: $module::$field.default(), )*
                    $( $other: $other_value, )*
                }
            }

            /// Overrides these settings by those that a table sets.
            pub(crate) fn overlay(self, table: $crate::key::Table<'_, $module::In>) -> Self {
                Self {
                    $( $need: self.$need, )+
                    $( $field: table.set(&$module::$field).unwrap_or(self.$field), )*
                    $( $other: self.$other, )*
                }
            }
        }
    };
}

pub(super) use settings;
