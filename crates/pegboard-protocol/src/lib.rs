//! The words of the Model Context Protocol (MCP), each written down once.
//!
//! | looking for | module |
//! | --- | --- |
//! | protocol versions, and the two eras | [`version`] |
//! | names of requests and notifications | [`method`] |
//! | error codes of JSON-RPC, of MCP and of Pegboard | [`code`] |
//! | names of HTTP headers, and the encoding of their values | [`header`] |
//! | keys of `_meta` | [`meta`] |
//! | names of capabilities and extensions | [`capability`] |
//! | ids of requests | [`id`] |
//! | the JSON-RPC envelope and its error | [`rpc`] |
//! | JSON Web Signatures in compact form | [`jws`] |
//!
//! Nothing here sends, signs or decides anything: what a word means is written where it is carried out.
//!
//! ```
//! use pegboard_protocol::{RpcError, Version, code, method};
//!
//! assert_eq!(Version::parse("2025-06-18"), Some(Version::V2025_06_18));
//! assert!(Version::LATEST_MODERN.is_modern());
//!
//! let error = RpcError::new(code::INVALID_PARAMS, format!("`{}` needs a name", method::TOOLS_CALL));
//! assert_eq!(error.code, -32602);
//! ```

pub mod capability;
pub mod code;
pub mod header;
pub mod id;
pub mod jws;
pub mod meta;
pub mod method;
pub mod rpc;
pub mod version;

pub use id::RequestId;
pub use rpc::RpcError;
pub use version::{Era, Version};
