//! W3C Trace Context and Baggage: what a request carries of its trace.

use std::{
    cell::Cell,
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

/// The longest `tracestate` and `baggage` that are passed on, in bytes. The standards demand that 512 and 8192 bytes are.
const MAX_STATE: usize = 512;
const MAX_BAGGAGE: usize = 8192;

/// The bit of the flags that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// The id of a trace. Not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId([u8; 16]);

/// The id of a span. Not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// A random id.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random().to_be_bytes());
        bytes[8..].copy_from_slice(&random().to_be_bytes());
        Self(bytes)
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The last 63 bits, by which a sampler decides.
    pub fn low_bits(self) -> u64 {
        let mut low = [0; 8];
        low.copy_from_slice(&self.0[8..]);
        u64::from_be_bytes(low) >> 1
    }
}

impl SpanId {
    /// A random id.
    pub fn random() -> Self {
        Self(random().to_be_bytes())
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0
    }
}

/// Random bits, never all zero: SplitMix64 from a start that each thread gets from the system. Ids are no secrets.
fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish());
    }
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) | 1 << 40
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceId({self})")
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpanId({self})")
    }
}

/// A span, as another process or a child span refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub span: SpanId,
    /// The flags of `traceparent`.
    pub flags: u8,
    /// The `tracestate`; `None` if it is empty.
    pub state: Option<Arc<str>>,
}

impl TraceContext {
    /// The first span of a new trace, which is sampled.
    pub fn root() -> Self {
        Self::root_of(TraceId::random())
    }

    /// The first span of a trace, which is sampled.
    pub fn root_of(trace: TraceId) -> Self {
        Self {
            trace,
            span: SpanId::random(),
            flags: SAMPLED,
            state: None,
        }
    }

    /// A new span below this one, which is sampled.
    pub fn child(&self) -> Self {
        Self {
            trace: self.trace,
            span: SpanId::random(),
            flags: self.flags | SAMPLED,
            state: self.state.clone(),
        }
    }

    /// Parses a `traceparent`. `None` for one that the standard tells to ignore.
    ///
    /// ```
    /// # use pegboard_base::telemetry::TraceContext;
    /// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let context = TraceContext::parse(text).unwrap();
    /// assert!(context.is_sampled());
    /// assert_eq!(context.traceparent(), text);
    /// assert_eq!(TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"), None);
    /// ```
    pub fn parse(traceparent: &str) -> Option<Self> {
        let text = traceparent.trim_matches([' ', '\t']).as_bytes();
        let (version, rest) = (hex::<1>(text.get(..2)?)?[0], text.get(2..)?);
        let is_whole = match version {
            0xff => false,
            0 => rest.len() == 53,
            // A later version may add fields.
            _ => rest.len() == 53 || rest.get(53) == Some(&b'-'),
        };
        if !is_whole || rest[0] != b'-' || rest[33] != b'-' || rest[50] != b'-' {
            return None;
        }
        let trace = hex::<16>(&rest[1..33]).filter(|id| *id != [0; 16])?;
        let span = hex::<8>(&rest[34..50]).filter(|id| *id != [0; 8])?;
        let flags = hex::<1>(&rest[51..53])?[0];
        Some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            flags,
            state: None,
        })
    }

    /// Adds a `tracestate`. One that the standard does not allow, or that is longer than it demands, is left out.
    #[must_use]
    pub fn with_state(mut self, state: &str) -> Self {
        self.state = is_state(state).then(|| state.trim().into());
        self
    }

    /// Whether the trace is recorded, as its sender says.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The `traceparent`.
    pub fn traceparent(&self) -> String {
        // Flags that this version does not define are not passed on.
        format!("00-{}-{}-{:02x}", self.trace, self.span, self.flags & 0x03)
    }
}

/// What a request carries for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// The span that the request is part of.
    pub context: Option<TraceContext>,
    /// The `baggage`, as it came.
    pub baggage: Option<Arc<str>>,
}

impl Carried {
    /// Reads the fields of `_meta` or of headers. What is wrong is left out.
    pub fn read(traceparent: Option<&str>, tracestate: Option<&str>, baggage: Option<&str>) -> Self {
        let context = traceparent.and_then(TraceContext::parse);
        Self {
            context: context.map(|context| match tracestate {
                Some(state) => context.with_state(state),
                None => context,
            }),
            baggage: baggage.filter(|text| is_baggage(text)).map(|text| text.trim().into()),
        }
    }

    /// The fields with their names, for `_meta`.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, String)> {
        let context = self.context.as_ref();
        let parent = context.map(|context| ("traceparent", context.traceparent()));
        let state = context.and_then(|context| context.state.as_ref());
        let state = state.map(|state| ("tracestate", state.to_string()));
        let baggage = self.baggage.as_ref().map(|baggage| ("baggage", baggage.to_string()));
        [parent, state, baggage].into_iter().flatten()
    }
}

/// Lower-case hexadecimal digits.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// A list of at most 32 different keys with values of printable characters.
fn is_state(text: &str) -> bool {
    if text.len() > MAX_STATE {
        return false;
    }
    let mut keys: Vec<&str> = Vec::new();
    let is_key = |key: &str| {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
        (1..=256).contains(&key.len())
            && key.bytes().all(is_plain)
            && key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
            && key.matches('@').count() <= 1
    };
    let is_value = |value: &str| {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
        (1..=256).contains(&value.len()) && value.bytes().all(is_plain)
    };
    let members = text.split(',').map(|member| member.trim_matches([' ', '\t']));
    for member in members.filter(|member| !member.is_empty()) {
        match member.split_once('=') {
            Some((key, value)) if is_key(key) && is_value(value) && !keys.contains(&key) => keys.push(key),
            _ => return false,
        }
    }
    (1..=32).contains(&keys.len())
}

/// A list of `key=value`, each with properties. Characters outside of ASCII are percent-encoded.
fn is_baggage(text: &str) -> bool {
    let is_key = |key: &str| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !key.is_empty() && key.bytes().all(is_token)
    };
    let is_value = |value: &str| {
        value
            .bytes()
            .all(|byte| matches!(byte, b'!' | b'#'..=b'+' | b'-'..=b':' | b'<'..=b'[' | b']'..=b'~'))
    };
    let is_member = |member: &str| {
        let (pair, properties) = member.split_once(';').unwrap_or((member, ""));
        let printable = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
        pair.split_once('=')
            .is_some_and(|(key, value)| is_key(key.trim()) && is_value(value.trim()))
            && properties.bytes().all(printable)
    };
    text.len() <= MAX_BAGGAGE && !text.trim().is_empty() && text.split(',').all(is_member)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_traceparent_is_taken_as_the_standard_says_or_ignored() {
        let parse = |text: &str| TraceContext::parse(text).map(|context| context.traceparent());
        let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
        assert_eq!(parse(&good).as_deref(), Some(&*good));
        assert_eq!(parse(&format!(" {good}\t")).as_deref(), Some(&*good));
        // A later version is read as far as it is known.
        assert_eq!(
            parse(&format!("cc-{TRACE}-00f067aa0ba902b7-01-what")).as_deref(),
            Some(&*good)
        );
        assert_eq!(parse(&format!("cc{}", &good[2..])).as_deref(), Some(&*good));
        for bad in [
            "",
            "00",
            "00-x",
            &good.to_uppercase(),
            &good[..54],
            &format!("{good}-"),
            &format!("{good}0"),
            &format!("ff{}", &good[2..]),
            &format!("cc{}x", &good[2..]),
            &format!("00_{}", &good[3..]),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{TRACE}-{}-01", "0".repeat(16)),
            &format!("00-{TRACE}-00f067aa0ba902b7-0x"),
            &format!("00-{}é-00f067aa0ba902b7-01", &TRACE[2..]),
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_child_has_the_trace_of_its_parent_and_an_id_of_its_own() {
        let text = format!("00-{TRACE}-00f067aa0ba902b7-00");
        let parent = TraceContext::parse(&text).unwrap().with_state("a=1,b=2");
        let child = parent.child();
        assert_eq!((child.trace, child.state.clone()), (parent.trace, parent.state.clone()));
        assert_ne!(child.span, parent.span);
        assert!(child.is_sampled() && !parent.is_sampled());
        assert_ne!(TraceId::random(), TraceId::random());
    }

    #[test]
    fn a_bad_tracestate_or_baggage_is_left_out() {
        for (state, is_good) in [
            ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", true),
            ("a@b=1 , c=2", true),
            ("a=1,,b=2", true),
            ("", false),
            ("a=1,a=2", false),
            ("A=1", false),
            ("a", false),
            ("a=é", false),
            (&format!("a={}", "x".repeat(600)), false),
        ] {
            assert_eq!(is_state(state), is_good, "{state}");
        }
        for (baggage, is_good) in [
            ("userId=alice,serverNode=DF%2028,isProduction=false", true),
            ("a=1;p=2;q, b=", true),
            ("", false),
            ("a", false),
            ("a=b c", false),
            ("a=\"b\"", false),
            ("a=é", false),
            (&format!("a={}", "x".repeat(9000)), false),
        ] {
            assert_eq!(is_baggage(baggage), is_good, "{baggage}");
        }
        let carried = Carried::read(Some("00-x"), Some("a=1"), Some("k=v"));
        assert_eq!(carried.fields().collect::<Vec<_>>(), [("baggage", "k=v".to_owned())]);
    }
}
